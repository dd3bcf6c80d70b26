"""What nodes and providers mean by their errors, in one table, and how long each is waited for.

Words as geth, Nethermind, Besu, Erigon, Reth, anvil and hosted providers write them, compared without case,
spaces and punctuation: `AlreadyKnown`, `already known` and `ALREADY_KNOWN` are the same.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

import anyio

from fleet.errors import NodeBusy, RpcError, Unreachable
from fleet.retry import NODE_BEHIND, NODE_BUSY, NODE_FAULTY, Retry
from fleet.unanswered import NO_NAME, NO_ROUTE, TIMED_OUT


class Meaning(StrEnum):
    """`known`, `poor` and `taken` are about a transaction; the others are trouble of the node that passes,
    or a request that it never takes (`no_batch`)."""

    KNOWN = "known"  # it has these bytes already
    POOR = "poor"  # the sender cannot pay
    TAKEN = "taken"  # another transaction has this nonce
    BUSY = "busy"  # a limit of requests
    BEHIND = "behind"  # it does not have this block yet
    FAULTY = "faulty"  # an internal error
    NO_BATCH = "no_batch"  # no batches, or only smaller ones
    OTHER = "other"


RETRIES: Mapping[Meaning, Retry] = MappingProxyType(
    {Meaning.BUSY: NODE_BUSY, Meaning.BEHIND: NODE_BEHIND, Meaning.FAULTY: NODE_FAULTY}
)


FOR_BLOCKS = frozenset({"eth_getBlockByNumber", "eth_getBlockByHash", "eth_getLogs"})
"""Methods that an unknown block answers: BEHIND is not trouble there."""


@dataclass(frozen=True, slots=True)
class _Words:
    meaning: Meaning
    words: tuple[str, ...]
    codes: frozenset[int] = frozenset()
    unless: tuple[str, ...] = ()


_TABLE = (
    _Words(
        Meaning.KNOWN,
        (
            "already known",  # geth, Erigon, Reth; Nethermind: AlreadyKnown
            "known transaction",  # Besu, older geth
            "already imported",  # anvil, OpenEthereum
            "already exists",  # Erigon: ALREADY_EXISTS
            "same hash was already",
            "already in the pool",
            "already in mempool",
        ),
    ),
    _Words(
        Meaning.POOR,
        (
            "insufficient funds",  # geth, Erigon, Reth, anvil; Nethermind: InsufficientFunds
            "insufficient balance",
            "upfront cost exceeds",  # Besu
            "sender doesn't have enough funds",
            "not enough funds",
        ),
    ),
    _Words(
        Meaning.TAKEN,
        (
            "nonce too low",  # geth, Besu, Erigon, Reth, anvil; Besu also: NONCE_TOO_LOW
            "nonce is too low",
            "old nonce",  # Nethermind: OldNonce
            "nonce already used",  # Nethermind: OwnNonceAlreadyUsed
            "replacement transaction underpriced",  # geth, Besu, Reth, anvil
            "replacement not allowed",  # Nethermind: ReplacementNotAllowed
            "could not replace",  # Erigon
            "replacement fee too low",
            "nonce has already been used",
        ),
    ),
    _Words(
        Meaning.NO_BATCH,
        (
            "batch requests are not",
            "batch requests not",
            "batch is not",
            "batching is not",
            "batch not supported",
            "batch not allowed",
            "batch too large",
            "batch size",
            "batch limit",
            "batch requests are disabled",
            "too many requests in batch",
            "too many batch",
        ),
    ),
    _Words(
        Meaning.BUSY,
        (
            "rate limit",
            "too many requests",
            "request limit",
            "requests per second",
            "compute units per second",
            "over capacity",
            "server is busy",
            "server busy",
            "throttled",
            "try again later",
            "limit exceeded",
            "temporarily unavailable",
        ),
        frozenset({429, -32005, -32007, -32029, -32097}),
        ("more than", "results", "block range", "too large", "response size", "gas"),
    ),
    _Words(
        Meaning.BEHIND,
        (
            "header not found",  # geth
            "header for hash not found",
            "unknown block",  # Besu, Reth
            "block not found",
            "block out of range",  # anvil: BlockOutOfRange
            "could not find block",  # Erigon, Nethermind
            "cannot find block",
            "block is not available",
            "not yet available",
            "unfinalized data",
        ),
    ),
    _Words(
        Meaning.FAULTY,
        ("internal error", "internal server error", "bad gateway", "upstream", "connection reset"),
        frozenset({-32603}),
        ("revert", "gas", "execution", "invalid", "evm error"),  # anvil: EVM error PrecompileError
    ),
)


def meaning_of(code: int, message: str, data: str = "") -> Meaning:
    """What an error object says; OTHER for what may be about the request itself."""
    said = _bare(message)
    for row in _TABLE:
        if any(_bare(word) in said for word in row.unless):
            continue
        if any(_bare(word) in said for word in row.words):
            return row.meaning
        if code in row.codes and not data:
            return row.meaning
    return Meaning.OTHER


def _bare(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text[:2_000].lower())


_LASTS = (TIMED_OUT, NO_NAME, NO_ROUTE)
"""Silences that another attempt at once does not end."""


class NodePatience:
    """Waits between the attempts of one request, by kind of trouble."""

    def __init__(self, retries: Mapping[Meaning, Retry]) -> None:
        self._retries = retries
        self._failures = 0
        self._since = 0.0

    async def wait(self, error: Unreachable | RpcError) -> bool:
        """Pause before another attempt; False when there is none."""
        meaning, asked_s = trouble(error)
        retry = self._retries.get(meaning)
        if retry is None:
            return False
        now = time.monotonic()
        self._since = self._since or now
        pause = retry.next_pause(self._failures, now - self._since, asked_s)
        if pause is None:
            return False
        self._failures += 1
        await anyio.sleep(pause)
        return True


def trouble(error: Unreachable | RpcError) -> tuple[Meaning, float]:
    """What kind of trouble a failed attempt met, and the pause that the node asked for, in seconds."""
    if isinstance(error, RpcError):
        return meaning_of(error.code, str(error), error.data), 0.0
    if isinstance(error, NodeBusy):
        return Meaning.BUSY, error.asked_s
    passes = error.retryable and error.how not in _LASTS
    return (Meaning.FAULTY if passes else Meaning.OTHER), 0.0
