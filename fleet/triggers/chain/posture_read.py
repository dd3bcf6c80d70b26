"""Reads the posture of contracts at a block: slots, views, code and events, many in one request."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from fleet.chain.node import abi, codec
from fleet.chain.node.digest import keccak256
from fleet.chain.node.hexes import as_bytes, as_dict, as_int
from fleet.drivers.expect import ExpectationError
from fleet.errors import RpcError, Unreachable
from fleet.text import line
from fleet.triggers.chain.invariants import MOST_CHARS, Invariant
from fleet.triggers.chain.posture import (
    MOST_PARTS,
    TOPICS,
    PostureReading,
    WatchedEvent,
    behind,
    privileged,
)
from fleet.triggers.chain.read import ChainNode, block_call, block_of
from fleet.triggers.chain.state import BlockRef
from fleet.triggers.chain.telling import INVARIANT, NONE, UNREADABLE, name_of

SLOTS: Mapping[str, str] = {
    "implementation": "0x360894a13ba1a3210667c828492db98dca3e2076cc3735a920a3ca505d382bbc",
    "admin": "0xb53127684a568b3173ae13b9f8a6016e243e63b6e8ee1178d6a717850b5d6103",
    "beacon": "0xa3f0ad74e5423aebfd80d3ef4346578335a9a72aeaee59ff6cb3582b35133d50",
}
"""EIP-1967."""
BEACON = "beacon-implementation"
VIEWS: Mapping[str, tuple[str, str]] = {
    "owner": ("owner()", "address"),
    "pending-owner": ("pendingOwner()", "address"),
    "paused": ("paused()", "bool"),
    "delay": ("getMinDelay()", "uint256"),
    "threshold": ("getThreshold()", "uint256"),
    "safe-owners": ("getOwners()", "address[]"),
    BEACON: ("implementation()", "address"),
}
"""Views of ERC-173, Ownable2Step, Pausable, TimelockController, Safe and of a beacon, with what they give."""
FACETS, CODE = "facets", "code"
CONTRACT = tuple(one for one in (*SLOTS, *VIEWS, FACETS, CODE) if one != BEACON)
"""All that a contract is asked."""
ALWAYS = frozenset({"implementation"})
"""Asked at each block, though there was none: any contract may become a proxy."""
MOST_ADDRESSES = 128
DELEGATES = bytes.fromhex("ef0100")
"""Begin of the code of an account that hands its calls on, EIP-7702."""
_REVERTS = re.compile(
    r"revert|invalid opcode|opcode not found|out of gas|stack|execution|invalid jump|evm", re.IGNORECASE
)

Plan = Sequence[tuple[str, str]]
"""Pairs of address and question."""


class BlockHeader(NamedTuple):
    ref: BlockRef
    parent: str


class PostureReader:
    """Reads from one node. `calls` counts what was asked of it, a batch by its elements."""

    def __init__(self, node: ChainNode, contracts: Sequence[str], invariants: Sequence[Invariant]) -> None:
        self._node, self.contracts, self._invariants = node, tuple(contracts), tuple(invariants)
        self.calls = self.requests = 0

    async def _batch(self, calls: Sequence[tuple[str, list[Any]]]) -> list[Any]:
        self.calls += len(calls)
        self.requests += 1
        return await self._node.batch(calls)

    async def head(self, known: Sequence[int]) -> tuple[int, list[BlockRef]]:
        """Number of the newest block, and those of the given blocks that the node has."""
        newest, *answers = await self._batch([("eth_blockNumber", []), *map(block_call, known)])
        return as_int(_good(newest)), [one for one in map(block_of, answers) if one is not None]

    async def headers(
        self, start: int, stop: int, addresses: Sequence[str]
    ) -> tuple[list[BlockHeader], list[WatchedEvent]]:
        """Consecutive blocks, and the events in them. Unreachable where the node lacks one, or they do not
        follow on each other."""
        blocks = [block_call(number) for number in range(start, stop + 1)]
        *found, lines = await self._batch([*blocks, _logs(addresses, start, stop)])
        made: list[BlockHeader] = []
        for number, answer in zip(range(start, stop + 1), found, strict=True):
            ref, parent = block_of(answer), as_dict(answer or {}).get("parentHash")
            if ref is None or ref.number != number or (made and parent != made[-1].ref.hash):
                raise Unreachable(f"block {number} was replaced during a look, or the node does not have it")
            made.append(BlockHeader(ref, str(parent)))
        return made, _events(_good(lines), start, stop)

    async def events(self, addresses: Sequence[str], start: int, stop: int) -> list[WatchedEvent]:
        (lines,) = await self._batch([_logs(addresses, start, stop)])
        return _events(_good(lines), start, stop)

    async def read(
        self, blocks: Sequence[BlockRef], plan: Plan, known: Mapping[str, str]
    ) -> list[PostureReading]:
        """The plan's parts at each block; one that the node cannot read has its `known` value. Unreachable
        when the last block is replaced meanwhile, RpcError when the node does not have its state."""
        calls: list[tuple[str, list[Any]]] = []
        for block in blocks:
            at = hex(block.number)
            calls += [_call(address, question, at) for address, question in plan]
            calls += [view.at(at) for one in self._invariants for view in one.views.values()]
        *answers, again = await self._batch([*calls, block_call(blocks[-1].number)])
        if block_of(again) != blocks[-1]:
            raise Unreachable(f"block {blocks[-1].number} was replaced during a look")
        size = len(answers) // len(blocks)
        return [
            self._reading(plan, answers[at : at + size], known) for at in range(0, len(answers), size or 1)
        ] or [PostureReading() for _ in blocks]

    def _reading(self, plan: Plan, answers: Sequence[object], known: Mapping[str, str]) -> PostureReading:
        parts, unread = dict[str, str](), dict[str, str]()
        for (address, question), answer in zip(plan, answers, strict=False):
            if isinstance(answer, RpcError) and question in (*VIEWS, FACETS) and not is_revert(answer):
                part = f"{address} {_named(question)}"
                unread[part] = line(str(answer), MOST_CHARS)
                before = {key: value for key, value in known.items() if f"{key} ".startswith(f"{part} ")}
                parts |= before or {part: UNREADABLE}
                continue
            parts |= {f"{address} {name}": value for name, value in _parts(question, answer)}
        decided, at = dict[str, bool](), len(plan)
        for one in self._invariants:
            own, at = answers[at : at + len(one.views)], at + len(one.views)
            try:
                decided[one.name] = one.decide(own)
            except ExpectationError as error:
                unread[f"{INVARIANT} {one.name}"] = str(error)
        return PostureReading(parts, decided, unread)

    async def whole(self, block: BlockRef, known: Mapping[str, str]) -> PostureReading:
        """Everything at one block, with what owns, administers or stands behind the contracts; `known` has
        the parts that come from events, and the others as they were. An address without code has no views:
        a precompile answers any of them with bytes, or with an error."""
        folded = {part: value for part, value in known.items() if name_of(part) in ("role", "queued")}
        parts, left = dict(folded), dict.fromkeys(self.contracts)
        asked: dict[str, tuple[str, ...]] = {}
        reading, unread = PostureReading(), dict[str, str]()
        while left and len(asked) < MOST_ADDRESSES:
            questions = {address: _questions(address, parts, self.contracts) for address in left}
            plan = plan_of(questions)
            (reading,) = await self.read([block], plan, known)
            bare = {one for one in questions if reading.parts.get(f"{one} {CODE}") == NONE}
            views = [f"{one} {_named(question)}" for one in bare for question in (*VIEWS, FACETS)]
            parts |= {part: value for part, value in reading.parts.items() if part not in views}
            unread |= {part: why for part, why in reading.unread.items() if part not in views}
            asked |= {address: _answering(address, found, parts) for address, found in questions.items()}
            wanted = {**privileged(parts), **behind(parts)}
            left = dict.fromkeys([one for one in wanted if one not in asked][: MOST_ADDRESSES - len(asked)])
        parts = {part: value for part, value in parts.items() if part.partition(" ")[0] in asked}
        if len(parts) > MOST_PARTS:
            raise Unreachable(f"the watched contracts have more than {MOST_PARTS} parts")
        return replace(reading, parts=parts, asked=asked, unread=unread)


def _questions(address: str, parts: Mapping[str, str], contracts: Sequence[str]) -> tuple[str, ...]:
    """What a watched contract, and who may change one, is asked; of what only stands behind one its code."""
    own = CONTRACT if address in contracts or address in privileged(parts) else (CODE,)
    beacons = {value for part, value in parts.items() if name_of(part) == "beacon"}
    return tuple(dict.fromkeys((*own, "owner", BEACON))) if address in beacons else own


def plan_of(asked: Mapping[str, tuple[str, ...]]) -> list[tuple[str, str]]:
    """What is asked at each block."""
    return [(address, question) for address, questions in asked.items() for question in questions]


def carried(parts: Mapping[str, str], plan: Plan) -> dict[str, str]:
    """Parts that a plan does not read."""
    read = {(address, _named(question)) for address, question in plan}
    return {part: value for part, value in parts.items() if tuple(part.split(" ")[:2]) not in read}


def _answering(address: str, asked: Sequence[str], parts: Mapping[str, str]) -> tuple[str, ...]:
    """The questions of an address at each block: those that it answered. Code of contracts is long, and
    asked for now and then only; that of accounts is short, and says whom they delegate to."""
    code = parts.get(f"{address} {CODE}", NONE)
    if code == NONE or code.startswith("delegates"):
        return (CODE,)
    has = {name_of(part) for part in parts if part.startswith(f"{address} ")} | ALWAYS
    has = (has - {CODE}) | ({FACETS} if "selector" in has else set())
    return tuple(one for one in asked if one in has)


def _named(question: str) -> str:
    """What the parts are called that a question is about."""
    return "selector" if question == FACETS else question


def _call(address: str, question: str, block: str) -> tuple[str, list[Any]]:
    if question in SLOTS:
        return "eth_getStorageAt", [address, SLOTS[question], block]
    if question == CODE:
        return "eth_getCode", [address, block]
    selector = (
        abi.FUNCTIONS["facets"].selector if question == FACETS else keccak256(VIEWS[question][0].encode())[:4]
    )
    return "eth_call", [{"to": address, "data": "0x" + selector.hex()}, block]


def _parts(question: str, answer: object) -> Iterator[tuple[str, str]]:
    """Names and values; none for a view that a contract does not have. RpcError where the node does not have
    slots and code: it lacks the state of the block."""
    if isinstance(answer, RpcError):
        if question in SLOTS or question == CODE:
            raise answer
        return
    data = as_bytes(answer)
    if question in SLOTS:
        if int.from_bytes(data[-20:]):
            yield question, "0x" + data[-20:].hex()
    elif question == CODE:
        if data.startswith(DELEGATES):
            yield question, f"delegates to 0x{data[3:23].hex()}"
        else:
            yield question, "0x" + keccak256(data).hex()[:16] if data else NONE
    else:
        try:
            if question == FACETS:
                for facet, selectors in abi.FUNCTIONS["facets"].decode(data)[0]:
                    yield from ((f"selector 0x{one.hex()}", facet) for one in selectors)
                return
            (value,) = codec.decode((VIEWS[question][1],), data)
        except codec.Malformed:
            return
        yield question, _value(value)


def _value(value: object) -> str:
    if isinstance(value, list | tuple):
        return ",".join(sorted(map(str, value)))
    return str(value).lower()


def is_revert(error: RpcError) -> bool:
    """Whether the contract said so, and not the node."""
    return error.code == 3 or bool(error.data) or _REVERTS.search(str(error)) is not None


def _logs(addresses: Sequence[str], start: int, stop: int) -> tuple[str, list[Any]]:
    query = {
        "address": list(addresses),
        "fromBlock": hex(start),
        "toBlock": hex(stop),
        "topics": [list(TOPICS)],
    }
    return "eth_getLogs", [query]


def _good(answer: object) -> object:
    if isinstance(answer, RpcError):
        raise answer
    return answer


def _events(answer: object, start: int, stop: int) -> list[WatchedEvent]:
    if not isinstance(answer, list):
        raise Unreachable("invalid answer of the node: expected events")
    found = []
    for one in map(as_dict, answer):
        topics = one.get("topics")
        if (
            one.get("removed") is True
            or not isinstance(topics, list)
            or topics[:1] == []
            or topics[0] not in TOPICS
        ):
            continue
        number = as_int(one.get("blockNumber"))
        if not start <= number <= stop:
            raise Unreachable("the node answered with events of other blocks")
        words = tuple("0x" + as_bytes(topic).hex() for topic in topics)
        address = "0x" + as_bytes(one.get("address")).hex()
        found.append(
            WatchedEvent(address, number, as_int(one.get("logIndex")), words, as_bytes(one.get("data")))
        )
    return sorted(found, key=lambda event: (event.block, event.index))
