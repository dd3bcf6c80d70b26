"""What calls take is on record, and what takes too much ends by itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fleet.broker.egress_record import EgressRecord
from fleet.config.limits import LimitsSection
from fleet.drivers.session import RunOver
from fleet.events.record import STAMP
from fleet.events.timeline import words
from fleet.findings.kinds import beyond_rights, kinds
from fleet.jail.model import End, Outcome
from fleet.runs.call.measures import FEWEST, ErrorShare, JailMeasures
from fleet.runs.call.session import AdmittedCall, CallPurpose
from fleet.runs.call.sightings import Sightings
from fleet.service.resources import ResourceWatch
from tests.runs.table import PLATFORM, persona, seated

pytestmark = pytest.mark.anyio
QUICK = Outcome(end=End.EXITED, code=0, stdout=b"", stderr=b"", seconds=1.0)
SLOW = replace(QUICK, seconds=2.5, cpu_s=0.5, memory=64 << 20)


def asked(status: int = 200, rule: str = "", ms: float = 10.0) -> EgressRecord:
    return EgressRecord(
        verb="GET", host="site", what="/", status=status, rule=rule, ms=ms, sent=9, received=90
    )


def test_a_call_of_more_than_a_second_has_its_figures_of_machine_and_platform() -> None:
    some = JailMeasures(
        [asked(), asked(503, ms=30), asked(504, "timeout", ms=500), asked(403, "never"), asked()]
    )
    assert some.event(3, 5, QUICK) is None
    one = some.event(3, 5, SLOW)
    assert one is not None
    assert one.service_memory > 1 << 20
    assert one.model_dump(exclude={*STAMP, "type", "service_memory"}) == {
        "call": 3,
        "last": 5,
        "seconds": 2.5,
        "cpu_s": 0.5,
        "memory": 64 << 20,
        "requests": 4,
        "refused": 1,
        "failed": 2,
        "timeouts": 1,
        "sent": 36,
        "received": 360,
        "mean_ms": 137.5,
        "p95_ms": 429.5,
        "statuses": {"200": 2, "503": 1, "504": 1},
    }
    assert words(one) == (
        "call 3 took 2.5 s, 0.5 s of processor, 64 MB; 4 requests, 2 failed, 360 bytes, 138 ms"
    )


def test_a_share_of_failures_counts_once_there_are_enough_and_lasts_until_it_falls() -> None:
    one = ErrorShare(10.0)
    for number in range(FEWEST - 1):
        assert one.take("site", 0.1 * number, fails=True, share=0.5) == (1.0, 0.0)
    assert one.take("site", 3.0, fails=True, share=0.5) == (1.0, 0.0)
    assert one.take("site", 8.0, fails=True, share=0.5) == (1.0, 5.0)
    for _ in range(FEWEST + 2):
        last = one.take("site", 9.0, fails=False, share=0.5)
    assert last == (21 / 43, 0.0)
    assert one.take("other", 9.0, fails=True, share=0.5) == (1.0, 0.0)


async def test_requests_that_fail_for_too_long_are_told_and_end_the_run(tmp_path: Path) -> None:
    limits = LimitsSection(error_share=0.5, error_s=100)
    platform = PLATFORM.model_copy(update={"limits": limits})
    async with seated(tmp_path, persona(), platform=platform) as table:
        session = table.drive.runner.session
        for _ in range(FEWEST):
            session._noted(asked(502))
        began = session._errors._since["site"]
        session._errors._since["site"] = began - 80
        session._noted(asked(502))
        assert session.sightings.found["strain", "site fails"] == (
            "100% of its requests failed for 80 s, of 100 s at most"
        )
        await session.call("qa_fetch", {"url": "http://site/"})
        session._errors._since["site"] = began - 101
        session._noted(asked(502))
        with pytest.raises(RunOver) as over:
            await session.call("qa_fetch", {"url": "http://site/"})
        assert (over.value.outcome, over.value.detail) == (
            "target_degraded",
            "site: 100% of its requests failed for 101 s, of 100 s at most (limits.error_share = 0.5)",
        )


async def test_what_fails_again_after_its_wait_is_asked_nothing_until_it_answers_a_look(
    tmp_path: Path,
) -> None:
    async with seated(tmp_path, persona()) as table:
        session, health = table.drive.runner.session, table.world.health
        args = {"url": "http://site/page"}
        how = CallPurpose("", "", proof=False, looks_s=0.0)
        admitted = await session.admit(await session.judge("qa_fetch", args, how))
        session.breaker.withdraw(["web site"])
        session.breaker._patience_s = 0.0
        assert isinstance(admitted, AdmittedCall)
        session.count(admitted, {"ok": False, "error_class": "unreachable"})
        why = "site failed again after it was left alone for a while (unreachable)"
        assert health.halted("site") == f"{why}: nothing else is asked until it answers a look"
        assert session.sightings.found["strain", "site, left alone"] == why
        assert health.due([("site", PLATFORM.care.at("http://site/"))], table.world.clock, 0) == ["site"]
        assert health.looked("site", 4.0) == ""
        assert health.halted("site") == ""


def test_a_host_that_limits_us_or_has_no_turn_left_is_told() -> None:
    seen = Sightings()
    for record in (asked(429), asked(429, "busy"), asked(429, "requests")):
        seen.requested(record)
    assert seen.found == {("strain", "rate site"): "answered 429"}


def test_a_service_that_grows_is_told_and_one_that_is_too_large_stops() -> None:
    held, waits, megabyte = [300 << 20], [0.5], 1 << 20
    limits = LimitsSection(memory_megabytes=1000, load=8)
    watch = ResourceWatch(limits, memory=lambda: held[0], load=lambda: waits[0])
    assert watch.look(0) == ("", "")
    held[0] = 601 * megabyte
    assert watch.look(30) == ("the service holds 601 MB of memory, 300 a minute ago", "")
    assert watch.look(91) == ("", "")  # it stays as it is
    held[0] = 760 * megabyte
    assert watch.look(92) == ("the service holds 760 MB of memory, of 1000 at most", "")
    held[0] = 1000 * megabyte
    told, over = watch.look(93)
    assert told == over == "the service holds 1000 MB of memory, of 1000 at most"
    held[0], waits[0] = 300 * megabyte, 8.0
    assert watch.look(94)[1] == "8 processes wait for each processor, of 8 at most"


def test_what_a_caller_had_no_right_to_is_known_by_its_kind() -> None:
    assert beyond_rights(f"{kinds()['self-raised-rights'].name}: /me")
    assert not beyond_rights("Secret is public at /keys")
