"""Bytes that were signed before a crash go out again only when STOP and the dial permit it at that moment."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from fleet.chain.keys import address_of
from fleet.chain.node import abi
from fleet.chain.node.provider import NodeProvider
from fleet.chain.node.rpc import Rpc
from fleet.chain.signing.judge import Judge, SigningLimits
from fleet.chain.signing.tx import UnsignedTx
from fleet.config import ChainSection
from fleet.errors import Unreachable
from tests.chain.conftest import Chain, Kit, LossyRpc, make_kit

pytestmark = pytest.mark.anyio

DIAMOND, SPONSOR, OTHER = ("0x" + pair * 20 for pair in ("d1", "5a", "ee"))
NOT_AGAIN = ("failed", "never reached the chain, not sent again")


class Turning(LossyRpc):
    """Turns the dial while the question `at` is being answered, and counts what is sent."""

    at = ""
    word = "stop"
    kit: Kit
    sent = 0

    def _turn(self, method: str) -> None:
        self.sent += method == "eth_sendRawTransaction"
        if method == self.at:
            self.kit.dial.word = self.word

    async def batch(self, calls: Sequence[tuple[str, list[Any]]]) -> list[Any]:
        for method, _ in calls:
            self._turn(method)
        return await super().batch(calls)


class Listening(NodeProvider):
    """Tells what is asked one by one, web3's own questions among it."""

    listener: Turning

    async def ask(self, method: str, params: Any) -> Any:
        self.listener._turn(method)
        return await super().ask(method, params)


@pytest.fixture
async def turning(chain: Chain) -> AsyncIterator[Turning]:
    async with Turning(chain.rpc.url) as rpc:
        provider = Listening(rpc.url, timeout_s=10, max_bytes=32 << 20)
        provider.listener = rpc
        rpc.w3.provider = provider
        rpc.kit = await make_kit(chain, rpc)
        yield rpc


async def lost(rpc: Turning, text: str) -> bytes:
    """Journalled bytes of a post that the node never got."""
    rpc.drop = 99
    with pytest.raises(Unreachable):
        await rpc.kit.signer.submit(rpc.kit.post(text))
    rpc.drop, rpc.sent = 0, 0
    (intent,) = rpc.kit.journal.open()
    raw: bytes = intent["raw"]
    return raw


@pytest.mark.devnet
@pytest.mark.parametrize(
    "during", ["eth_getTransactionReceipt", "eth_getTransactionByHash", "eth_getTransactionCount"]
)
async def test_a_stop_that_comes_during_the_look_up_keeps_the_bytes_here(
    turning: Turning, during: str
) -> None:
    raw = await lost(turning, f"STOP during {during}")
    turning.at = during
    settled = await turning.kit.signer.settle_raw(raw)
    assert (settled.state, settled.reason) == NOT_AGAIN
    assert turning.sent == 0
    turning.at, turning.kit.dial.word = "", "observe"
    assert (await turning.kit.signer.settle_raw(raw)).state == "mined"  # a report is sent at every rung


@pytest.mark.devnet
async def test_a_stop_that_comes_before_the_signature_signs_nothing(turning: Turning) -> None:
    turning.at = "eth_getBlockByNumber"  # the last look before it
    with pytest.raises(Exception, match="STOP is set"):
        await turning.kit.signer.submit(turning.kit.post("too late"))
    assert (turning.kit.journal.intents, turning.sent) == ({}, 0)


@pytest.mark.devnet
async def test_what_is_not_wanted_any_more_is_only_looked_up(turning: Turning) -> None:
    raw = await lost(turning, "not wanted")
    settled = await turning.kit.signer.settle_raw(raw, rebroadcast=False)
    assert ((settled.state, settled.reason), turning.sent) == (NOT_AGAIN, 0)
    assert await turning.kit.log.find("not wanted", address_of(turning.kit.identity)) is None


def data(name: str) -> bytes:
    function = abi.FUNCTIONS[name]
    return function.selector + bytes(64)


RESENT = {
    "a report": (DIAMOND, data("submitFeedback"), {"observe", "exercise", "propose", "EXERCISE", "raises"}),
    "a release": (DIAMOND, data("releaseName"), {"observe", "exercise", "propose", "EXERCISE", "raises"}),
    "a cleared main": (DIAMOND, data("clearMain"), {"observe", "exercise", "propose", "EXERCISE", "raises"}),
    "a sweep": (SPONSOR, b"", {"observe", "exercise", "propose", "EXERCISE", "raises"}),
    "a stipend": (OTHER, b"", {"exercise", "propose"}),
    "a mint": (DIAMOND, data("register"), {"exercise", "propose"}),
    "a payment with words": (SPONSOR, data("register"), {"exercise", "propose"}),
    "what is never signed": (DIAMOND, data("setMetadata"), set[str]()),
}


@pytest.mark.parametrize("kind", RESENT)
async def test_what_goes_out_again_at_which_rung(kind: str) -> None:
    to, payload, rungs = RESENT[kind]
    section = ChainSection(rpc="http://127.0.0.1:1", id=31337, diamond=DIAMOND)
    unsigned = UnsignedTx(chain_id=31337, nonce=0, tip=0, max_fee=1, gas=21_000, to=to, data=payload)
    abroad = UnsignedTx(chain_id=1, nonce=0, tip=0, max_fee=1, gas=21_000, to=to, data=payload)
    rung = ""

    def word() -> str:
        if rung == "raises":
            raise OSError("gone")
        return rung

    never = frozenset([abi.FUNCTIONS["setMetadata"].selector])
    async with Rpc(section.rpc) as rpc:
        judge = Judge(rpc, section, SigningLimits(rung=word, never=never), SPONSOR)
        for rung in ("stop", "observe", "exercise", "propose", "EXERCISE", "raises"):
            assert (judge.may_resend(unsigned), rung) == (rung in rungs, rung)
            assert not judge.may_resend(abroad)
