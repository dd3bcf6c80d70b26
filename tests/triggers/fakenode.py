"""A node that a test writes: blocks, events, state by block, and every way to misbehave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from eth_abi.abi import encode

from fleet.chain.node.abi import FEEDBACK_CLEARED, FEEDBACK_SUBMITTED, FUNCTIONS, REGISTERED
from fleet.errors import RpcError, Unreachable
from fleet.triggers.chain.state import DIAMOND_CUT

DIAMOND = "0x" + "d1" * 20
SPONSOR = "0x" + "5a" * 20
FACETS = (("0x" + "0a" * 20, [b"\1\1\1\1", b"\2\2\2\2"]), ("0x" + "0b" * 20, [b"\3\3\3\3"]))


@dataclass
class State:
    """What the diamond answers at one block."""

    facets: tuple[tuple[str, list[bytes]], ...] = FACETS
    count: int = 0
    balance: int = 10**18


@dataclass
class FakeNode:
    """Block numbers are indices. `broken` maps a method or a view to the error it answers with."""

    hashes: list[str] = field(default_factory=lambda: [f"0x{1:08x}{0:056x}"])
    states: list[State] = field(default_factory=lambda: [State()])
    logs: list[dict[str, Any]] = field(default_factory=list)
    broken: dict[str, Exception] = field(default_factory=dict)
    span: int = 10**9
    asked: list[str] = field(default_factory=list)
    forks: int = 1

    def mine(self, blocks: int = 1, **changes: Any) -> None:
        for _ in range(blocks):
            self.states.append(State(**{**vars(self.states[-1]), **changes}))
            self.hashes.append(f"0x{self.forks:08x}{len(self.hashes):056x}")

    def emit(self, topic: str, *, ident: int = 0) -> None:
        """An event in the newest block."""
        block = len(self.hashes) - 1
        index = sum(log["blockNumber"] == hex(block) for log in self.logs)
        topics = [topic, f"0x{ident:064x}"] if topic == REGISTERED else [topic]
        place = {"blockNumber": hex(block), "blockHash": self.hashes[block], "logIndex": hex(index)}
        self.logs.append({"topics": topics, **place})

    def register(self, ident: int) -> None:
        self.mine()
        self.emit(REGISTERED, ident=ident)

    def post(self, entries: int = 1) -> None:
        self.mine(count=self.states[-1].count + entries)
        for _ in range(entries):
            self.emit(FEEDBACK_SUBMITTED)

    def clear(self) -> None:
        self.mine(count=0)
        self.emit(FEEDBACK_CLEARED)

    def cut(self, facets: tuple[tuple[str, list[bytes]], ...]) -> None:
        self.mine(facets=facets)
        self.emit(DIAMOND_CUT)

    def fork(self, depth: int) -> None:
        """Drop the newest blocks; what is mined next has other hashes."""
        self.forks += 1
        del self.hashes[-depth:], self.states[-depth:]
        self.logs = [log for log in self.logs if int(log["blockNumber"], 16) < len(self.hashes)]

    async def call(self, method: str, params: Sequence[Any] = ()) -> Any:
        answer = self._answer(method, list(params))
        if isinstance(answer, RpcError):
            raise answer
        return answer

    async def batch(self, calls: Sequence[tuple[str, list[Any]]]) -> list[Any]:
        return [self._answer(method, params) for method, params in calls]

    def _answer(self, method: str, params: list[Any]) -> Any:
        self.asked.append(method)
        if method == "eth_call":
            method = "facets" if params[0]["data"] == "0x" + FUNCTIONS["facets"].selector.hex() else "count"
        if problem := self.broken.get(method):
            if isinstance(problem, Unreachable):
                raise problem
            return problem
        return getattr(self, f"_{method}")(*params)

    def _eth_blockNumber(self) -> str:
        return hex(len(self.hashes) - 1)

    def _eth_getBlockByNumber(self, number: str, _full: bool) -> Any:
        at = int(number, 16)
        return {"number": number, "hash": self.hashes[at]} if at < len(self.hashes) else None

    def _facets(self, _call: Any, block: str) -> str:
        return "0x" + encode(["(address,bytes4[])[]"], [self.states[int(block, 16)].facets]).hex()

    def _count(self, _call: Any, block: str) -> str:
        return f"0x{self.states[int(block, 16)].count:064x}"

    def _eth_getBalance(self, _address: str, block: str) -> str:
        return hex(self.states[int(block, 16)].balance)

    def _eth_getLogs(self, query: dict[str, Any]) -> Any:
        start, end = int(query["fromBlock"], 16), int(query["toBlock"], 16)
        assert query["address"] == DIAMOND
        if end - start + 1 > self.span:
            return RpcError("query exceeds max block range")
        return [log for log in self.logs if start <= int(log["blockNumber"], 16) <= end]
