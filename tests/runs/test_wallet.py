"""The throwaway keys of one run, as its calls see them."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from fleet.clock import SystemClock
from fleet.errors import Refused
from fleet.gate.dial import write_dial
from fleet.gate.model import Rung
from fleet.runs.call.wallet import STAND_INS, Wallet
from sandbox.tools import TOOLS
from tests.runs.table import RUN, look, persona, seated

pytestmark = pytest.mark.anyio

CALLER = TOOLS["qa_call"].needs_key


async def test_a_call_is_given_every_key_and_their_files_are_read_once(tmp_path: Path) -> None:
    name = f"qa-{RUN}-1"
    async with seated(tmp_path, persona(look("a"))) as table:
        await Wallet(table.world, RUN).ready("qa_create", {"name": name})
        wallet = Wallet(table.world, RUN)  # of a process that goes on
        assert wallet.addresses().keys() == {name}
        await wallet.ready("qa_call", {})
        assert wallet.addresses() == wallet.keys.addresses()
        assert wallet.addresses().keys() == {name, CALLER}
        (table.folder / "keys" / CALLER).unlink()
        assert wallet.addresses().keys() == {name, CALLER}


async def test_a_second_identity_is_made_when_a_call_needs_it(tmp_path: Path) -> None:
    async with seated(tmp_path, persona(look("a"))) as table:
        wallet = Wallet(table.world, RUN)
        for args in ({"caller": "other"}, {"token": "foreign"}, {"claim_from": "other"}):
            await wallet.ready("qa_call", {"target": "a", "message": "x"})
            await wallet.ready("qa_call", {"target": "a", "message": "x"} | args)
            assert set(wallet.addresses()) == {CALLER, "other"}
        assert len(set(wallet.addresses().values())) == 2
        stamps = [int((await wallet.token("other", "r", age))["token"].split(":")[1]) for age in (0, 90)]
        assert stamps[0] - stamps[1] == 90
        tokens = [(await wallet.token("other", "r"))["token"] for _ in range(90)]
        for at in range(len(tokens) - 40):  # a platform may take two equal requests for one, sent twice
            assert len(set(tokens[at : at + 40])) == 40
        assert all(0 <= stamps[0] + 15 - int(token.split(":")[1]) <= 60 for token in tokens)


async def test_an_identity_without_credit_is_replaced_before_the_next_question_and_not_within_one(
    tmp_path: Path,
) -> None:
    async with seated(tmp_path, persona(look("a"))) as table:
        wallet = Wallet(table.world, RUN)
        await wallet.ready("qa_call", {})
        first = wallet.addresses()[CALLER]
        wallet.wear(CALLER)
        await wallet.ready("qa_call", {})
        assert wallet.addresses()[CALLER] == first
        wallet.renew()
        await wallet.ready("qa_call", {})
        second = wallet.addresses()[CALLER]
        assert second != first
        assert (await wallet.token(CALLER, "r"))["address"] == second
        assert set(wallet.keys.labels()) == {CALLER, f"{CALLER}-1"}
        for _ in range(STAND_INS + 5):
            wallet.wear(CALLER)
            wallet.renew()
        await wallet.ready("qa_call", {})
        assert f"{CALLER}-{STAND_INS}" in wallet.keys.labels()
        assert f"{CALLER}-{STAND_INS + 1}" not in wallet.keys.labels()


async def test_a_caller_is_replaced_when_its_credit_does_not_pay_the_next_question(tmp_path: Path) -> None:
    async with seated(tmp_path, persona(look("a"))) as table:
        wallet = Wallet(table.world, RUN)
        await wallet.ready("qa_call", {})
        first = wallet.addresses()[CALLER]
        wallet.pays(credit=1_000, charged=72)
        assert wallet.affords == 12
        wallet.renew(CALLER, 12)
        await wallet.ready("qa_call", {})
        assert wallet.addresses()[CALLER] == first
        wallet.pays(credit=200, charged=72)
        wallet.renew(CALLER, 40)  # more than any identity pays: another one would not help
        wallet.renew(CALLER, 2)
        await wallet.ready("qa_call", {})
        assert wallet.addresses()[CALLER] != first
        assert wallet.affords == 13


@pytest.mark.parametrize(
    ("fence", "rule"), [("stop", "stop"), ("dial", "dial"), ("budget", "budget"), ("deadline", "deadline")]
)
@pytest.mark.parametrize("act", ["token", "submit"])
async def test_each_signature_asks_every_fence_at_the_moment_it_acts(
    tmp_path: Path, fence: str, rule: str, act: str
) -> None:
    async with seated(tmp_path, persona(look("a"))) as table:
        over = table.world.clock.monotonic() - 1.0 if fence == "deadline" else math.inf
        wallet = Wallet(table.world, RUN, deadline=over)
        await wallet.ready("qa_call", {})
        if fence == "stop":
            table.stop()
        elif fence == "dial":
            write_dial(table.world.state, Rung.OBSERVE, "a test", "test", SystemClock())
        elif fence == "budget":
            wallet.spent = "the budget of 3 writes is spent"
        signed = wallet.token(CALLER, "r")
        if act == "submit":
            signed.close()
            signed = wallet.submit(CALLER, "0x" + "11" * 20, b"\x00" * 4, 0, 30_000)
        with pytest.raises(Refused) as refused:
            await signed
        assert (refused.value.rule, wallet.acts) == (rule, 0)


async def test_who_has_called_does_not_call_again_once_retired(tmp_path: Path) -> None:
    async with seated(tmp_path, persona(look("a"))) as table:
        wallet = Wallet(table.world, RUN)
        wallet.retire()
        wallet.renew()
        await wallet.ready("qa_call", {"caller": "other"})
        first = wallet.addresses()
        assert set(first) == {CALLER, "other"}  # nobody had called: nobody is replaced
        wallet.retire()
        assert wallet.addresses() == first  # never within a question
        wallet.renew(CALLER)
        await wallet.ready("qa_call", {"caller": "other"})
        assert not {*first.values()} & {wallet.addresses()[label] for label in (CALLER, "other")}
