"""The client of one chain: web3 on our own provider, plus plain JSON-RPC calls and batches."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, cast

from fleet.chain.node import abi, reputation
from fleet.chain.node.errors import RETRIES, Meaning
from fleet.chain.node.hexes import as_bytes, as_int
from fleet.chain.node.recursion_limit import recursion_limit_kept
from fleet.config import Platform
from fleet.errors import ChainError, FleetError, NodeBusy, RpcError, Unreachable, WrongTarget
from fleet.retry import Retry
from fleet.unanswered import TIMED_OUT

if TYPE_CHECKING:
    from web3 import AsyncWeb3
    from web3.types import BlockIdentifier, RPCEndpoint, TxParams

Call = tuple[str, list[Any]]


class Rpc:
    """One node. `timeout_s` is a total deadline per attempt, `max_bytes` the maximum body size; trouble of
    the node that passes is waited for by `retries`.

    `w3` is web3, for everything that it supports. All methods raise Unreachable (retryable, except for 4xx)
    without a usable answer, RpcError when the node answered with an error object. A batch returns the errors
    of its elements as values.
    """

    def __init__(
        self,
        url: str,
        *,
        timeout_s: float = 10.0,
        max_bytes: int = 32 << 20,
        retries: Mapping[Meaning, Retry] = RETRIES,
    ) -> None:
        self.url = url
        self._limits: dict[str, Any] = {"timeout_s": timeout_s, "max_bytes": max_bytes, "retries": retries}

    @cached_property
    def w3(self) -> AsyncWeb3[Any]:
        """web3 on our provider; WrongTarget for a platform without a chain."""
        if not self.url:
            raise WrongTarget("this platform has no chain", remedy="add the table [chain] to its profile")
        # web3 takes 0.7 s to import: only commands that use a node pay for it
        with recursion_limit_kept():
            from fleet.chain.node.provider import connect

        return connect(self.url, **self._limits)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections; the object may be used again and opens new ones."""
        if "w3" in self.__dict__:
            await self.w3.provider.disconnect()

    async def call(self, method: str, params: Sequence[Any] = ()) -> Any:  # noqa: ANN401  JSON of any shape
        """The `result` of one call."""
        return await self.w3.provider.ask(method, list(params))

    async def call_bytes(self, method: str, params: Sequence[Any] = ()) -> bytes:
        """The same of one that is answered with data, however long."""
        answer: bytes = await self.w3.provider.ask_bytes(method, list(params))
        return answer

    async def batch(self, calls: Sequence[Call]) -> list[Any]:
        """Results in the order of the calls; an element that failed is an RpcError instance.

        Does not use web3's batches: they send no transactions, and raise at the first failed element.
        """
        if not calls:
            return []
        provider = self.w3.provider
        asked = [(cast("RPCEndpoint", method), list(params)) for method, params in calls]
        return [provider.outcome(answer) for answer in await provider.make_batch_request(asked)]

    def seen(self, block: int) -> None:
        """Note that a transaction of ours is in this block: reads are answered from there on."""
        self.w3.provider.seen(block)

    async def head(self) -> int:
        """Number of the node's newest block."""
        return await self.w3.eth.block_number

    async def balance(self, address: str) -> int:
        """Wei."""
        return await self.w3.eth.get_balance(self.w3.to_checksum_address(address))

    async def nonce(self, address: str, block: str = "latest") -> int:
        """Number of this sender's transactions up to a block; `pending` includes waiting ones."""
        return await self.w3.eth.get_transaction_count(
            self.w3.to_checksum_address(address), cast("BlockIdentifier", block)
        )

    async def eth_call(self, to: str, data: bytes, *, block: str = "latest", gas: int | None = None) -> bytes:
        """A contract's answer to this calldata."""
        call: TxParams = {"to": self.w3.to_checksum_address(to), "data": data}
        if gas is not None:
            call["gas"] = gas
        return bytes(await self.w3.eth.call(call, cast("BlockIdentifier", block)))

    async def view(
        self, to: str, name: str, *args: object, block: str = "latest", gas: int | None = None
    ) -> Any:  # noqa: ANN401  by the ABI
        """Call a view of `abi.FUNCTIONS`; return its value, or a tuple of several."""
        function = abi.FUNCTIONS[name]
        answer = await self.eth_call(to, function.encode(*args), block=block, gas=gas)
        try:
            values = function.decode(answer)
        except ValueError as error:
            raise Unreachable(f"{self.url}: invalid answer to {name}: {error}") from None
        return values[0] if len(values) == 1 else values

    async def check_target(self, platform: Platform) -> None:
        """Verify that this is the profile's chain and has its contracts, as far as it names them; WrongTarget
        names the mismatch."""
        chain, profile = platform.chain, f"profile {platform.name!r}"
        if not chain.rpc:
            return
        named = {"chain.diamond": chain.diamond, "log": platform.log_contract}
        if platform.logs_on_diamond:
            del named["log"]
        contracts = {key: address for key, address in named.items() if address}
        codes: list[Call] = [("eth_getCode", [address, "latest"]) for address in contracts.values()]
        found, *there = await self.batch([("eth_chainId", []), *codes])
        for problem in (found, *there):
            if isinstance(problem, RpcError):
                raise problem
        if as_int(found) != chain.id:
            raise WrongTarget(
                f"{self.url} is chain {as_int(found)}, but {profile} says chain.id = {chain.id}",
                remedy=f"fix chain.id or chain.rpc in {profile}",
            )
        for (key, address), code in zip(contracts.items(), there, strict=True):
            if not as_bytes(code):
                raise WrongTarget(
                    f"no contract at {address} on chain {chain.id}: {key} of {profile}",
                    remedy=f"fix {key} in {profile}, or deploy the platform",
                )
        if log := platform.log_contract:
            await self._check_log(log, platform, "log" if "log" in contracts else "chain.diamond")

    async def _check_log(self, log: str, platform: Platform, key: str) -> None:
        """WrongTarget unless the contract takes entries as the profile says."""
        agent, profile = platform.agent, f"profile {platform.name!r}"
        function = reputation.IDENTITY_REGISTRY if agent else abi.FUNCTIONS["feedbackCount"]
        try:
            answer = await self.eth_call(log, function.selector)
        except RpcError:
            answer = b""
        if len(answer) != 32:
            raise WrongTarget(
                f"the contract at {log} has no {function.name}(): {key} of {profile}",
                remedy=f"point {key} in {profile} at a contract that has it, or set log to file",
            )
        if agent and answer[12:].hex() != agent.identity[2:].lower():
            raise WrongTarget(
                f"the registry at {log} refers to the Identity registry 0x{answer[12:].hex()}, but {profile}"
                f" says erc8004.identity = {agent.identity}",
                remedy=f"fix erc8004.identity or log in {profile}",
            )


def is_oog(error: ChainError) -> bool:
    """Whether a read failed for lack of gas or memory: a smaller page may work."""
    text = str(error).lower()
    return any(
        word in text for word in ("oog", "out of gas", "outofgas", "gas limit", "gas required exceeds")
    )


_TOO_MUCH = re.compile(
    r"too large|larger than|too big|size exceed|limit exceed|timed? ?out|HTTP 413", re.IGNORECASE
)
"""What nodes and clients say of a page with more bytes, or of a call with more work, than they take."""


def is_too_much(error: FleetError) -> bool:
    """Whether a read may work when it asks for less."""
    if isinstance(error, NodeBusy):
        return False
    if isinstance(error, Unreachable) and error.how == TIMED_OUT:
        return True
    if isinstance(error, RpcError):
        # A facet that runs out of gas under its diamond looks like a revert without a reason.
        silent = "revert" in str(error).lower() and error.data in ("", "0x")
        if silent or is_oog(error):
            return True
    return _TOO_MUCH.search(str(error)) is not None
