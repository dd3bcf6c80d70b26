"""Each disturbance does what it says, to exactly the process it is meant for."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median

import anyio
import httpx
import pytest

from fleet.devnet.devnet import COMPILER
from fleet.jail.process import proc_stat
from tests.platforms.bare import PAGES, bare
from tests.platforms.front import CLEAR, ROUGH, Weather, fates, front
from tests.platforms.full import full
from tests.platforms.profile import slowed
from tests.platforms.served import NotServed, Served, burning, free_port, restarting
from tests.platforms.stand import DISTURBED, WEB

pytestmark = pytest.mark.anyio


async def look(url: str, timeout_s: float = 20.0) -> str:
    """How one visit ends: the status, or what happened to the connection."""
    async with httpx.AsyncClient(trust_env=False, verify=False, timeout=timeout_s) as http:
        try:
            return str((await http.get(url)).status_code)
        except httpx.ConnectError:
            return "refused"
        except httpx.TimeoutException:
            return "silent"
        except (httpx.NetworkError, httpx.RemoteProtocolError):
            return "reset"


@asynccontextmanager
async def pages(folder: Path) -> AsyncIterator[Served]:
    port = free_port()
    words = (sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1", "--directory", str(PAGES))
    async with Served(words, port, folder / "pages.log") as served:
        yield served


async def test_a_clear_front_passes_everything_on(tmp_path: Path) -> None:
    async with pages(tmp_path) as site, front(site.port, CLEAR, tmp_path / "front.log") as way:
        async with httpx.AsyncClient(trust_env=False, verify=False) as http:
            direct, by_way = [await http.get(f"{served.url}/names.html") for served in (site, way)]
            posted = [await http.post(served.url, content=b"x" * 300_000) for served in (site, way)]
        assert (by_way.status_code, by_way.content) == (200, direct.content)
        assert [one.status_code for one in posted] == [501, 501]


async def test_what_befalls_requests_follows_from_the_seed(tmp_path: Path) -> None:
    weather = Weather(bad=0.3, reset=0.4, seed=7)
    words = {"pass": "200", "bad": "502", "reset": "reset", "torn": "reset"}
    following = fates(weather)
    expected = [words[following().what] for _ in range(40)]
    async with pages(tmp_path) as site, front(site.port, weather, tmp_path / "front.log") as way:
        assert [await look(f"{way.url}/index.html") for _ in range(40)] == expected
    assert set(expected) == {"200", "502", "reset"}


def test_the_shares_are_what_they_say() -> None:
    following = fates(ROUGH)
    many = [following() for _ in range(20_000)]
    shares = {what: sum(one.what == what for one in many) / len(many) for what in ("bad", "reset", "torn")}
    assert shares == pytest.approx({"bad": 0.03, "reset": 0.015, "torn": 0.015}, abs=0.004)
    delays = [one.delay_s for one in many]
    assert (min(delays), max(delays), median(delays)) == pytest.approx((0.15, 0.45, 0.3), abs=0.01)
    assert len({weather.seed for weather in DISTURBED.values()}) == len(DISTURBED)
    assert set(DISTURBED) == set(WEB)


async def test_answers_are_late_by_the_delay(tmp_path: Path) -> None:
    weather = replace(CLEAR, delay_s=0.3, jitter_s=0.1)
    async with pages(tmp_path) as site, front(site.port, weather, tmp_path / "front.log") as way:
        started = time.monotonic()
        assert [await look(way.url) for _ in range(3)] == ["200"] * 3
    assert time.monotonic() - started >= 0.6  # at least: no load makes it shorter


async def test_interim_answers_come_before_the_answer(tmp_path: Path) -> None:
    async with pages(tmp_path) as site, front(site.port, Weather(interim=1.0), tmp_path / "log") as way:
        reader, writer = await asyncio.open_connection("127.0.0.1", way.port)
        writer.write(b"GET /names.html HTTP/1.1\r\nhost: x\r\n\r\n")
        heads = [await reader.readuntil(b"\r\n\r\n") for _ in range(3)]
        writer.close()
    assert [int(head.split()[1]) for head in heads] == [102, 103, 200]


async def test_a_limit_says_when_to_come_back(tmp_path: Path) -> None:
    async with (
        pages(tmp_path) as site,
        front(site.port, Weather(limited=1.0), tmp_path / "log") as way,
        httpx.AsyncClient(trust_env=False, verify=False) as http,
    ):
        answer = await http.get(way.url)
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "1")


@pytest.mark.parametrize("attack", ["?q=%3Cscript%3E", "?id=1%27", "/../etc/passwd", "?next=//evil.test"])
async def test_a_firewall_blocks_an_attack_and_nothing_else(tmp_path: Path, attack: str) -> None:
    async with pages(tmp_path) as site, front(site.port, Weather(blocks=True), tmp_path / "log") as way:
        reader, writer = await asyncio.open_connection("127.0.0.1", way.port)
        writer.write(b"GET /names.html%s HTTP/1.1\r\nhost: x\r\n\r\n" % attack.encode())
        blocked = await reader.read()
        writer.close()
        assert await look(f"{way.url}/names.html?q=docs") == "200"
    assert b" 403 " in blocked.splitlines()[0]
    assert b"You have an error in your SQL syntax" in blocked


async def test_who_attacks_is_banned_for_some_seconds(tmp_path: Path) -> None:
    async with pages(tmp_path) as site, front(site.port, Weather(ban_s=8.0), tmp_path / "log") as way:
        assert await look(f"{way.url}/names.html") == "200"
        assert await look(f"{way.url}/names.html?id=1%27") == "reset"
        assert await look(f"{way.url}/names.html") == "reset"
        reader, other = await asyncio.open_connection("127.0.0.1", way.port, local_addr=("127.0.0.2", 0))
        other.write(b"GET /names.html HTTP/1.1\r\nhost: x\r\n\r\n")
        assert (await reader.readline()).split()[1] == b"200"
        other.close()
        await anyio.sleep(8.0)
        assert await look(f"{way.url}/names.html") == "200"


async def test_killed_paused_restarted(tmp_path: Path) -> None:
    async with pages(tmp_path) as site:
        first = site.pid
        with site.paused():
            stat = proc_stat(first)
            assert stat is not None
            assert stat.state == "T"
            assert await look(site.url, timeout_s=0.3) == "silent"
        assert await look(site.url) == "200"
        site.kill()
        assert await look(site.url) == "refused"
        await site.start()
        assert await look(site.url) == "200"
        assert site.pid != first
        await site.restart()
        last = site.pid
    assert [proc_stat(pid) for pid in (first, last)] == [None, None]


async def test_restarts_in_mid_run_leave_it_up(tmp_path: Path) -> None:
    async with pages(tmp_path) as site:
        pids = {site.pid}
        async with restarting(site, every_s=0.05, down_s=0.05):
            with anyio.fail_after(60):
                while len(pids) < 3:
                    await anyio.sleep(0.05)
                    pids |= {site.process.pid} if site.process else set()
        assert await look(site.url) == "200"


async def test_a_paused_program_ends_too(tmp_path: Path) -> None:
    async with pages(tmp_path) as site:
        pid = site.pid
        site.paused().__enter__()
    assert proc_stat(pid) is None


async def test_a_program_that_does_not_start_says_why(tmp_path: Path) -> None:
    with pytest.raises(NotServed, match="No module named nonsense"):
        await Served((sys.executable, "-m", "nonsense"), free_port(), tmp_path / "log").start()


@pytest.mark.devnet
async def test_half_dead_the_site_is_up_and_the_proxy_is_down(tmp_path: Path) -> None:
    async with full(tmp_path / "platform", fronts={"proxy": CLEAR}) as stand:
        site, proxy = stand.data["web"]["site"], stand.data["web"]["proxy"]
        assert site == stand.web.url != proxy
        assert await look(f"{proxy}/api/status") == "200"
        stand.fronts["proxy"].kill()
        assert [await look(f"{site}/llms.txt"), await look(f"{proxy}/api/status")] == ["200", "refused"]
        await stand.fronts["proxy"].start()
        assert await look(f"{proxy}/api/status") == "200"
        stand.web.kill()
        assert [await look(f"{site}/llms.txt"), await look(f"{proxy}/api/status")] == ["refused", "reset"]
        await stand.web.start()
        assert [await look(f"{site}/llms.txt"), await look(f"{proxy}/api/status")] == ["200", "200"]


@pytest.mark.devnet
async def test_a_disturbed_platform_is_reached_by_way_of_its_fronts_only(tmp_path: Path) -> None:
    async with bare(tmp_path / "platform", fronts={**DISTURBED, "rpc": CLEAR}) as stand:
        assert set(stand.fronts) == {"site", "rpc"}
        profile = stand.data
        assert profile["web"] == {"site": stand.fronts["site"].url}
        assert profile["chain"]["rpc"] == stand.fronts["rpc"].url != stand.chain.url
        asked = {"jsonrpc": "2.0", "id": 1, "method": "eth_chainId", "params": []}
        async with httpx.AsyncClient(trust_env=False, verify=False) as http:
            said = (await http.post(profile["chain"]["rpc"], json=asked)).json()
        assert said == {"jsonrpc": "2.0", "id": 1, "result": "0x7a69"}


def test_burners_burn_and_end() -> None:
    with burning(2) as pids:
        until = time.monotonic() + 60
        while min(map(cpu_ticks, pids)) < 5 and time.monotonic() < until:
            time.sleep(0.05)
        assert min(map(cpu_ticks, pids)) >= 5
    assert [proc_stat(pid) for pid in pids] == [None, None]


def cpu_ticks(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11])


@pytest.mark.parametrize("burn", [False, True], ids=["asleep", "computing"])
def test_a_slow_compiler_compiles_the_same_later(tmp_path: Path, burn: bool) -> None:
    tool = ["{python}", "-I", "-S", "-B", "/opt/tc/rustlite"]
    compiler = {"root": str(COMPILER), "command": [*tool, "--defects", ""], "loader": [*tool, "--entry"]}
    profile = slowed({"compiler": dict(compiler)}, tmp_path / "toolchain", 1.0, burn=burn)
    slow = profile["compiler"]
    assert slow["loader"] == [*tool[:4], "/opt/tc/slow.py", "/opt/tc/rustlite", "--entry"]
    source = b"fn frame(t: i32) -> i32 { t + 1 }"

    def compiled(words: list[str], root: str) -> tuple[bytes, float]:
        words = [word for word in words if word != "-S"]  # a jail has the packages elsewhere
        argv = [word.replace("{python}", sys.executable).replace("/opt/tc", root) for word in words]
        started = time.monotonic()
        done = subprocess.run(argv, input=source, capture_output=True, check=True)
        return done.stdout, time.monotonic() - started

    module, _ = compiled(compiler["command"], str(COMPILER))  # type: ignore[arg-type]
    late, seconds = compiled(slow["command"], slow["root"])
    assert module == late
    assert late.startswith(b"\0asm")
    assert seconds >= 1.0  # at least: no load makes it shorter
