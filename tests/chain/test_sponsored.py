"""Throwaway keys that never hold anything: what the sponsor sends for them, and what it refuses to."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fleet.chain.keys import Secret, address_of, create_key, fresh
from fleet.chain.node import abi
from fleet.chain.node.digest import ZERO_ADDRESS
from fleet.chain.node.rpc import Rpc
from fleet.chain.ports import Role, RunScope, TxRequest
from fleet.chain.signing import broadcast, delegate
from fleet.chain.signing.policy import MAX_GAS, KeyFacts, SigningFacts, check, check_sponsored
from fleet.chain.signing.sponsor import SponsoredKeys, Stipends, why_not_sponsored
from fleet.chain.signing.tx import Authorization, UnsignedTx, authorize
from fleet.cli.check import machine
from fleet.devnet import node
from fleet.errors import Refused, RpcError, Unreachable
from tests.chain.conftest import GAS, Chain, Kit, LossyRpc, make_kit
from tests.doubles.chain_memory import MemoryKeys

ANVIL = [pytest.mark.anyio, pytest.mark.devnet]
REGISTER, RELEASE = abi.FUNCTIONS["register"], abi.FUNCTIONS["releaseName"]
RUN, NAME = "ab12", "qa-ab12-1"
DIAMOND, SPONSOR, KEY = "0x" + "d1" * 20, "0x" + "50" * 20, fresh()
MINE, PINNED = address_of(KEY), delegate.delegate_of("0x" + "50" * 20)
FACTS = SigningFacts(
    chain_id=7,
    node_chain_id=7,
    diamond=DIAMOND,
    log=DIAMOND,
    rung="exercise",
    sender=MINE,
    max_fee=10,
    fee_cap=50,
    prefix="qa-ab12-",
    throwaways=frozenset([MINE]),
    sponsor=SPONSOR,
    stipend_left=10**12,
    may_sponsor=True,
)
AT = KeyFacts(nonce=3, code="0x", next=2, delegate_code=delegate.code_of(SPONSOR))
INNER = REGISTER.encode(NAME)
ACT = TxRequest(
    role=Role.THROWAWAY,
    to=DIAMOND,
    gas=100_000,
    charge="writes",
    data=INNER,
    run=RUN,
    key="a",
    sponsored=True,
)
CLEAR = replace(ACT, to=SPONSOR, data=b"", charge="none", cleanup=True)


def word(key: Secret = KEY, *, chain_id: int = 7, address: str = PINNED, nonce: int = 3) -> Authorization:
    return authorize(key, chain_id=chain_id, address=address, nonce=nonce)


WORD, END = word(), word(address=ZERO_ADDRESS)
OUTER = UnsignedTx(
    chain_id=7,
    nonce=0,
    tip=0,
    max_fee=10,
    gas=200_000,
    to=MINE,
    data=delegate.call_data(2, DIAMOND, INNER),
    authorizations=(WORD,),
)
CLEARING = replace(OUTER, data=b"", authorizations=(END,))
DELEGATED = replace(AT, code=delegate.POINTER + PINNED[2:])


def rule(outer: UnsignedTx = OUTER, tx: TxRequest = ACT, key: KeyFacts = AT, **facts: Any) -> str:
    """The rule that refuses, "" when it is signed."""
    try:
        check_sponsored(outer, tx, replace(FACTS, **facts), key)
    except Refused as refused:
        return refused.rule
    return ""


def test_what_a_sponsored_key_does_is_signed() -> None:
    assert rule() == rule(CLEARING, CLEAR) == rule(replace(OUTER, authorizations=()), key=DELEGATED) == ""
    assert rule(CLEARING, CLEAR, may_sponsor=False) == ""  # the profile was changed meanwhile
    assert rule(CLEARING, CLEAR, rung="observe") == ""


CALLS = {
    "another contract": (DIAMOND[:-1] + "0", INNER),
    "another name": (DIAMOND, REGISTER.encode("qa-ab12-2")),
}


@pytest.mark.parametrize(
    ("expected", "outer"),
    [
        ("authorization", {"authorizations": (word(chain_id=8),)}),
        ("authorization", {"authorizations": (word(chain_id=0),)}),  # valid on every chain
        ("authorization", {"authorizations": (word(nonce=4),)}),
        ("authorization", {"authorizations": (word(address=DIAMOND),)}),
        ("authorization", {"authorizations": (END,)}),
        ("authorization", {"authorizations": (word(fresh()),)}),
        ("authorization", {"authorizations": (WORD, WORD)}),
        ("authorization", {"authorizations": (WORD, word(fresh()))}),
        ("authorization", {"authorizations": ()}),
        ("to", {"chain_id": 8}),
        ("to", {"to": DIAMOND}),
        ("to", {"value": 1}),
        ("gas", {"gas": delegate.gas_of(MAX_GAS) + 1, "max_fee": 0}),
        ("gas", {"max_fee": 51}),
        ("gas", {"tip": 11}),
        ("gas", {"tip": -1}),
        ("call", {"data": delegate.call_data(1, DIAMOND, INNER)}),
        ("call", {"data": delegate.call_data(2, *CALLS["another contract"])}),
        ("call", {"data": delegate.call_data(2, *CALLS["another name"])}),
        ("call", {"data": OUTER.data + bytes(32)}),
        ("call", {"data": INNER}),
        ("call", {"data": b""}),
    ],
)
def test_any_other_transaction_of_the_sponsor_is_refused(expected: str, outer: dict[str, Any]) -> None:
    assert rule(replace(OUTER, **outer)) == expected


def test_what_the_sponsor_may_have_to_pay_is_bounded() -> None:
    cost = OUTER.gas * OUTER.max_fee
    assert (rule(stipend_left=cost), rule(stipend_left=cost - 1)) == ("", "stipend")


@pytest.mark.parametrize(
    ("expected", "changes"),
    [
        ("delegate", {"delegate_code": delegate.code_of(DIAMOND)}),
        ("delegate", {"delegate_code": b""}),
        ("delegate", {"code": delegate.POINTER + DIAMOND[2:]}),
        ("authorization", {"code": DELEGATED.code}),
        ("authorization", {"nonce": 2}),
        ("call", {"next": 3}),
    ],
)
def test_what_the_chain_has_must_fit(expected: str, changes: dict[str, Any]) -> None:
    assert rule(key=replace(AT, **changes)) == expected


@pytest.mark.parametrize(
    ("expected", "tx", "facts"),
    [
        ("sponsored", ACT, {"may_sponsor": False}),
        ("sponsored", replace(ACT, role=Role.OPERATOR), {}),
        ("value", replace(CLEAR, cleanup=False), {}),
        ("prefix", replace(ACT, data=REGISTER.encode("claude")), {}),
        ("minted", replace(ACT, data=abi.FUNCTIONS["setMetadata"].encode(7, b"k" * 32, b"")), {}),
        ("never", replace(ACT, data=RELEASE.encode(7)), {}),
        ("never", replace(ACT, data=abi.FUNCTIONS["clearFeedback"].encode()), {}),
        ("never", ACT, {"never": frozenset([REGISTER.selector])}),
        ("selector", replace(ACT, data=b"\xde\xad\xbe\xef"), {}),
        ("to", replace(ACT, to=SPONSOR), {}),
        ("dial", ACT, {"rung": "observe"}),
        ("stop", ACT, {"rung": "stop"}),
        ("stop", CLEAR, {"rung": "stop"}),
        ("key", ACT, {"throwaways": frozenset()}),
        ("chain", ACT, {"node_chain_id": 8}),
    ],
)
def test_the_call_in_it_is_judged_as_if_the_key_signed_it(
    expected: str, tx: TxRequest, facts: dict[str, Any]
) -> None:
    outer = replace(OUTER, data=delegate.call_data(2, tx.to, tx.data)) if tx.data else CLEARING
    assert rule(outer, tx, **facts) == expected


@pytest.mark.parametrize(
    "outer",
    [
        replace(CLEARING, data=OUTER.data),
        replace(CLEARING, authorizations=(END, word(fresh(), address=ZERO_ADDRESS))),
        replace(CLEARING, authorizations=(WORD,)),
        replace(CLEARING, authorizations=()),
    ],
)
def test_what_takes_a_delegate_away_does_nothing_else(outer: UnsignedTx) -> None:
    assert rule(outer, CLEAR) == "authorization"


def deploying(**changes: Any) -> str:
    tx = TxRequest(
        role=Role.SPONSOR,
        to=delegate.DEPLOYER,
        data=delegate.deployment(SPONSOR),
        gas=delegate.DEPLOY_GAS,
        charge="none",
        run=RUN,
    )
    facts = {name: changes.pop(name) for name in ("may_sponsor", "rung", "stipend_left") if name in changes}
    try:
        check(replace(tx, **changes), replace(FACTS, **facts))
    except Refused as refused:
        return refused.rule
    return ""


def test_the_sponsor_deploys_its_own_delegate_and_calls_nothing() -> None:
    assert deploying() == ""
    assert deploying(data=delegate.deployment(MINE)) == deploying(data=b"") == deploying(value=1) == "role"
    assert deploying(to=DIAMOND) == "selector"
    assert deploying(may_sponsor=False) == "role"
    assert deploying(rung="observe") == "dial"
    assert deploying(rung="stop") == "stop"
    assert deploying(stipend_left=5 * 10**6) == "stipend"


class Node(Rpc):
    """A node whose answers about authorisations a test changes."""

    how = ""

    async def batch(self, calls: Sequence[tuple[str, list[Any]]]) -> list[Any]:
        changed = list[tuple[str, list[Any]]]()
        for method, params in calls:
            if method == "eth_estimateGas" and self.how == "ignores":
                params = [{name: one for name, one in params[0].items() if name != "authorizationList"}]
            changed.append((method, params))
        answers = await super().batch(changed)
        if calls[0] == ("eth_getCode", [delegate.DEPLOYER, "latest"]):
            if self.how == "refuses":
                answers[3] = RpcError("Eip7702 is not supported", code=-32003)
            if self.how == "bare":
                answers[0] = "0x"
        return answers


class Sponsored:
    """One run with one key at the sponsor's cost, on anvil."""

    def __init__(self, kit: Kit) -> None:
        self.kit, self.rpc = kit, kit.rpc
        self.sponsor = SponsoredKeys(kit.rpc, kit.signer)
        self.keys = MemoryKeys()
        self.key = self.keys.new("a")
        self.scope = RunScope(run=RUN, prefix=f"qa-{RUN}-", keys=self.keys, payer=kit.purse)
        kit.signer.open_run(self.scope)

    def register(self, name: str = NAME) -> TxRequest:
        to = self.kit.chain.at.diamond
        return replace(ACT, to=to, data=REGISTER.encode(name), gas=GAS.register_name, sponsored=False)

    async def code(self, address: str = "") -> str:
        return str(await self.rpc.call("eth_getCode", [address or self.key, "latest"]))

    @property
    def purposes(self) -> list[str]:
        return [one["purpose"] for one in self.kit.journal.intents.values()]

    @property
    def raws(self) -> list[bytes]:
        return [one["raw"] for one in self.kit.journal.intents.values()]


