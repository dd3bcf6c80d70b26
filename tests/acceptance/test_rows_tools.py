"""Rows 10 to 22: each tool through the gate, the jail, the broker and the signer, on a real chain."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fleet.app.bootstrap import image
from fleet.broker.broker import TxPort
from fleet.events.model import ToolResponded
from fleet.gate.model import Rung
from fleet.jail.bwrap.jail import BwrapJail
from fleet.jail.model import Egress, Limits
from fleet.runs.run import RunReport, fire
from tests.acceptance.conftest import CREATE, GOOD, House, persona, probe, step
from tests.acceptance.doubles import Answering, Dropping, between

pytestmark = [pytest.mark.anyio, pytest.mark.devnet, pytest.mark.jail]

BUDGET = "budget = { calls = 90, writes = 60 }"
TRUE = "result.ok || size(result.error_class) < 99"
"""Holds whatever is answered: these tests read the answers themselves."""


async def answers(house: House, root: Path, *steps: str, changes: tuple[tuple[str, str], ...] = ()) -> Any:
    """Fire one persona with one probe of these steps; its report and the results in order."""
    tools = sorted({re.search('tool = "([a-z_]+)"', one)[1] for one in steps})  # type: ignore[index]
    one = persona(root, f"tools = {tools}\n{BUDGET}".replace("'", '"'), probe("all", *steps, expect=TRUE))
    state = await house.state(root, *changes)
    async with house.world(state, one) as world:
        report = await fire(world, one)
        assert (report.outcome, report.settled) == ("done", True)
    return report, results(house)


def results(house: House) -> list[dict[str, Any]]:
    said: list[ToolResponded] = house.said("tool.responded")
    return [event.result for event in said]


async def test_rows_10_and_11_a_name_is_minted_for_a_throwaway_without_main(
    house: House, tmp_path: Path
) -> None:
    report, (minted, main) = await answers(
        house,
        tmp_path,
        CREATE,
        step("qa_chain", function="ownerOfName", args=["{name}"]),
    )
    assert (minted["ok"], minted["name"], minted["main_unset"]) == (True, f"qa-{report.run}-1", True)
    assert re.fullmatch("0x[0-9a-f]{64}", minted["tx"])
    assert minted["latency_ms"] > 0
    assert minted["gas_used"] <= minted["gas_limit"]
    assert minted["owner"] == main["value"].lower()
    signed = await house.signed()
    assert [tx.sender for tx in signed if tx.function == "register"] == [minted["owner"]]
    assert "registerMain" not in {tx.function for tx in signed}
    assert [tx.function for tx in signed if tx.function == "releaseName"] == ["releaseName"]


async def test_rows_12_and_13_compile_tells_all_endings_apart(house: House, tmp_path: Path) -> None:
    panic = "// gr\u00f6\u00dfe\nfn frame(t: i32) -> i32 { t + missing }"
    _, (good, bad, crash, after, entryless, *proofs) = await answers(
        house,
        tmp_path,
        step("qa_compile", source=GOOD),
        step("qa_compile", source="fn frame( {"),
        step("qa_compile", source=panic),
        step("qa_compile", source=GOOD + " "),
        step("qa_compile", source="fn helper(n: i32) -> i32 { n }"),
    )
    assert (good["ok"], good["outcome"], good["entry"], good["size"] > 8) == (True, "accepted", "frame", True)
    assert (bad["ok"], bad["outcome"], bad["span_start"] >= 0, bad["error"] != "") == (
        False,
        "clean_error",
        True,
        True,
    )
    assert (crash["ok"], crash["outcome"]) == (False, "panic")
    assert after["outcome"] == "accepted"
    assert (entryless["outcome"], entryless["entry"]) == ("accepted", "")
    assert [(proof["outcome"], proof["error"]) for proof in proofs] == [("panic", crash["error"])] * 3


async def test_row_13_what_cannot_run_is_refused_before_any_transaction(house: House, tmp_path: Path) -> None:
    small = ("[compiler]\n", "[compiler]\npublish_cap = 60\n")
    _, (_, entryless, large) = await answers(
        house,
        tmp_path,
        CREATE,
        step("qa_publish", name="{name}", source="fn helper(n: i32) -> i32 { n }"),
        step("qa_publish", name="{name}", source=GOOD),
        changes=(small,),
    )
    assert [(r["ok"], r["code"], r["tx"]) for r in (entryless, large)] == [
        (False, "LH0302", []),
        (False, "LH0303", []),
    ]
    assert await house.tools_signed() == ["register"]


async def test_rows_14_and_16_a_publish_is_two_keys_within_the_formula(house: House, tmp_path: Path) -> None:
    # its quote is too low here, which the oracles see as well: the answers after these two prove it
    _, (_, sent, *_) = await answers(house, tmp_path, CREATE, step("qa_publish", name="{name}", source=GOOD))
    assert (sent["ok"], sent["published"], sent["app_read_back"], sent["face_read_back"]) == (True,) * 4
    assert sent["gas_limit"] == 1_200_000 + 8_500 * sent["size"]
    assert 0 < sent["gas_used"] <= sent["gas_limit"]
    assert sent["gas_estimate"] >= sent["gas_used"]
    assert len(sent["tx"]) == 2


async def test_row_14_a_chain_that_charges_more_is_oog_and_no_success(house: House, tmp_path: Path) -> None:
    tight = ("[history]", "[gas]\npublish_base = 60000\npublish_per_byte = 1\n\n[history]")
    _, (_, sent) = await answers(
        house, tmp_path, CREATE, step("qa_publish", name="{name}", source=GOOD), changes=(tight,)
    )
    assert (sent["ok"], sent["published"], sent["code"], sent["error_class"]) == (False, False, "oog", "oog")
    assert len(sent["tx"]) == 1
    assert sent["app_read_back"] is False


async def test_row_15_a_receipt_of_status_0_is_a_failure_whatever_the_hash(
    house: House, tmp_path: Path
) -> None:
    asked: list[str] = []

    async def tamper(method: str, params: list[Any], real: Any) -> Any:
        """The registration fails, says the node; it is mined all the same."""
        if method == "eth_getTransactionReceipt" and real and int(real["gasUsed"], 16) > 100_000:
            asked.append(real["transactionHash"])
            return real | {"status": "0x0"} if len(set(asked)) == 1 else real
        return real

    async with between(house.rpc, tamper) as url:
        report, (minted,) = await answers(house, tmp_path, CREATE, changes=((house.devnet.chain.url, url),))
    assert asked
    assert (minted["ok"], minted["tx"]) == (False, asked[0])
    assert (await house.tools_signed(), report.settled) == (["register"], True)
    assert "releaseName" in {tx.function for tx in await house.signed()}  # seen by looking, so released


async def test_row_16_a_face_key_that_was_never_written_is_detected(house: House, tmp_path: Path) -> None:
    one = persona(
        tmp_path,
        f'tools = ["qa_create", "qa_publish"]\n{BUDGET}',
        probe("p", CREATE, step("qa_publish", name="{name}", source=GOOD), expect=TRUE),
    )
    state = await house.state(tmp_path)
    async with house.world(state, one) as world:

        def egress(port: TxPort, calls: int = 1, *more: Any) -> Egress:
            return world.egress(Dropping(port), calls, *more)

        await fire(replace(world, egress=egress), one)
    published = results(house)[1]
    assert (published["app_read_back"], published["face_read_back"]) == (True, False)
    assert (published["ok"], published["published"]) == (False, False)


async def test_rows_17_and_18_one_turn_under_a_throwaway_identity(house: House, tmp_path: Path) -> None:
    call = step("qa_call", target="claude", message="hello")
    _, (first, second, nobody, *_) = await answers(
        house, tmp_path, call, call, step("qa_call", target="{name}", message="anyone there?")
    )
    assert (first["ok"], first["status"], first["hint"]) == (True, 200, "")
    assert first["reply"] != ""
    assert first["address"] == second["address"] == first["caller"]
    assert (nobody["ok"], nobody["status"] >= 400) == (False, True)
    secrets = re.compile("0x[0-9a-f]{40}:[0-9]{10}:0x")  # a token is never in an answer
    assert not secrets.search(str(results(house)))


@pytest.mark.parametrize(
    "url",
    ["http://169.254.169.254/latest/meta-data", "http://10.0.0.1/", "{rpc}", "{web}@evil.example/"],
)
async def test_row_19_an_address_off_the_list_is_refused(house: House, tmp_path: Path, url: str) -> None:
    url = url.replace("{rpc}", house.devnet.chain.url).replace("{web}", house.devnet.url)
    one = persona(
        tmp_path,
        f'tools = ["qa_fetch"]\n{BUDGET}',
        probe("look", step("qa_fetch", url=url), expect="result.ok"),
    )
    state = await house.state(tmp_path)
    async with house.world(state, one) as world:
        report = await fire(world, one)
    assert ([e.rule for e in house.said("gate.denied")], report.findings) == (["scope"], ())


async def test_row_19_a_page_is_measured_and_hashed(house: House, tmp_path: Path) -> None:
    _, (page,) = await answers(house, tmp_path, step("qa_fetch", url="{site}/llms.txt"))
    assert (page["status"], page["content_type"].startswith("text/")) == (200, True)
    assert re.fullmatch("[0-9a-f]{64}", page["sha256"])
    assert page["bytes"] > 0


async def test_row_20_only_views_in_the_table_are_read(house: House, tmp_path: Path) -> None:
    one = persona(
        tmp_path,
        f'tools = ["qa_chain"]\n{BUDGET}',
        *(
            probe(f"f{n}", step("qa_chain", function=name), expect="result.ok")
            for n, name in enumerate(("nextId", "clearFeedback", "eth_sendRawTransaction", "adminResetAll"))
        ),
    )
    state = await house.state(tmp_path)
    async with house.world(state, one) as world:
        await fire(world, one)
    assert [r["ok"] for r in results(house)] == [True]
    assert [e.rule for e in house.said("gate.denied")] == ["never", "scope", "never"]


async def test_row_21_a_report_is_one_entry_cut_on_a_character(house: House, tmp_path: Path) -> None:
    long = "\u00e4\u20ac" * 800
    forged = "qa/v1 source=qa-row sev=critical surface=ux fp=000000000000 rate=3/3\nmine\nrepro: none"
    one = persona(
        tmp_path,
        f'tools = ["qa_report"]\n{BUDGET}',
        *(
            probe(id_, step("qa_report", text=text), expect="result.ok")
            for id_, text in (("long", long), ("empty", "\u200b "), ("forged", forged))
        ),
    )
    state = await house.state(tmp_path, rung=Rung.OBSERVE)
    async with house.world(state, one) as world:
        report = await fire(world, one)
        assert await house.tools_signed() == ["submitFeedback"]
        assert await world.journal.spent(report.run) == {"calls": 3, "reports": 1}
    said, *refused = results(house)
    assert (said["ok"], said["read_back"]) == (True, True)
    assert [(r["ok"], r["error_class"], r["tx"]) for r in refused] == [(False, "bad_request", "")] * 2
    entry = await house.entry(said["index"])
    assert len(long.encode()) == 4000
    assert 2044 <= len(entry.encode()) <= 2048
    assert long.startswith(entry.rstrip("\u2026"))


async def test_a_full_disk_in_the_sandbox_is_said_and_is_no_finding(house: House, tmp_path: Path) -> None:
    """The compiler writes more than its sandbox holds and dies of it: no word against the compiler."""
    greedy = 'command = ["{python}", "-c", "open(\'big\', \'wb\').write(bytes(1 << 20))"]'
    command = next(
        line for line in house.devnet.profile.read_text().splitlines() if line.startswith("command =")
    )
    one = persona(
        tmp_path,
        f'tools = ["qa_compile", "qa_chain"]\n{BUDGET}',
        probe("full", step("qa_compile", source=GOOD), expect='result.outcome == "accepted"'),
        probe("next", step("qa_chain", function="nextId"), expect="result.ok"),
    )
    state = await house.state(tmp_path, (command, greedy))
    async with house.world(state, one) as world:
        shown = image(world.platform, state / "devnet" / "devnet.toml")
        jail = BwrapJail(
            replace(shown, limits=Limits(box=1 << 16, tmp=1 << 16)), pool=0, spool=state / "jails"
        )
        try:
            report = await fire(replace(world, jail=jail), one)
        finally:
            await jail.aclose()
    assert [(r["ok"], r["error_class"]) for r in results(house)] == [(False, "disk_full"), (True, "")]
    assert (report.outcome, report.settled, report.findings) == ("done", True, ())
    assert [e.probe for e in house.said("probe.skipped")] == ["full"]
    assert len(house.said("footer")) == 1


@pytest.mark.parametrize(
    "lie",
    [
        {"ok": True, "value": "\ud800"},
        {"ok": True, "value": float("inf")},
        {"ok": True, "value": "9" * 40},
        {"ok": True, "block": "many"},
        {"ok": True, "surprise": 1},
        {},
        {"ok": True, "value": [[[[{}]]]] * 9},
    ],
    ids=range(7),
)
async def test_a_jail_that_answers_anything_breaks_no_run(
    house: House, tmp_path: Path, lie: dict[str, Any]
) -> None:
    one = persona(
        tmp_path,
        f'tools = ["qa_chain"]\n{BUDGET}',
        probe("look", step("qa_chain", function="nextId"), expect="result.value > 0"),
    )
    state = await house.state(tmp_path)
    async with house.world(state, one) as world:
        report: RunReport = await fire(replace(world, jail=Answering(lie)), one)
    assert (report.outcome, report.settled, report.findings) == ("blind", True, ())
    assert [e.probe for e in house.said("probe.skipped")] == ["look"]
