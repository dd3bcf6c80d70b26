"""Reads the chain for triggers: blocks, the diamond's state at a block, and its events in pages."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, TypeVar

from fleet.chain.node import abi
from fleet.chain.node.facets import facets_digest
from fleet.chain.node.hexes import as_bytes, as_dict, as_int
from fleet.errors import FleetError, RpcError, Unreachable
from fleet.triggers.chain.state import TOPICS, BlockRef, ChainSnapshot, DiamondLog

PAGE = 2000
"""Initial blocks per request for events; nodes limit it to 500 or more."""
_HASH = re.compile(r"0x[0-9a-f]{64}")

Part = TypeVar("Part")


class ChainNode(Protocol):
    """The part of `fleet.chain.node.rpc.Rpc` that triggers use."""

    async def call(self, method: str, params: Sequence[Any] = ()) -> Any: ...  # noqa: ANN401  JSON of any shape
    async def batch(self, calls: Sequence[tuple[str, list[Any]]]) -> list[Any]: ...


class DiamondReader:
    """Reads one diamond from one node. `problems` holds what the latest look could not read, by event."""

    def __init__(self, node: ChainNode, diamond: str, *, sponsor: str = "") -> None:
        self._node = node
        self._diamond = diamond.lower()
        self._sponsor = sponsor
        self._page = PAGE
        self.problems: dict[str, str] = {}

    async def head(self, numbers: Sequence[int]) -> tuple[int, list[BlockRef]]:
        """Number of the newest block, and those of the given blocks that the node has."""
        asked = [("eth_blockNumber", []), *map(block_call, numbers)]
        newest, *answers = await self._node.batch(asked)
        return as_int(_good(newest)), _had(answers)

    async def blocks(self, numbers: Sequence[int]) -> list[BlockRef]:
        """Those of the given blocks that the node has."""
        return _had(await self._node.batch([block_call(number) for number in numbers]))

    async def look(self, block: BlockRef, since: int) -> ChainSnapshot:
        """The state at a block and the events after block `since`.

        Unreachable when the block is replaced meanwhile; an unreadable part is None.
        """
        lines: tuple[DiamondLog, ...] | None = None
        problems: dict[str, str] = {}
        try:
            lines = await self._lines(since + 1, block.number)
        except FleetError as error:
            problems["registered"] = str(error)
        calls = [self._view("facets", block), self._view("feedbackCount", block), block_call(block.number)]
        if self._sponsor:
            calls.append(("eth_getBalance", [self._sponsor, hex(block.number)]))
        facets, count, again, *balance = await self._node.batch(calls)
        if block_of(again) != block:
            raise Unreachable(f"block {block.number} was replaced during a look")
        look = ChainSnapshot(
            block,
            _part(problems, "facets-changed", lambda: facets_digest(as_bytes(_good(facets)))),
            _part(problems, "log-changed", lambda: _count(as_bytes(_good(count)))),
            _part(problems, "sponsor-low", lambda: as_int(_good(balance[0]))) if balance else None,
            lines,
        )
        self.problems = problems
        return look

    async def _lines(self, start: int, end: int) -> tuple[DiamondLog, ...]:
        found: list[DiamondLog] = []
        while start <= end:
            stop = min(start + self._page - 1, end)
            try:
                query = {
                    "address": self._diamond,
                    "fromBlock": hex(start),
                    "toBlock": hex(stop),
                    "topics": [list(TOPICS)],
                }
                answer = await self._node.call("eth_getLogs", [query])
                if not isinstance(answer, list):
                    raise Unreachable("invalid answer of the node: expected events")
                lines = [line for line in map(_line, answer) if line is not None]
                if any(not start <= line.block.number <= stop for line in lines):
                    raise Unreachable("the node answered with events of other blocks")
                found += sorted(lines, key=lambda line: (line.block.number, line.index))
            except (RpcError, Unreachable) as error:
                if error.retryable or start == stop:  # a node that does not answer has not hit a limit
                    raise
                self._page = max((stop - start + 1) // 2, 1)
                continue
            start = stop + 1
            self._page = min(self._page * 2, PAGE)
        return tuple(found)

    def _view(self, name: str, block: BlockRef) -> tuple[str, list[Any]]:
        call = {"to": self._diamond, "data": "0x" + abi.FUNCTIONS[name].encode().hex()}
        return "eth_call", [call, hex(block.number)]


def _part(problems: dict[str, str], event: str, read: Callable[[], Part]) -> Part | None:
    """Read one part of a look separately: an invalid answer of one facet must not hide the others."""
    try:
        return read()
    except (FleetError, ValueError) as error:
        problems[event] = str(error)
        return None


def _good(answer: object) -> object:
    if isinstance(answer, RpcError):
        raise answer
    return answer


def _count(data: bytes) -> int:
    return int(abi.FUNCTIONS["feedbackCount"].decode(data)[0])


def block_call(number: int) -> tuple[str, list[Any]]:
    """What asks for one block, without its transactions."""
    return "eth_getBlockByNumber", [hex(number), False]


def _had(answers: Iterable[Any]) -> list[BlockRef]:
    return [block for block in map(block_of, answers) if block is not None]


def block_of(answer: object) -> BlockRef | None:
    """The block of an answer; None for one that the node does not have."""
    if answer is None or isinstance(answer, RpcError):  # some nodes answer with an error for an unknown block
        return None
    found = as_dict(answer)
    return _numbered(found.get("number"), found.get("hash"))


def _numbered(number: object, digest: object) -> BlockRef:
    if not isinstance(digest, str) or not _HASH.fullmatch(digest):
        raise Unreachable("the node answered with a block without a hash")
    return BlockRef(as_int(number), digest)


def _line(answer: object) -> DiamondLog | None:
    """The event; None if a reorg removed it or it was not requested."""
    found = as_dict(answer)
    topics = found.get("topics")
    if not isinstance(topics, list) or not topics:
        raise Unreachable("the node answered with an event without topics")
    if found.get("removed") is True or topics[0] not in TOPICS:
        return None
    ident = as_int(topics[1]) if topics[0] == abi.REGISTERED and len(topics) > 1 else 0
    block = _numbered(found.get("blockNumber"), found.get("blockHash"))
    return DiamondLog(topics[0], block, as_int(found.get("logIndex")), ident)
