"""Where a log ends, asked without web3, which takes longer to load than the rest of such a command.

Most lists that are looked at are as new as the log (decision 34): then nothing else of the chain is needed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import anyio

from fleet.chain.log.choice import log_of
from fleet.chain.log.file_log import FileLog
from fleet.chain.node import abi, codec
from fleet.chain.node.errors import RETRIES, Meaning, NodePatience
from fleet.chain.node.hexes import as_bytes, as_int
from fleet.chain.node.rpc import Rpc
from fleet.chain.ports import FeedbackPort
from fleet.config import Platform
from fleet.errors import NodeBusy, RpcError, Unreachable, WrongTarget
from fleet.http_client import AnswerTooLarge, HttpFailure, open_client, retry_after, send
from fleet.retry import NODE_ASKED, Retry
from fleet.unanswered import unanswered
from sandbox import strict_json

if TYPE_CHECKING:
    import httpx

PATIENCE: Mapping[Meaning, Retry] = MappingProxyType({**RETRIES, Meaning.BUSY: NODE_ASKED})
ASK_S = 10.0
"""Seconds for the whole question."""
LARGEST = 1 << 20
"""Bytes of an answer: one entry, whose text has at most 2,048."""
_COUNT, _RANGE = abi.FUNCTIONS["feedbackCount"], abi.FUNCTIONS["feedbackRange"]
_WORD = 32


@dataclass(frozen=True, slots=True)
class LogEnd:
    """Number of `entries`, and the time of the last one (Unix seconds; 0 for an empty log)."""

    entries: int = 0
    at: int = 0


async def log_end(profile: Platform, state: Path, *, retries: Mapping[Meaning, Retry] = PATIENCE) -> LogEnd:
    """Where the log of a platform ends; raises Unreachable, RpcError, WrongTarget, ConfigError."""
    if file := profile.log_file(state):
        return await _counted(FileLog(file))
    url = profile.chain.rpc
    try:
        with anyio.fail_after(ASK_S):
            if profile.agent:  # events have to be counted: no one call says where they end
                async with Rpc(url, retries=retries) as rpc:
                    await rpc.check_target(profile)
                    return await _counted(log_of(profile, state, rpc))
            async with open_client(url) as client:
                return await _on_chain(_Node(client, url, retries), profile)
    except TimeoutError:
        raise Unreachable(f"the log did not answer within {ASK_S:g} s") from None


async def _counted(log: FeedbackPort) -> LogEnd:
    count = await log.count()
    last = await log.range(count - 1, 1) if count else []
    return LogEnd(count, last[-1].timestamp if last else 0)


async def _on_chain(node: _Node, profile: Platform) -> LogEnd:
    chain, contract, block = profile.chain, profile.log_contract, "latest"
    if chain.confirmations:
        (head,) = await node.ask([("eth_blockNumber", [])])
        block = hex(max(as_int(head) - chain.confirmations, 0))
    call = {"to": contract, "data": "0x" + _COUNT.selector.hex()}
    found, answer = await node.ask([("eth_chainId", []), ("eth_call", [call, block])])
    if as_int(found) != chain.id:
        raise WrongTarget(
            f"{node.url} is chain {as_int(found)}, but profile {profile.name!r} says chain.id = {chain.id}",
            remedy=f"fix chain.id or chain.rpc in profile {profile.name!r}",
        )
    if len(word := as_bytes(answer)) != _WORD:
        raise WrongTarget(
            f"the contract at {contract} has no feedbackCount()",
            remedy=f"point log in profile {profile.name!r} at a contract that has one",
        )
    if not (count := int.from_bytes(word, "big")):
        return LogEnd()
    place = b"".join(number.to_bytes(_WORD, "big") for number in (count - 1, 1))
    call = {"to": contract, "data": "0x" + (_RANGE.selector + place).hex()}
    (answer,) = await node.ask([("eth_call", [call, block])])
    try:
        last = codec.decode_feedback_range(as_bytes(answer))
    except codec.Malformed as error:
        raise Unreachable(f"invalid answer to feedbackRange: {error}") from None
    if len(last) != 1:
        raise Unreachable(f"feedbackRange has {len(last)} entries where feedbackCount says that one is")
    return LogEnd(count, last[0].timestamp)


class _Node:
    """JSON-RPC batches to one node, within bounds; trouble of the node that passes is waited for."""

    def __init__(self, client: httpx.AsyncClient, url: str, retries: Mapping[Meaning, Retry]) -> None:
        self._client, self.url, self._retries = client, url, retries

    async def ask(self, calls: Sequence[tuple[str, list[Any]]]) -> list[object]:
        """Results in the order of the calls; RpcError for one that failed."""
        patience = NodePatience(self._retries)
        while True:
            try:
                return await self._once(calls)
            except (Unreachable, RpcError) as error:
                if not await patience.wait(error):
                    raise

    async def _once(self, calls: Sequence[tuple[str, list[Any]]]) -> list[object]:
        batch = [
            {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            for number, (method, params) in enumerate(calls)
        ]
        kind = {"content-type": "application/json"}
        body = json.dumps(batch).encode()
        try:
            status, headers, raw = await send(self._client, "POST", self.url, body, kind, limit=LARGEST)
        except HttpFailure as failure:
            silent = Unreachable(f"{self.url}: {failure}")
            silent.how, silent.retryable = unanswered(failure), not isinstance(failure, AnswerTooLarge)
            raise silent from None
        if status == 429:
            busy = NodeBusy(f"{self.url}: HTTP 429")
            busy.asked_s = retry_after(headers)
            raise busy
        if status != 200:
            refused = Unreachable(f"{self.url}: HTTP {status}")
            refused.retryable = not 400 <= status < 500
            raise refused
        try:
            answers = strict_json.loads(raw)
        except ValueError:
            raise Unreachable(f"{self.url}: no JSON where a JSON-RPC answer was expected") from None
        if not isinstance(answers, list) or not all(isinstance(one, dict) for one in answers):
            raise Unreachable(f"{self.url}: expected a list of objects in reply to a batch")
        by_id = {one.get("id"): one for one in answers if isinstance(one.get("id"), int)}
        if by_id.keys() != set(range(len(calls))) or len(answers) != len(calls):
            raise Unreachable(f"{self.url}: the answer to a batch misses or repeats an id")
        return [self._result(by_id[number]) for number in range(len(calls))]

    def _result(self, answer: dict[str, Any]) -> object:
        error = answer.get("error")
        if error is None and "result" in answer:
            return answer["result"]
        said = error.get("message", "") if isinstance(error, dict) else "neither result nor error"
        code, data = (error.get("code"), error.get("data")) if isinstance(error, dict) else (0, "")
        raise RpcError(
            f"{self.url}: {str(said)[:200]}",
            code=code if isinstance(code, int) else 0,
            data=data if isinstance(data, str) else "",
        )