@pytest.fixture
async def one(chain: Chain) -> AsyncIterator[Sponsored]:
    snapshot = await chain.rpc.call("evm_snapshot")
    async with LossyRpc(chain.rpc.url) as rpc:
        yield Sponsored(await make_kit(chain, rpc, may_sponsor=True, deadline_s=0.5))
    assert await chain.rpc.call("evm_revert", [snapshot])


class TestOnAnvil:
    pytestmark = ANVIL

    async def test_a_key_without_a_coin_acts_and_is_left_as_it_was(self, one: Sponsored) -> None:
        kit = one.kit
        await one.sponsor.act(one.scope, one.register())
        assert await kit.names.owner_of_name(NAME) == one.key
        assert (
            await one.code() == delegate.POINTER + delegate.delegate_of(kit.signer.address(Role.SPONSOR))[2:]
        )
        await one.sponsor.act(one.scope, one.register("qa-ab12-2"))
        (token, other) = one.scope.minted
        release = replace(one.register(), data=RELEASE.encode(token), charge="none", cleanup=True)
        await one.sponsor.act(one.scope, release)
        await one.sponsor.act(one.scope, replace(release, data=RELEASE.encode(other)))
        assert await one.sponsor.sweep(one.scope, "a") == 0
        assert (await one.code(), await one.rpc.balance(one.key)) == ("0x", 0)
        assert one.purposes == ["deploy the delegate", "", "", "", "", "clear a"]
        assert kit.purse.spent == ["writes", "writes"]
        assert 0 < one.scope.stipend_wei < 10**17

    async def test_only_the_sponsor_calls_through_the_key_and_each_call_once(self, one: Sponsored) -> None:
        await one.sponsor.act(one.scope, one.register())
        to, sponsor = one.kit.chain.at.diamond, one.kit.signer.address(Role.SPONSOR)
        calls = [delegate.call_data(number, to, REGISTER.encode("qa-ab12-9")) for number in (0, 1, 2)]
        for sender, data in ((to, calls[1]), (one.key, calls[1]), (sponsor, calls[0]), (sponsor, calls[2])):
            with pytest.raises(RpcError):
                await one.rpc.call("eth_call", [{"from": sender, "to": one.key, "data": "0x" + data.hex()}])
        asked = {"from": sponsor, "to": one.key, "data": "0x" + calls[1].hex()}
        assert await one.rpc.call("eth_call", [asked])

    async def test_a_call_that_reverts_says_why_and_the_next_one_has_its_number(self, one: Sponsored) -> None:
        await one.sponsor.act(one.scope, one.register())
        again = await one.sponsor.act(one.scope, one.register(), check=False)
        assert (again.status, again.reason, again.failure) == (0, "name taken", "reverted")
        assert (await one.sponsor.act(one.scope, one.register("qa-ab12-2"))).status == 1
        starved = await one.sponsor.act(
            one.scope, replace(one.register("qa-ab12-3"), gas=21_000), check=False
        )
        assert (starved.status, starved.failure) == (0, "oog")

    async def test_a_hostile_delegate_is_refused(self, one: Sponsored) -> None:
        await one.sponsor.act(one.scope, one.register())
        place = delegate.delegate_of(one.kit.signer.address(Role.SPONSOR))
        intents = len(one.raws)
        await one.rpc.call("anvil_setCode", [place, "0x" + delegate.code_of(DIAMOND).hex()])
        with pytest.raises(Refused, match="is not the fleet's delegate") as caught:
            await one.sponsor.act(one.scope, one.register("qa-ab12-2"))
        with pytest.raises(Refused) as signer:  # also when only the signer looks
            await one.kit.signer.submit(replace(one.register("qa-ab12-2"), sponsored=True))
        assert (caught.value.rule, signer.value.rule, len(one.raws)) == ("delegate", "delegate", intents)
        await one.sponsor.sweep(one.scope, "a")
        assert await one.code() == "0x"

    async def test_what_was_lost_is_sent_again_at_the_dial_of_now(self, one: Sponsored) -> None:
        await one.sponsor.act(one.scope, one.register())
        signer = one.kit.signer
        (token,) = one.scope.minted
        release = replace(one.register(), data=RELEASE.encode(token), charge="none", cleanup=True)
        for request in (one.register("qa-ab12-2"), release):
            one.rpc.drop = 99  # type: ignore[attr-defined]  # a LossyRpc
            with pytest.raises(Unreachable):
                await one.sponsor.act(one.scope, request)
            one.rpc.drop = 0  # type: ignore[attr-defined]
            one.kit.dial.word = "observe"
            settled = await signer.settle_raw(one.raws[-1])
            assert settled.state == ("mined" if request is release else "failed")
            one.kit.dial.word = "exercise"
        assert await one.kit.names.owner_of_name(NAME) == ""
        one.rpc.drop = 99  # type: ignore[attr-defined]
        with pytest.raises(Unreachable):
            await one.sponsor.sweep(one.scope, "a")
        one.rpc.drop = 0  # type: ignore[attr-defined]
        one.kit.dial.word = "observe"
        assert (await signer.settle_raw(one.raws[-1])).state == "mined"
        assert await one.code() == "0x"

    async def test_what_may_still_come_is_made_void(self, one: Sponsored) -> None:
        """A suspended daemon may send what it signed after its peer has settled the run."""
        signer = one.kit.signer
        assert await one.sponsor._is_ready(one.scope, one.register())
        one.rpc.drop = 99  # type: ignore[attr-defined]  # a LossyRpc
        with pytest.raises(Unreachable):
            await one.sponsor.act(one.scope, one.register())
        one.rpc.drop = 0  # type: ignore[attr-defined]
        raw = one.raws[-1]
        assert not await signer.is_dead(raw)
        await one.rpc.call("anvil_setNonce", [signer.address(Role.SPONSOR), "0x7"])  # another tx, meanwhile
        await one.sponsor.void(one.scope, "a")
        await one.rpc.call("anvil_setNonce", [signer.address(Role.SPONSOR), "0x1"])
        assert await signer.is_dead(raw)
        await one.rpc.call("eth_sendRawTransaction", ["0x" + raw.hex()])
        assert (await signer.settle_raw(raw)).state == "mined"
        assert (await one.code(), await one.kit.names.owner_of_name(NAME)) == ("0x", "")

    async def test_a_release_is_made_anew_without_the_key(
        self, one: Sponsored, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """As after a reorganisation: the key is destroyed, and its delegate is still there."""
        monkeypatch.setattr(broadcast, "CATCH_UP_S", 0.1)
        await one.sponsor.act(one.scope, one.register())
        (token,) = one.scope.minted
        release = replace(one.register(), data=RELEASE.encode(token), charge="none", cleanup=True)
        snapshot = await one.rpc.call("evm_snapshot")
        await one.sponsor.act(one.scope, release)
        raw = one.raws[-1]
        assert await one.rpc.call("evm_revert", [snapshot])

        class Gone(MemoryKeys):
            def get(self, label: str) -> Secret:
                raise Refused(f"the key {label!r} is destroyed", rule="key")

        gone = Gone()
        gone._keys = one.keys._keys
        one.kit.signer.open_run(replace(one.scope, keys=gone))
        assert (await one.sponsor.act_again(one.scope, "a", raw)).state == "mined"
        assert await one.kit.names.owner_of_name(NAME) == ""
        assert (await one.sponsor.act_again(one.scope, "a", one.raws[1])).state == "failed"  # a registration

    @pytest.mark.parametrize(
        ("how", "why"),
        [
            ("refuses", "knows no transactions of type 4 (EIP-7702): Eip7702 is not supported"),
            ("ignores", "it ignores an authorisation"),
            ("bare", "deterministic deployer is not at"),
        ],
    )
    async def test_another_chain_gets_stipends_and_a_sentence(
        self, one: Sponsored, how: str, why: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        async with Node(one.rpc.url) as rpc:
            assert await why_not_sponsored(rpc, one.kit.signer.address(Role.SPONSOR)) == ""
            rpc.how = how
            sponsor = SponsoredKeys(rpc, one.kit.signer)
            for number in (1, 2):
                await sponsor.act(one.scope, one.register(f"qa-ab12-{number}"))
            assert await sponsor.sweep(one.scope, "a") > 0
        assert [text for text in caplog.messages if why in text] == caplog.messages[-1:]
        assert (await one.code(), one.purposes[0]) == ("0x", "stipend a")

    async def test_a_key_of_an_earlier_way_is_cleared_too(self, one: Sponsored) -> None:
        """Stipends are configured again while a key has its delegate, and some coins."""
        await one.sponsor.act(one.scope, one.register())
        await node.fund(one.kit.chain.rpc, one.key, 10**18)
        assert await Stipends(one.rpc, one.kit.signer).sweep(one.scope, "a") > 0
        assert await one.code() == "0x"

    async def test_a_name_can_be_minted_safely_to_a_key_with_a_delegate(self, one: Sponsored) -> None:
        await one.sponsor.act(one.scope, one.register())
        asked = "150b7a02" + f"{0:064x}" * 3 + f"{128:064x}" + f"{0:064x}"
        answer = await one.rpc.call("eth_call", [{"to": one.key, "data": "0x" + asked}])
        assert answer == "0x150b7a02" + "0" * 56

    @pytest.mark.parametrize("mode", ["stipend", "sponsored"])
    async def test_the_machine_s_check_says_whether_keys_hold_nothing(
        self, chain: Chain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
    ) -> None:
        for name in ("CONFIGURATION_DIRECTORY", "STATE_DIRECTORY"):
            monkeypatch.setenv(name, str(tmp_path))
        for folder in ("platforms", "keys"):
            (tmp_path / folder).mkdir(mode=0o700)
        profile = f'name = "x"\n[chain]\nrpc = "{chain.rpc.url}"\nid = {chain.at.chain_id}\n'
        profile += f'diamond = "{chain.at.diamond}"\n[sponsor]\nmode = "{mode}"\n'
        (tmp_path / "platforms" / "x.toml").write_text(profile)
        for role in ("identity", "sponsor"):
            create_key(tmp_path / "keys" / role)
        rows = [row for row in await machine.balances("x") if row[0] == "throwaway keys"]
        said = (
            "throwaway keys",
            True,
            "sponsored, by [sponsor] mode: the chain knows EIP-7702, so keys hold nothing",
        )
        assert rows == ([said] if mode == "sponsored" else [])
