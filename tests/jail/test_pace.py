"""The pace at a host: slower while it is strained, back when it is well, and untouched by one broken page."""

from __future__ import annotations

import math
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.pace import CASES, RATE, served
from fleet.broker.broker import Broker
from fleet.broker.egress_policy import EgressPolicy, parse_target
from fleet.broker.pace import (
    APART_S,
    AWAY_MS,
    CONNECTIONS,
    FLOOR,
    NEAR,
    QUIET_S,
    RECOVERY_S,
    SICK_S,
    HostLatency,
    HostPace,
    HostStrain,
    SharedTurns,
    Slow,
)
from fleet.broker.rpc_policy import Denied
from fleet.config import Platform, parse
from fleet.config.escalation import LEVELS, Level
from fleet.jail.process import boot_id
from tests.jail.test_broker_forward import Rig, rig
from tests.sandbox.doubles import Server, http_answer, listener, policy_for

anyio = pytest.mark.anyio


@anyio
@pytest.mark.parametrize("name", sorted(CASES))
async def test_a_strained_host_is_asked_less_and_a_healthy_one_as_before(name: str) -> None:
    case = CASES[name]
    seconds = await served(replace(case, recent=type(case.recent)(), free_at=0.0))
    well = [*seconds[1:60], *seconds[200:]]
    assert all(
        RATE * 0.95 <= sum(well[at : at + 10]) / 10 <= RATE * 1.05 for at in range(0, len(well) - 9, 10)
    )
    if name == "well":
        assert min(seconds[1:]) >= RATE - 1
    else:
        assert sum(seconds[70:120]) / 50 <= 3.0
        assert sum(seconds[70:120]) / 50 >= RATE * FLOOR
        assert seconds[135] < RATE * 0.6  # it recovers slowly


STEPS = st.lists(st.tuples(st.floats(0, 100), st.booleans()), max_size=40)


@given(STEPS)
def test_a_share_is_between_the_floor_and_all_and_only_strain_lowers_it(
    steps: list[tuple[float, bool]],
) -> None:
    now, strain = 0.0, HostStrain()
    for pause, sick in steps:
        before, now = strain.share_at(now), now + pause
        assert strain.share_at(now) >= before
        apart = now - strain.cut_at >= APART_S
        after = strain.strained(now, sick=sick)
        whole = strain.share_at(now)
        assert after.share_at(now) == (max(FLOOR, whole / 2) if apart else whole)
        assert 0 <= after.sick_s(now) <= now
        strain = after
    assert FLOOR <= strain.share_at(now) <= 1
    assert strain.share_at(now + QUIET_S + RECOVERY_S) == 1
    assert strain.sick_s(now + SICK_S + 1) == 0


def paced() -> tuple[HostPace, list[float]]:
    now = [1000.0]
    return HostPace(10.0, clock=lambda: now[0]), now


def test_many_answers_of_one_moment_halve_the_pace_once() -> None:
    pace, _ = paced()
    for _ in range(20):
        pace.answered("a", "/", 429)
    assert (pace.rate("a"), pace.rate("b")) == (5.0, 10.0)


def test_one_broken_page_slows_nothing_and_several_are_a_sick_host() -> None:
    pace, now = paced()
    for _ in range(50):
        now[0] += 5
        assert pace.answered("a", "/broken", 503) == 0
        assert pace.answered("a", "/", 200) == 0
    assert pace.rate("a") == 10.0
    for count in range(60):
        now[0] += 2
        sick_s = pace.answered("a", f"/{count % 2}", 503)
    assert (pace.rate("a"), sick_s) == (10.0 * FLOOR, 118.0)
    now[0] += SICK_S + 1
    assert pace.answered("a", "/", 200) == 0


def test_a_limit_on_our_rate_is_no_sickness() -> None:
    pace, now = paced()
    for count in range(200):
        now[0] += 2
        assert pace.answered("a", f"/{count}", 429) == 0


