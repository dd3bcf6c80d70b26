"""`fleet check machine` without a devnet: what a poor key, a wrong clock and a full disk look like."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from fleet import disk_reserve
from fleet.cli.check import machine
from fleet.cli.check.machine import Row, upcoming

ADDRESS = "0x" + "11" * 20
STORE: Row = ("store", True, "SQLite, fleet.db: schema 30")


@pytest.mark.parametrize(
    ("role", "held", "needed", "good", "said"),
    [
        ("identity", 10**18, True, True, f"{ADDRESS} has 1 coins; a report costs at most 0.05"),
        (
            "identity",
            10**15,
            True,
            False,
            f"{ADDRESS} has 0.001 coins, a report may cost 0.05: send it funds",
        ),
        ("identity", 0, False, True, "send it funds; nothing is posted on chain"),
        ("sponsor", 0, True, False, f"{ADDRESS} has 0 coins, a name may cost 0.05: send it funds"),
        ("sponsor", 0, False, True, "send it funds; not needed while the dial is at observe"),
    ],
)
def test_a_poor_key_is_named_with_its_address(
    role: machine.Role, held: int, needed: bool, good: bool, said: str
) -> None:
    name, well, seen = machine._balance(role, ADDRESS, held, 5 * 10**16, needed=needed)
    assert (name, well) == (f"balance of {role}", good)
    assert seen.endswith(said)


@contextmanager
def place(site: float, block: float) -> Iterator[str]:
    """A site and a node in one, whose clocks are this many seconds after ours."""

    class Answer(BaseHTTPRequestHandler):
        def date_time_string(self, timestamp: float | None = None) -> str:
            return super().date_time_string(time.time() + site)

        def do_GET(self) -> None:
            self._say(b"hello")

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            result = {"timestamp": hex(int(time.time() + block))}
            one = {"jsonrpc": "2.0", "result": result}
            many = [one | {"id": row["id"]} for row in asked] if isinstance(asked, list) else None
            self._say(json.dumps(many or one | {"id": asked["id"]}).encode())

        def _say(self, body: bytes) -> None:
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.send_header("content-type", "application/json")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("site", "block", "good", "said"),
    [
        (0, -90_000, True, " the site's"),  # a chain that had no block for a day says nothing
        (600, 0, False, "600 s before the site's"),
        (-600, 0, False, "600 s after the site's"),
        (0, 600, False, "600 s before the newest block's"),
    ],
)
async def test_a_clock_that_is_off_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, site: float, block: float, good: bool, said: str
) -> None:
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path))
    (tmp_path / "devnet").mkdir()
    with place(site, block) as url:
        (tmp_path / "devnet" / "p.toml").write_text(
            f'name = "p"\n[chain]\nrpc = "{url}"\nid = 7\ndiamond = "{ADDRESS}"\n[web]\nsite = "{url}"\n'
        )
        [(name, well, seen)] = await machine.clock("p")
    assert (name, well) == ("clock", good)
    assert said in seen.replace("599 s", "600 s").replace("601 s", "600 s")
    assert seen.endswith("set the time (NTP)") is not good


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([("jail", False, "none"), STORE], "fleet check machine, once the first NO is put right"),
        ([STORE], "fleet up --dry-run, then fleet up"),
        ([("store", True, "SQLite, x: not created yet")], "fleet run qa-smoke --dry-run, then without it"),
    ],
)
def test_what_to_run_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: list[Row], said: str
) -> None:
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path))
    assert upcoming(rows) == said


def test_a_disk_without_room_says_that_no_run_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert disk_reserve.room(tmp_path)[0]
    monkeypatch.setattr(disk_reserve, "LOW", 1 << 60)
    good, seen = disk_reserve.room(tmp_path)
    assert (good, seen.endswith(" free")) == (False, True)
