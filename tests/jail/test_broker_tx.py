"""Transactions and tokens through a real broker: by label, strictly shaped, never cut off midway."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from fleet.broker.broker import Broker, TxPort
from fleet.errors import BudgetExceeded, ChainError, FleetError, Refused, TxFailed, Unfunded, Unreachable
from tests.jail.test_broker_rpc import post, read_answer
from tests.sandbox.doubles import CALLER, DIAMOND, Signer, listener, policy_for

pytestmark = pytest.mark.anyio

NO_FUNDS = {"error": "no funds: 0xab, the sponsor key", "error_class": "refused"}
"""Our own trouble: a `reverted` would be the platform's."""
GOOD = {"key": "caller", "to": DIAMOND, "data": "0x89934d3a", "gas": 100_000, "value": "0"}


async def ask(
    port: TxPort | None, path: str, body: object, **policy: Any
) -> tuple[int, dict[str, Any], Broker]:
    broker = Broker(policy_for(**policy), port)
    with listener() as sock:
        async with broker.egress(sock):
            reader, writer = await asyncio.open_connection("127.0.0.1", sock.getsockname()[1])
            writer.write(post(path, json.dumps(body).encode()))
            status, answer = await read_answer(reader)
            writer.close()
    return status, json.loads(answer), broker


async def test_a_transaction_goes_to_the_port_as_it_was_asked() -> None:
    signer = Signer()
    status, answer, broker = await ask(signer, "/tx", GOOD)
    (sent,) = signer.submitted
    assert (sent.key, sent.to, sent.data, sent.value, sent.gas) == (
        "caller",
        DIAMOND,
        b"\x89\x93\x4d\x3a",
        0,
        100_000,
    )
    assert (status, answer["status"]) == (200, 1)
    assert (broker.records[0].verb, broker.records[0].what) == ("TX", "0x89934d3a")


async def test_a_listed_selector_never_reaches_the_port() -> None:
    signer = Signer()
    never = {bytes.fromhex("89934d3a")}
    status, answer, _ = await ask(signer, "/tx", GOOD, never=never)
    assert (status, answer["rule"], signer.submitted) == (403, "never", [])
    never.clear()
    assert (await ask(signer, "/tx", GOOD, never=never))[0] == 200


async def test_a_token_for_a_route() -> None:
    signer = Signer()
    status, answer, _ = await ask(signer, "/auth", {"key": "caller", "route": "gemini"})
    assert (status, answer["address"], signer.tokens) == (200, CALLER, [("caller", "gemini")])
    old = await ask(signer, "/auth", {"key": "caller", "route": "gemini", "age": 60})
    assert (old[0], old[1]["token"]) == (200, f"{CALLER}:2-60:0xsig")
    for age in (1 << 40, -(1 << 40), "60", 1.5, True):
        assert (await ask(signer, "/auth", {"key": "caller", "age": age}))[1]["rule"] == "shape"
    assert len(signer.tokens) == 2


@pytest.mark.parametrize(
    "change",
    [
        {"key": "../identity"},
        {"key": 1},
        {"key": ""},
        {"to": "0x12"},
        {"to": None},
        {"data": "0x123"},
        {"data": "zz"},
        {"gas": "1"},
        {"gas": True},
        {"gas": 0},
        {"gas": -1},
        {"gas": 1 << 50},
        {"value": 1},
        {"value": "-1"},
        {"value": "0x1"},
        {"nonce": 1},
        {"to": DIAMOND + "\n"},
    ],
)
async def test_other_shapes_never_reach_the_port(change: dict[str, Any]) -> None:
    signer = Signer()
    status, answer, _ = await ask(signer, "/tx", GOOD | change)
    assert (status, answer["rule"], signer.submitted) == (400, "shape", [])


async def test_without_a_port_nothing_is_signed() -> None:
    assert (await ask(None, "/tx", GOOD))[:2][0] == 403
    assert (await ask(None, "/auth", {"key": "caller"}))[1]["rule"] == "no-tx"


def raising(error: Exception) -> TxPort:
    class Raising(Signer):
        async def submit(self, key: str, to: str, data: bytes, value: int, gas: int) -> dict[str, Any]:
            raise error

    return Raising()


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (Refused("no", rule="selector"), 403, {"error": "no", "error_class": "refused", "rule": "selector"}),
        (BudgetExceeded("spent"), 403, {"error": "spent", "error_class": "refused", "rule": "budget"}),
        (Unreachable("gone"), 502, {"error": "gone", "error_class": "unreachable", "rule": "unreachable"}),
        (Unfunded("no funds: 0xab, the sponsor key"), 200, NO_FUNDS),
        (ChainError("nonce"), 200, {"error": "nonce", "error_class": "reverted"}),
        (FleetError("x"), 200, {"error": "x", "error_class": "internal"}),
        (
            TxFailed("late", kind="not_mined", tx="0x1"),
            200,
            {"error": "late", "error_class": "timeout", "tx": "0x1"},
        ),
        (
            TxFailed("oog", kind="oog", tx="0x1", gas_used=9),
            200,
            {"tx": "0x1", "status": 0, "gas_used": 9, "block": 0, "reverted": "oog"},
        ),
    ],
)
async def test_what_the_port_raises_is_an_answer(error: Exception, status: int, said: dict[str, Any]) -> None:
    assert (await ask(raising(error), "/tx", GOOD))[:2] == (status, said)


class Slow(Signer):
    def __init__(self) -> None:
        super().__init__()
        self.started, self.finish, self.finished = asyncio.Event(), asyncio.Event(), False

    async def submit(self, key: str, to: str, data: bytes, value: int, gas: int) -> dict[str, Any]:
        self.started.set()
        await self.finish.wait()
        self.finished = True
        return await super().submit(key, to, data, value, gas)


@pytest.mark.parametrize("leave", ["client", "call"])
async def test_a_transaction_in_flight_is_finished_when_the_jail_is_gone(leave: str) -> None:
    slow = Slow()
    broker = Broker(policy_for(), slow)
    with listener() as sock:
        async with broker.egress(sock):
            _, writer = await asyncio.open_connection("127.0.0.1", sock.getsockname()[1])
            writer.write(post("/tx", json.dumps(GOOD).encode()))
            await asyncio.wait_for(slow.started.wait(), 5)
            if leave == "client":
                writer.close()
            later: Callable[[], None] = slow.finish.set
            asyncio.get_running_loop().call_later(0.2, later)
        writer.close()
    assert slow.finished