def test_pages_are_compared_with_themselves() -> None:
    pace, _ = paced()
    for _ in range(3):
        for page, ms in (("/slow", 3000.0), ("/quick", 2.0)):
            pace.answered("a", page, 200, ms)
    for _ in range(40):  # usual, or little more in milliseconds
        for page, ms in (("/slow", 3500.0), ("/quick", 90.0)):
            pace.answered("a", page, 200, ms)
    assert pace.rate("a") == 10.0
    for _ in range(8):
        pace.answered("a", "/quick", 200, 150.0)
    assert pace.rate("a") == 5.0


@anyio
async def test_what_a_host_answers_sets_the_pace_of_the_broker() -> None:
    pace = HostPace(1000.0)
    async with rig(pace=pace) as it:
        it.site.answer = lambda _: http_answer(429, b"")
        await it.ask(it.site.url + "/x", "GET", "", b"", "connection: close")
        (key,) = pace._strain
        assert pace.rate(key) == pytest.approx(500.0, rel=0.01)
        assert it.broker.records[-1].strained_s == 0


def sharing(folder: Path, now: list[float], slept: list[float]) -> HostPace:
    """A process's pace over this folder; time passes only while it sleeps."""

    async def sleep(seconds: float) -> None:
        slept.append(round(seconds, 6))
        now[0] += seconds

    return HostPace(10.0, clock=lambda: now[0], sleep=sleep, shared=SharedTurns(folder))


@anyio
async def test_two_processes_over_one_folder_take_turns(tmp_path: Path) -> None:
    now, slept = [100.0], list[float]()
    daemon, trial = (sharing(tmp_path / "pace", now, slept) for _ in range(2))
    for pace in (daemon, trial, trial, daemon):
        await pace.turn("a")
    assert slept == [0.1, 0.1, 0.1]
    await trial.turn("b")  # another host
    assert len(slept) == 3
    daemon.hold("a", 30.0)  # the host asked it for a pause
    await trial.turn("a")
    assert slept[3:] == [30.0]


@anyio
async def test_what_is_only_held_is_held_for_every_process(tmp_path: Path) -> None:
    now, slept = [100.0], list[float]()
    daemon, trial = (sharing(tmp_path / "pace", now, slept) for _ in range(2))
    assert (trial.held_by_any("POST /sign-up"), list(tmp_path.iterdir())) == (0.0, [])
    daemon.hold("POST /sign-up", 30.0)
    assert (trial.held_by_any("POST /sign-up"), trial.held("POST /sign-up")) == (30.0, 0.0)
    now[0] += 30.0
    assert (trial.held_by_any("POST /sign-up"), daemon.held_by_any("POST /sign-up")) == (0.0, 0.0)


@anyio
@pytest.mark.parametrize(
    "text", [b"", b"x", b"other-boot 900000.0\n", b"\xff" * 200, f"{boot_id()} nan\n".encode()]
)
async def test_a_file_of_another_boot_or_of_nobody_holds_nothing_up(tmp_path: Path, text: bytes) -> None:
    now, slept = [100.0], list[float]()
    await sharing(tmp_path, now, slept).turn("a")
    (file,) = tmp_path.iterdir()
    file.write_bytes(text)
    await sharing(tmp_path, now, slept).turn("a")
    assert slept == []


