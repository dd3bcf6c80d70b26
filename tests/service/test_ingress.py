"""What may be put into the queue from outside: over a real journal, a real queue and a real HTTP server."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, cast

import anyio
import httpx
import pytest
from starlette.requests import Request

from fleet.clock import SystemClock
from fleet.config import FleetConfig, HookSection, SinkSection
from fleet.errors import TryAgain
from fleet.events.daemon_events import Feed
from fleet.events.model import Footer
from fleet.events.sinks import sinking
from fleet.gate.stop import resume, stopped
from fleet.personas.load import LoadedPersona
from fleet.runs.call.questions import pause_all, questions
from fleet.runs.call.sightings import SIGHTED
from fleet.runs.queue import MOST_WAITING, Queue
from fleet.service import ingress_http
from fleet.service.http_server import HEAD_S, LIFE_S, application, serve
from fleet.service.ingress import BY_HAND, Ingress
from fleet.service.ingress_http import Intake
from fleet.service.listeners import listeners
from fleet.service.snapshot import DaemonSnapshot
from fleet.store.journal import Journal
from fleet.store.rows import RunRow, SkipRow
from fleet.triggers.hooks.webhook import LARGEST, headers
from fleet.triggers.model import Firing
from tests.runs.conftest import persona

pytestmark = pytest.mark.anyio
SECRET = b"s" * 32
WISH = {"persona": "qa-a", "ident": "abcdefgh", "platform": ""}


class Well:
    """A daemon that takes work until told otherwise."""

    is_ready, beat_age_s = True, 0.1

    async def snapshot(self) -> DaemonSnapshot:
        raise NotImplementedError

    async def metrics(self) -> bytes:
        return b""


@dataclass
class Door:
    """The doors of one state directory, and senders in front of them."""

    state: Path
    journal: Journal
    feed: Feed
    well: Well = field(default_factory=Well)
    on: dict[str, tuple[str, ...]] = field(default_factory=lambda: {"hook:deploy": ("qa-a", "qa-b")})

    def __post_init__(self) -> None:
        people: dict[str, LoadedPersona] = {name: persona(name) for name in ("qa-a", "qa-b")}
        people["qa-model"] = persona("qa-model", driver="model")
        hooks = {"deploy": HookSection(), "other": HookSection(secret_file="keys/hook.deploy")}
        hooks["pager"] = HookSection(secret_file="keys/hook.deploy", stop=True)
        hooks["watch"] = HookSection(secret_file="keys/hook.deploy", monitors=True)
        hooks["alarms"] = HookSection(secret_file="keys/hook.deploy", stop=True, stop_after=3)
        self.queue = Queue(self.journal, "devnet", people, self.feed)
        self.doors = Ingress(
            queue=self.queue,
            book=self.journal,
            platform="devnet",
            personas=people,
            config=lambda: FleetConfig(hooks=hooks),
            subscribers=lambda event: self.on.get(event, ()),
            state=self.state,
            clock=SystemClock(),
            pause=partial(pause_all, self.journal),
        )

    async def knock(
        self, path: str, body: bytes, pairs: dict[str, str] | None = None, *, base: str = "http://fleet"
    ) -> httpx.Response:
        line = httpx.ASGITransport(app=application(self.well, self.doors))
        async with httpx.AsyncClient(transport=line, base_url=base) as client:
            return await client.post(path, content=body, headers=pairs)

    async def send(
        self,
        ident: str = "delivery-1",
        body: bytes = b"{}",
        *,
        hook: str = "deploy",
        secret: bytes = SECRET,
        off_s: int = 0,
        base: str = "http://127.0.0.1:9",
    ) -> httpx.Response:
        signed = headers(secret, ident, int(time.time()) + off_s, body)
        return await self.knock(f"/hooks/{hook}", body, signed, base=base)

    async def ask(self, **wish: Any) -> httpx.Response:
        return await self.knock("/runs", json.dumps(WISH | wish).encode())

    async def rows(self) -> list[RunRow]:
        return await self.journal.queued_runs()

    async def skips(self) -> list[SkipRow]:
        return await self.journal.skips()


@asynccontextmanager
async def opened(state: Path) -> AsyncIterator[Door]:
    """The doors of a new state directory, with the secret of one webhook."""
    (state / "keys").mkdir(mode=0o700)
    secret = state / "keys" / "hook.deploy"
    secret.write_bytes(SECRET)
    secret.chmod(0o600)
    feed = Feed(state / "events.jsonl", clock=SystemClock())
    async with await Journal.open(state / "fleet.db") as journal:
        yield Door(state, journal, feed)
    feed.close()


@pytest.fixture
async def door(tmp_path: Path, anyio_backend: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Door]:
    monkeypatch.delenv("CREDENTIALS_DIRECTORY", raising=False)
    async with opened(tmp_path) as made:
        yield made


class TestDeliveries:
    async def test_a_signed_one_is_one_run_of_each_persona_that_is_on_it(self, door: Door) -> None:
        said = await door.send()
        rows = {row.persona: row for row in await door.rows()}
        assert said.status_code == 202
        assert said.json() == {
            "runs": [
                {"persona": name, "run": rows[name].run_id, "key": f"{name}@hook:deploy:delivery-1"}
                for name in ("qa-a", "qa-b")
            ]
        }
        assert {row.trigger for row in rows.values()} == {"webhook deploy"}

    async def test_a_replay_is_known_even_after_a_restart_and_after_its_run_ended(self, door: Door) -> None:
        first = await door.send()
        for row in await door.rows():
            await door.journal.finish(row.run_id, "done")
        reborn = Door(door.state, door.journal, door.feed)
        again = await reborn.send()
        assert (again.status_code, again.json()) == (200, first.json())
        assert await door.rows() == []

    async def test_the_same_id_at_another_webhook_is_another_delivery(self, door: Door) -> None:
        door.on["hook:other"] = ("qa-a",)
        assert [(await door.send(hook=hook)).status_code for hook in ("deploy", "other")] == [202, 202]
        assert len(await door.rows()) == 3

    @pytest.mark.parametrize(
        ("change", "status"),
        [
            ({"secret": b"o" * 32}, 401),
            ({"off_s": -400}, 401),
            ({"off_s": 400}, 401),
            ({"ident": "short"}, 400),
            ({"body": b"x" * (LARGEST + 1)}, 413),
            ({"hook": "unknown"}, 404),
            ({"hook": "..%2fruns"}, 404),
            ({"base": "http://evil.example:9"}, 421),
        ],
    )
    async def test_each_way_to_be_wrong_has_its_status_and_starts_nothing(
        self, door: Door, change: dict[str, Any], status: int
    ) -> None:
        assert (await door.send(**change)).status_code == status
        assert (await door.rows(), await door.skips()) == ([], [])
        assert (await door.send()).status_code == 202  # and uses up nothing

    async def test_without_headers_or_with_another_method_it_is_no_delivery(self, door: Door) -> None:
        assert (await door.knock("/hooks/deploy", b"{}")).status_code == 400
        line = httpx.ASGITransport(app=application(door.well, door.doors))
        async with httpx.AsyncClient(transport=line, base_url="http://fleet") as client:
            assert (await client.get("/hooks/deploy")).status_code == 405
            assert (await client.get("/runs")).status_code == 405

    async def test_a_secret_that_cannot_be_read_closes_the_webhook_and_a_new_one_opens_it(
        self, door: Door, caplog: pytest.LogCaptureFixture
    ) -> None:
        secret = door.state / "keys" / "hook.deploy"
        secret.chmod(0o644)
        said = await door.send()
        assert (said.status_code, said.headers["retry-after"]) == (503, "60")
        assert "lets others in" in caplog.text
        assert "keys" not in said.text
        secret.write_bytes(b"n" * 32)
        secret.chmod(0o600)
        assert [(await door.send(secret=key)).status_code for key in (SECRET, b"n" * 32)] == [401, 202]

    async def test_when_nobody_is_on_it_that_is_recorded(self, door: Door) -> None:
        door.on.clear()
        said = await door.send()
        assert (said.status_code, said.json()) == (202, {"runs": []})
        (skip,) = await door.skips()
        assert (skip.key, skip.reason) == ("*@hook:deploy:delivery-1", "no persona uses this webhook now")

    async def test_a_crowd_is_refused_and_what_was_refused_is_taken_later(self, door: Door) -> None:
        now = datetime.now(UTC)
        for number in range(MOST_WAITING):
            assert await door.queue.fire(Firing(f"qa-a@hook:deploy:x{number}", "qa-a", "test", now))
        said = await door.send()
        assert (said.status_code, said.headers["retry-after"]) == (429, "60")
        assert [row["persona"] for row in said.json()["runs"]] == ["qa-b"]
        (skip,) = await door.skips()
        assert (skip.persona, skip.reason) == ("qa-a", f"{MOST_WAITING} runs of it wait already")
        for row in await door.rows():
            await door.journal.finish(row.run_id, "done")
        assert (await door.send()).status_code == 202
        assert [row.key for row in await door.rows()] == ["qa-a@hook:deploy:delivery-1"]

    @pytest.mark.parametrize("change", [{"secret": b"o" * 32}, {"off_s": -400}, {"hook": "deploy"}])
    async def test_only_a_signed_delivery_of_a_webhook_for_it_stops(
        self, door: Door, change: dict[str, Any]
    ) -> None:
        await door.send(**({"hook": "pager"} | change))
        assert stopped(door.state) is None

    async def test_a_webhook_stops_once_for_each_delivery_and_never_resumes(self, door: Door) -> None:
        door.on["hook:pager"] = ("qa-a",)
        first = await door.send(hook="pager")
        assert (first.status_code, first.json()) == (202, {"stopped": True, "runs": []})
        assert "delivery delivery-1 (webhook pager" in str(stopped(door.state))
        assert "webhook pager stops the fleet" in (door.state / "DECISIONS.md").read_text()
        await door.send("delivery-2", hook="pager")
        assert stopped(door.state)
        assert resume(door.state)
        replay = await door.send(hook="pager")
        assert (replay.status_code, replay.json(), stopped(door.state)) == (
            200,
            {"stopped": False, "runs": []},
            None,
        )
        assert await door.rows() == []
        await door.send("delivery-3", hook="pager")
        assert stopped(door.state)

    async def test_what_the_platforms_own_monitoring_sees_is_a_notice_and_what_is_critical_pauses_runs(
        self, door: Door
    ) -> None:
        await door.ask()
        await door.journal.claim_next("devnet", pid=1, pid_start=1)
        for at, bad in enumerate((b"{}", b"[]", b"x", b'{"level": "fine", "what": "x"}')):
            assert (await door.send(f"delivery-{at}", bad, hook="watch")).status_code == 400
        warning, critical = (
            json.dumps({"level": one, "what": f"CPU {one}"}).encode() for one in ("warning", "critical")
        )
        for ident in ("delivery-a", "delivery-b"):
            answer = await door.send(ident, warning, hook="watch")
            assert (answer.status_code, answer.json()) == (202, {"paused": 0, "runs": []})
        assert await questions(door.journal) == []
        answer = await door.send("delivery-c", critical, hook="watch")
        assert answer.json() == {"paused": 1, "runs": []}
        (asked,) = await questions(door.journal)
        assert (asked.trigger, asked.what) == ("person", "paused by webhook watch: critical: CPU critical")
        seen = [json.loads(text)["what"] for text in (await door.journal.facts(SIGHTED)).values()]
        assert sorted(seen) == ["critical: CPU critical", "warning: CPU warning"]
        assert stopped(door.state) is None

    async def test_so_many_alarms_within_their_time_stop_and_a_replay_counts_once(self, door: Door) -> None:
        for ident in ("delivery-1", "delivery-1", "delivery-2"):
            answer = await door.send(ident, hook="alarms")
            assert (answer.status_code, answer.json(), stopped(door.state)) == (
                202,
                {"stopped": False, "runs": []},
                None,
            )
        old = {"delivery-1": time.time() - 601, "delivery-2": time.time()}
        await door.journal.put("alarms:alarms", json.dumps(old))
        assert not (await door.send("delivery-3", hook="alarms")).json()["stopped"]
        assert (await door.send("delivery-4", hook="alarms")).json()["stopped"]
        assert stopped(door.state)
        assert await door.journal.get("alarms:alarms") == "{}"

    async def test_a_webhook_stops_even_where_the_journal_does_not_answer(
        self, door: Door, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def busy(*_: object) -> None:
            raise TryAgain("the journal is busy")

        monkeypatch.setattr(door.journal, "get", busy)
        monkeypatch.setattr(door.journal, "put", busy)
        assert (await door.send(hook="pager")).status_code == 503  # the sender tries again
        assert stopped(door.state)

    async def test_a_daemon_that_drains_takes_nothing(self, door: Door) -> None:
        door.well.is_ready = False
        assert [(await door.send()).status_code, (await door.ask()).status_code] == [503, 503]
        assert await door.rows() == []


class TestByHand:
    async def test_it_goes_before_what_a_clock_does_and_once(self, door: Door) -> None:
        await door.queue.fire(
            Firing("qa-b@2026-11-21T18:00:00Z", "qa-b", "a tick", datetime(2026, 1, 1, tzinfo=UTC))
        )
        first, again = await door.ask(), await door.ask()
        assert (first.status_code, again.status_code, again.json()) == (202, 200, first.json())
        (run,) = first.json()["runs"]
        claimed = await door.journal.claim_next("devnet", pid=1, pid_start=1)
        assert claimed is not None
        assert (claimed.run_id, claimed.key, claimed.trigger) == (
            run["run"],
            "qa-a@manual:abcdefgh",
            "manual",
        )
        assert claimed.priority == BY_HAND

    @pytest.mark.parametrize(
        ("wish", "status", "words"),
        [
            ({"persona": "qa-typo"}, 404, "known: qa-a, qa-b, qa-model"),
            ({"platform": "localharness"}, 409, "runs against devnet"),
            ({"ident": "a:b"}, 400, "ident"),
            ({"ident": ""}, 400, "ident"),
            ({"persona": "qa-model"}, 429, "cannot drive a run here"),
            ({"probe": "no-such"}, 404, "no probe 'no-such'"),
            ({"replay": "nothere"}, 404, "no run 'nothere' that is over"),
            ({"replay": "../../etc"}, 404, "that is over"),
        ],
    )
    async def test_what_cannot_be_is_told(
        self, door: Door, wish: dict[str, str], status: int, words: str
    ) -> None:
        said = await door.ask(**wish)
        assert said.status_code == status
        assert words in said.json()["error"]
        assert await door.rows() == []

    async def test_only_a_run_that_is_over_and_has_its_records_is_asked_again(self, door: Door) -> None:
        (run,) = (await door.ask()).json()["runs"]
        asked = {"persona": "", "ident": "bbbbbbbb", "replay": run["run"]}
        assert (await door.ask(**asked)).status_code == 404
        await door.journal.claim_next("devnet", pid=1, pid_start=1)
        await door.journal.finish(run["run"], "done")
        assert (await door.ask(**asked)).status_code == 404
        folder = door.state / "runs" / run["run"]
        folder.mkdir(parents=True)
        (folder / "trajectory.jsonl").touch()
        first, again = await door.ask(**asked), await door.ask(**asked)
        assert (first.status_code, again.status_code, again.json()) == (202, 200, first.json())
        (row,) = await door.rows()
        assert (row.persona, row.key) == ("qa-a", f"qa-a@replay:{run['run']}:bbbbbbbb")
        assert (row.trigger, row.priority) == (f"replay:{run['run']}", BY_HAND)

    @pytest.mark.parametrize("body", [b"", b"[]", b"7", b"{", b"[" * 100_000, b"\xff"])
    async def test_garbage_is_no_wish(self, door: Door, body: bytes) -> None:
        assert (await door.knock("/runs", body)).status_code == 400

    async def test_only_who_can_open_the_socket_may_ask(self, door: Door) -> None:
        body = json.dumps(WISH).encode()
        assert (await door.knock("/runs", body, base="http://127.0.0.1:9")).status_code == 404
        assert (await door.knock("/runs", body, base="http://evil.example")).status_code == 421
        assert await door.rows() == []


@asynccontextmanager
async def served(door: Door, head_s: float = HEAD_S, life_s: float = LIFE_S) -> AsyncIterator[int]:
    """The pages as the daemon serves them; the port on loopback."""
    sockets = listeners(door.state, 0)
    port = int(sockets[1].getsockname()[1])
    async with anyio.create_task_group() as tasks:
        run = partial(serve, door.well, door.state, sockets, door.doors, head_s=head_s, life_s=life_s)
        tasks.start_soon(run)
        for _ in range(200):
            if await _answers(port):
                break
            await anyio.sleep(0.02)
        yield port
        tasks.cancel_scope.cancel()


async def _answers(port: int) -> bool:
    try:
        async with httpx.AsyncClient() as client:
            return (await client.get(f"http://127.0.0.1:{port}/healthz")).status_code == 200
    except httpx.TransportError:
        return False


async def test_over_real_sockets_the_port_takes_deliveries_and_only_the_socket_takes_wishes(
    door: Door,
) -> None:
    body = json.dumps(WISH).encode()
    async with served(door) as port:
        signed = headers(SECRET, "delivery-1", int(time.time()), b"{}")
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
            assert (await client.post("/hooks/deploy", content=b"{}", headers=signed)).status_code == 202
            assert (await client.post("/runs", content=body)).status_code == 404
            evil = {"host": "evil.example"}
            assert (
                await client.post("/hooks/deploy", content=b"{}", headers=signed | evil)
            ).status_code == 421
        line = httpx.AsyncHTTPTransport(uds=str(door.state / "fleet.sock"))
        async with httpx.AsyncClient(transport=line, base_url="http://fleet") as client:
            assert (await client.post("/runs", content=body)).status_code == 202
            assert (await client.post("/hooks/deploy", content=b"{}", headers=signed)).status_code == 200
    assert sorted(row.key for row in await door.rows()) == [
        "qa-a@hook:deploy:delivery-1",
        "qa-a@manual:abcdefgh",
        "qa-b@hook:deploy:delivery-1",
    ]


async def test_how_a_run_of_another_fleet_ended_starts_one_here(door: Door) -> None:
    """A sink of there is a webhook here, once both have the same secret."""

    def seal(name: str, body: bytes) -> dict[str, str]:
        return headers(SECRET, f"sink-{name}", int(time.time()), body)

    async with served(door) as port:
        to = SinkSection(url=f"http://127.0.0.1:{port}/hooks/deploy", kinds=())
        async with sinking({"next": to}, seal=seal, mask=lambda value: value) as readers:
            for read in readers:
                read(Footer(run="r1", outcome="done"))
    assert sorted(row.key for row in await door.rows()) == [
        "qa-a@hook:deploy:sink-next",
        "qa-b@hook:deploy:sink-next",
    ]


async def test_a_body_without_a_length_is_read_no_further_than_the_limit(door: Door) -> None:
    read = 0

    async def receive() -> Any:
        nonlocal read
        read += 65_536
        return {"type": "http.request", "body": b"x" * 65_536, "more_body": True}

    assert (await Intake(door.doors, lambda: True).hook(_request(receive))).status_code == 413
    assert read == LARGEST + 65_536


async def test_slow_senders_are_given_up_and_no_more_than_a_few_are_listened_to(
    door: Door, anyio_backend: str
) -> None:
    """Over ASGI: bodies that never come, as many as are listened to, and one more."""
    slow = Intake(door.doors, lambda: True, deadline_s=0.4)
    answers: list[int] = []

    async def one() -> None:
        answers.append((await slow.hook(_never())).status_code)

    began = time.monotonic()
    async with anyio.create_task_group() as tasks:
        for _ in range(ingress_http.CROWD):
            tasks.start_soon(one)
        await anyio.sleep(0.05)
        assert (await slow.hook(_never())).status_code == 408  # it has the place of the slowest
    assert answers == [429, *[408] * (ingress_http.CROWD - 1)]
    assert 0.3 < time.monotonic() - began < 5
    assert (await slow.hook(_never())).status_code == 408  # there is room again


def _never() -> Request:
    async def receive() -> Any:
        await anyio.sleep_forever()

    return _request(receive)


def _request(receive: Callable[[], Awaitable[Any]]) -> Request:
    """A delivery whose head is well: whether it is signed can be seen only with its body."""
    signed = headers(SECRET, "delivery-1", int(time.time()), b"")
    pairs = [(name.encode(), value.encode()) for name, value in signed.items()]
    scope = {
        "type": "http",
        "method": "POST",
        "headers": pairs,
        "path_params": {"name": "deploy"},
        "path": "/",
    }
    return Request(scope, receive)


async def test_a_journal_that_refuses_is_no_lost_delivery(door: Door) -> None:
    class Full:
        async def fire(self, firing: Firing, *, priority: int = 0) -> bool:
            raise TryAgain("the disk is full")

    door.doors = replace(door.doors, queue=cast(Queue, Full()))
    said = await door.send()
    assert (said.status_code, said.headers["retry-after"]) == (503, "5")
