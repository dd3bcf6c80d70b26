"""Throwaway keys whose fee the sponsor pays (Tempo's transactions of type 0x76): bytes, policy, on anvil."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
import rlp

from fleet.chain.keys import Secret, address_of
from fleet.chain.node.abi import FUNCTIONS
from fleet.chain.ports import Role, RunScope, TxRequest
from fleet.chain.signing import policy
from fleet.chain.signing.sponsor import SponsoredKeys, in_force
from fleet.chain.signing.tx import UnsignedTx, parse, sign
from fleet.errors import Refused, Unreachable
from tests.chain.conftest import Kit, LossyRpc, TempoChain, make_kit
from tests.doubles.chain_memory import MemoryKeys

KEY, PAYER = Secret(b"\x11" * 32), Secret(b"\x22" * 32)
CALL = UnsignedTx(
    chain_id=31337,
    nonce=3,
    tip=0,
    max_fee=22_000_000_000,
    gas=300_000,
    to="0x" + "ab" * 20,
    data=bytes.fromhex("f2c298be00"),
    payer=address_of(PAYER),
)
GOLDEN = {
    CALL: (
        "76f8bb827a698085051f4d5c00830493e0dddc94abababababababababababababababababababab8085f2c298be00c0800380"
        "8080f84301a0dc807d1155e1ca35591ec406dcab598a5f6d0065b36e8560f1f1cfbfd0aba11aa01a47ab38e10cd31ce9101e59"
        "851e474f4ff4b544b619dab844963fc2558f7c61c0b8415068d17f13443025783d6180bff49135b4bc7bbd081758517759b2f3"
        "bd78bbda5dd26b0c90b90c1f3dd37587ae3f60a0bf2ff9c287a1e2b80e6eef413d92c1601b",
        "23612ffba04be61469f68cf68bb4064bacd872a5b16f8f492862cb9a7c9cf214",
    ),
    replace(CALL, nonce=0, tip=1, max_fee=1, gas=80_000, to="0x" + "cd" * 20, data=b""): (
        "76f8b1827a69010183013880d8d794cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd8080c08080808080f84380a0e1bea1d9"
        "e62c37ece648b13ddf97d26552efe22386775744b6a886b1dc1bef3ca03c1e14692a31e50f5f39be29f0cdc5e630bda21d5d4a"
        "2e54689dfab725825e50c0b8418552885a1d08aab2c4c5cf48396b37ec21b7859f7eb2f5c6db5423366b76e4be65208070d9c8"
        "533b9d81b8238aea7a288a36d057bceef54e200144eb3c245fe41c",
        "2ab5db2ae02ab586c6880030d3f9d3867250b290802db533144a205d53bf73fe",
    ),
}
"""By pytempo 0.6.2, of the same keys."""
REGISTER, RELEASE = FUNCTIONS["register"], FUNCTIONS["releaseName"]
RUN, NAME = "ab12", "qa-ab12-1"
DIAMOND = "0x" + "d1" * 20


@pytest.mark.parametrize("unsigned", GOLDEN)
def test_the_bytes_are_those_of_the_chain_s_own_library(unsigned: UnsignedTx) -> None:
    raw, digest = GOLDEN[unsigned]
    signed = sign(unsigned, KEY, PAYER)
    assert (signed.raw.hex(), signed.hash) == (raw, f"0x{digest}")
    assert parse(signed.raw) == (unsigned, address_of(KEY))


def _other(place: int, value: object) -> bytes:
    fields: Any = rlp.decode(sign(CALL, KEY, PAYER).raw[1:])
    fields[place] = value
    return b"\x76" + bytes(rlp.encode(fields))


FIELDS: Any = rlp.decode(sign(CALL, KEY, PAYER).raw[1:])


@pytest.mark.parametrize(
    "raw",
    [
        b"\x76",
        b"\x76\xc0",
        _other(4, FIELDS[4] * 2),  # two calls
        _other(4, []),
        _other(4, [[b"", b"", b""]]),  # a contract is created
        _other(5, [[b"\x01" * 20, []]]),  # an access list
        _other(6, b"\x01"),  # a nonce of another key of nonces
        _other(8, b"\x01"),  # valid for a time
        _other(10, b"\x20" * 20),  # another token
        _other(11, b""),  # nobody pays
        _other(12, [b"\x01"]),  # an authorisation
        _other(13, FIELDS[13][:64] + b"\x1d"),
        _other(13, FIELDS[13] + b"\x00"),  # a passkey's, or a key that stands in
        sign(CALL, KEY, PAYER).raw + b"\x00",
    ],
)
def test_any_other_form_is_not_read(raw: bytes) -> None:
    with pytest.raises(ValueError, match="not a transaction of Tempo's"):
        parse(raw)


def test_other_bytes_are_another_payer_s_or_another_sender_s() -> None:
    """What the key or the payer did not sign does not recover to them."""
    unsigned, sender = parse(_other(1, b"\x01"))
    assert sender != address_of(KEY)
    assert unsigned.payer != CALL.payer


ACT = TxRequest(
    role=Role.THROWAWAY,
    to=DIAMOND,
    gas=300_000,
    charge="writes",
    data=REGISTER.encode(NAME),
    run=RUN,
    key="a",
    fee_paid=True,
)
PAID = replace(CALL, to=DIAMOND, data=ACT.data, max_fee=10)
FACTS = policy.SigningFacts(
    chain_id=31337,
    node_chain_id=31337,
    diamond=DIAMOND,
    log=DIAMOND,
    rung="exercise",
    sender=address_of(KEY),
    max_fee=10,
    fee_cap=100,
    prefix="qa-ab12-",
    throwaways=frozenset({address_of(KEY)}),
    sponsor=address_of(PAYER),
    stipend_left=3_000_000,
    may_sponsor=True,
)


def test_what_is_judged_is_paid_for() -> None:
    policy.check_fee_paid(PAID, ACT, FACTS)


@pytest.mark.parametrize(
    ("rule", "unsigned", "request_", "facts"),
    [
        ("payer", {"to": "0x" + "ee" * 20}, {}, {}),
        ("payer", {"data": REGISTER.encode("qa-ab12-2")}, {}, {}),
        ("payer", {"value": 1}, {}, {}),
        ("payer", {"payer": address_of(KEY)}, {}, {}),
        ("payer", {"chain_id": 1}, {}, {}),
        ("payer", {"payer": ""}, {}, {"sponsor": ""}),
        ("payer", {}, {"sponsored": True}, {}),
        ("payer", {}, {"role": Role.SPONSOR}, {}),
        ("payer", {}, {"role": Role.IDENTITY}, {}),
        ("payer", {}, {"value": 1}, {}),
        ("payer", {}, {}, {"may_sponsor": False}),
        ("gas", {"gas": 300_001}, {}, {}),
        ("gas", {"max_fee": 101}, {}, {}),
        ("stipend", {}, {}, {"stipend_left": 2_999_999}),
        ("dial", {}, {}, {"rung": "observe"}),
        ("stop", {}, {}, {"rung": "stop"}),
        ("prefix", {}, {"data": REGISTER.encode("ada")}, {}),
        ("never", {}, {"data": FUNCTIONS["adminBurnNames"].encode([1])}, {}),
        ("key", {}, {}, {"sender": address_of(PAYER)}),
    ],
)
def test_nothing_else_is_paid_for(
    rule: str, unsigned: dict[str, Any], request_: dict[str, Any], facts: dict[str, Any]
) -> None:
    with pytest.raises(Refused) as told:
        policy.check_fee_paid(replace(PAID, **unsigned), replace(ACT, **request_), replace(FACTS, **facts))
    assert told.value.rule == rule


class Paid:
    """One run with one key on a chain of Tempo."""

    def __init__(self, kit: Kit) -> None:
        self.kit, self.rpc = kit, kit.rpc
        self.sponsor = SponsoredKeys(kit.rpc, kit.signer)
        self.keys = MemoryKeys()
        self.key = self.keys.new("a")
        self.scope = RunScope(run=RUN, prefix=f"qa-{RUN}-", keys=self.keys, payer=kit.purse)
        kit.signer.open_run(self.scope)

    def register(self) -> TxRequest:
        return replace(ACT, to=self.kit.chain.at.diamond, gas=2_200_000, fee_paid=False)

    async def lost(self) -> bytes:
        """The bytes of a registration that was signed and reached nobody."""
        self.rpc.drop = 99  # type: ignore[attr-defined]  # a LossyRpc
        with pytest.raises(Unreachable):
            await self.sponsor.act(self.scope, self.register())
        self.rpc.drop = 0  # type: ignore[attr-defined]
        (raw,) = self.raws
        return raw

    @property
    def raws(self) -> list[bytes]:
        return [one["raw"] for one in self.kit.journal.intents.values()]


@pytest.fixture
async def one(tempo: TempoChain) -> AsyncIterator[Paid]:
    snapshot = await tempo.rpc.call("evm_snapshot")
    async with LossyRpc(tempo.rpc.url) as rpc:
        yield Paid(await make_kit(tempo, rpc, may_sponsor=True, deadline_s=0.5))
    assert await tempo.rpc.call("evm_revert", [snapshot])


@pytest.mark.anyio
@pytest.mark.devnet
class TestOnAnvil:
    async def test_a_key_without_a_coin_or_a_token_acts_and_is_left_with_nothing(self, one: Paid) -> None:
        await one.sponsor.act(one.scope, one.register())
        assert await one.kit.names.owner_of_name(NAME) == one.key
        (token,) = one.scope.minted
        data = RELEASE.encode(token)
        await one.sponsor.act(one.scope, replace(one.register(), data=data, charge="none", cleanup=True))
        assert await one.kit.names.owner_of_name(NAME) == ""
        assert await one.sponsor.sweep(one.scope, "a") == 0
        assert await one.rpc.balance(one.key) == 0
        assert await one.sponsor.delegated([one.key]) == []
        assert [raw[:1] for raw in one.raws] == [b"\x76", b"\x76"]
        assert one.kit.purse.spent == ["writes"]
        assert one.scope.stipend_wei > 0

    async def test_what_was_lost_is_sent_again_and_only_once(self, one: Paid) -> None:
        raw = await one.lost()
        assert not await one.kit.signer.is_dead(raw)
        assert (await one.kit.signer.settle_raw(raw)).state == "mined"
        assert (await one.sponsor.act_again(one.scope, "a", raw)).state == "mined"
        assert await one.kit.names.owner_of_name(NAME) == one.key

    async def test_what_may_still_come_is_made_void(self, one: Paid) -> None:
        raw = await one.lost()
        await one.sponsor.void(one.scope, "a")
        assert await one.kit.signer.is_dead(raw)
        assert (await one.kit.signer.settle_raw(raw)).state == "failed"
        assert await one.kit.names.owner_of_name(NAME) == ""

    async def test_which_way_is_in_force_is_said(self, one: Paid) -> None:
        said = "on a chain of Tempo the sponsor pays, and keys hold nothing"
        assert await in_force(one.rpc, "sponsored") == f"sponsored, by [sponsor] mode: {said}"