@anyio
async def test_without_its_folder_a_process_has_its_own_pace(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    now, slept = [100.0], list[float]()
    pace = sharing(tmp_path / "file", now, slept)
    for _ in range(3):
        await pace.turn("a")
    assert slept == [0.1, 0.1]
    assert caplog.text.count("is not shared with other processes") == 1


def group_pace(bytes_s: float = math.inf) -> tuple[HostPace, list[float]]:
    """A pace whose clock only its own waits move."""
    now = [1000.0]

    async def sleep(seconds: float) -> None:
        now[0] += seconds

    return HostPace(10.0, clock=lambda: now[0], sleep=sleep, bytes_s=bytes_s), now


@anyio
async def test_hosts_of_one_network_are_asked_less_before_it_is_full_and_others_as_before() -> None:
    pace, _ = group_pace()
    for host in "abcdefgh":
        await pace.turn_among(host, {"net": 40.0, "all": 1000.0})
    await pace.turn_among("z", {"other net": 40.0, "all": 1000.0})
    assert (pace.rate("a"), pace.rate("h"), pace.rate("z")) == (4.0, 4.0, 10.0)  # 8 x 4 are four fifths of 40
    assert sum(pace.rate(host) for host in "abcdefgh") == NEAR * 40


@anyio
async def test_no_group_gets_more_turns_than_its_rate_and_all_hosts_wait_once_it_is_spent() -> None:
    pace, now = group_pace()
    for at in range(40):  # hosts that were never asked before have turns of their own
        await pace.turn_among(f"host {at}", {"all": 20.0})
    assert now[0] == pytest.approx(1000 + 39 / 20)


@anyio
async def test_a_host_has_so_many_connections_at_once_and_the_next_waits_for_one_that_ends() -> None:
    origin, other = (parse_target(f"http://{host}.test/").origin for host in "ab")
    policy = replace(policy_for("http://a.test"), pace=HostPace(1e9), request_s=0.2)
    async with AsyncExitStack() as stack:
        for _ in range(CONNECTIONS):
            await stack.enter_async_context(policy.connection(origin))
        with pytest.raises(Denied, match="its rate is limited"):
            async with policy.connection(origin):
                pass
        async with policy.connection(other):
            pass
    async with policy.connection(origin):
        pass


@anyio
async def test_what_does_more_is_asked_more_slowly() -> None:
    pace, now = group_pace()
    for _ in range(11):
        await pace.turn("a", 0.5)
    assert now[0] == pytest.approx(1002)
    web = parse(Platform, 'name = "p"\n[web]\nimpact_shares = { high = 0.25 }\n', file="p.toml").web
    assert [web.share("shop.test", level) for level in LEVELS] == [1.0, 0.9, 0.25, 0.5]
    assert {web.share("127.0.0.1", level) for level in LEVELS} == {1.0}
    assert web.groups("127.0.0.1") == {}
    assert {str(key): most for key, most in web.groups("203.0.113.7").items()} == {
        "203.0.113.0/24": 40,
        "all": 100,
    }


@anyio
async def test_nothing_leaves_while_more_than_a_second_of_the_bandwidth_is_owed() -> None:
    pace, now = group_pace(bytes_s=1_000)
    pace.carried(900)
    assert await pace.turn("a") == 0
    pace.carried(4_100)
    assert await pace.turn("b") == pytest.approx(4)
    assert now[0] == pytest.approx(1004)


@anyio
async def test_a_body_that_is_longer_than_its_impact_permits_is_refused_before_it_is_sent() -> None:
    cases: list[tuple[int, Level, int]] = [
        (102_400, "low", 200),
        (102_401, "low", 413),
        (102_401, "high", 200),
    ]
    for size, impact, status in cases:
        async with Server(lambda _: http_answer(200, b"hello")) as site:
            policy = replace(policy_for(site.url), rung=lambda: "exercise")
            policy = replace(policy, act_paths=(parse_target(f"{site.url}/a"),)).for_calls(1, impact)
            broker = Broker(policy)
            with listener() as sock:
                async with broker.egress(sock):
                    it = Rig(broker, site, sock.getsockname()[1])
                    await it.ask(f"{site.url}/a", "POST", "", b"x" * size, "connection: close")
            assert (broker.records[-1].status, len(site.got)) == (status, status == 200)


def test_a_page_of_another_machine_is_slow_when_it_takes_a_fifth_longer() -> None:
    """By `limits.slower` of the profile; a page of this machine takes milliseconds."""
    away, own = HostLatency(), HostLatency()
    for ms in (200.0,) * 3 + (230.0,) * 8:
        assert not away.is_slow("/a", ms, Slow(1.2, AWAY_MS))
    seen = [(away.is_slow("/a", 250.0, Slow(1.2, AWAY_MS)), own.is_slow("/a", 250.0)) for _ in range(8)]
    assert [one for one, _ in seen].count(True) == 1
    assert not any(other for _, other in seen)
    assert EgressPolicy.of(parse(Platform, 'name = "x"\n[limits]\nslower = 1.5', file="x")).slower == 1.5
