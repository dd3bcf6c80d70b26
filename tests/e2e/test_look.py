"""`fleet look` and `fleet init`, as a user types them, on small servers of others than the devnet."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tomllib
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from fleet.devnet.surfaces.harbour import open_office
from fleet.devnet.surfaces.herbarium_wires import open_herbarium
from sandbox.agents.wires import KEYED
from tests.cli_process import run_fleet

PAGE = "<!doctype html><html lang=en><head><title>Moss</title></head><body><h1>Moss</h1>{}</body></html>"
FORM = '<form action="/search"><label>Search <input name="q"></label></form>'


@contextmanager
def served(*, careless: bool) -> Iterator[str]:
    """The address of a site of two pages; a careless one shows what is searched for as it was sent."""

    class Pages(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            url = urlsplit(self.path)
            sought = parse_qs(url.query).get("q", [""])[0] if careless else ""
            pages = {"/": FORM if careless else '<a href="/about">About</a>', "/about": "<p>Two pages.</p>"}
            pages |= {"/search": f"<p>Nothing for {sought}</p>"} if careless else {}
            body = PAGE.format(pages.get(url.path, "Not found")).encode()
            self.send_response(200 if url.path in pages else 404)
            self.send_header("content-type", "text/html; charset=utf-8")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Pages) as server:
        thread = Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def fleet(tmp_path: Path, *words: str, **env: str) -> tuple[int, Any, str]:
    """Exit code, the JSON document and what stood beside it."""
    state = {"PATH": "/usr/bin:/bin", "STATE_DIRECTORY": str(tmp_path / "state"), **env}
    done = run_fleet(*words, "--json", env=state)
    return done.returncode, json.loads(done.stdout or "null"), done.stderr


def test_the_pages_are_live_and_stay_when_asked_to(tmp_path: Path) -> None:
    env = {"PATH": "/usr/bin:/bin", "STATE_DIRECTORY": str(tmp_path / "state")}
    words = ("--persona", "qa-security", "--minutes", "0.5", "--open", "--json")
    with served(careless=True) as host:
        command = [sys.executable, "-m", "fleet.cli", "look", host, *words]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env
        ) as process:
            assert process.stderr is not None
            lines = iter(process.stderr)
            url = next(line.split()[1] for line in lines if line.startswith("live: "))
            assert any("qa-security: asking" in line for line in lines)
            while "<td>qa-security</td>" not in (page := room(url)):
                assert process.poll() is None, page
            assert any(f"look at it: {url} until Ctrl-C" in line for line in lines)
            page = room(url)
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 1
    assert "Script injection: GET /search" in page
    assert "Nothing runs." in page


def room(url: str) -> str:
    with urllib.request.urlopen(url, timeout=20) as answer:
        text: str = answer.read().decode()
        return text


LOOKS = [
    (True, 1, [("high", "Script injection: GET /search, parameter q: a script sent there runs")]),
    (False, 0, []),
]


@pytest.mark.parametrize(("careless", "code", "items"), LOOKS, ids=["a careless site", "a clean one"])
def test_a_look_finds_what_is_there_and_nothing_else(
    tmp_path: Path, careless: bool, code: int, items: list[tuple[str, str]]
) -> None:
    with served(careless=careless) as host:
        done = fleet(
            tmp_path, "look", host, "--persona", "qa-security", "--sarif", str(tmp_path / "it.sarif")
        )
        assert (done[0], [(one["severity"], one["title"]) for one in done[1]["items"]]) == (code, items), (
            done[2]
        )
    assert "Asked as a visitor alone" in done[1]["coverage"]
    assert ("proven 3/3" in done[2]) is careless
    folder = tmp_path / "state" / "looks" / host.replace(":", "-")
    assert len(json.loads((tmp_path / "it.sarif").read_text())["runs"][0]["results"]) == len(items)
    assert Path(done[1]["page"]) == folder / "worklist.html"
    assert (folder / "autonomy").read_text() == "observe\n"
    code, listed, _ = fleet(tmp_path, "--state", str(folder), "items", "--offline")
    assert [one["title"] for one in listed] == [title for _, title in items]


def test_a_look_at_an_mcp_server_reads_it_and_calls_none_of_its_tools(tmp_path: Path) -> None:
    with open_office("orders", "climb-resource", "shell") as office:
        done = fleet(tmp_path, "look", f"{office.url}/mcp", "--persona", "qa-mcp", "--minutes", "2")
        assert office.calls == []
    titles = {one["title"] for one in done[1]["items"]}
    assert (done[0], len(titles)) == (1, 2), done[2]
    assert any(one.startswith("Files outside the served folder can be read: ") for one in titles)
    assert any(one.startswith("MCP definition gives orders to its reader: ") for one in titles)
    assert "7 tools of {site}/mcp, berth_price, " in done[1]["coverage"]
    assert "1 tool of {site}/mcp, clear_log: their server says that they destroy" in done[1]["coverage"]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("wire", KEYED)
def test_a_look_at_an_agent_calls_it_by_its_own_wire_once_it_may(tmp_path: Path, wire: str) -> None:
    with open_herbarium(wire, "empty-reply", anyone=True) as office:
        looked = ("look", office.url, "--persona", "qa-ux", "--minutes", "2")
        reads = fleet(tmp_path, *looked)
        assert (reads[0], office.agent.asked) == (0, 0), reads[2]
        done = fleet(tmp_path, *looked, "--exercise")
    (item,) = done[1]["items"]
    assert item["title"].startswith("Empty reply is reported as complete: fern answers nothing to "), item
    assert "charges of the agent fern: this wire states no balance of a caller" in done[1]["coverage"]


def test_init_writes_once_and_overwrites_nothing(tmp_path: Path) -> None:
    own = tmp_path / "own"
    with served(careless=False) as host:
        code, first, said = fleet(
            tmp_path, "init", host, "--yes", "--name", "moss", CONFIGURATION_DIRECTORY=str(own)
        )
        assert code == 0, said
        files = {path: path.read_bytes() for path in own.rglob("*.toml")}
        assert tomllib.loads((own / "platforms/moss.toml").read_text())["web"]["site"] == f"http://{host}"
        assert tomllib.loads((own / "fleet.toml").read_text()) == {"platform": "moss"}
        code, again, _ = fleet(
            tmp_path, "init", host, "--yes", "--name", "moss", CONFIGURATION_DIRECTORY=str(own)
        )
        assert code == 0
    assert {path: path.read_bytes() for path in own.rglob("*.toml")} == files
    assert [line.rpartition("  ")[2] for line in first["done"]][:2] == ["written", "written"]
    assert [line.rpartition("  ")[2] for line in again["done"]][:2] == [
        "is there already, and stands",
        "names it already",
    ]
    assert first["next"] == again["next"]
    assert len(first["next"]) == 3


ENDS = [
    (("look", "ftp://moss"), 2, "is no URL, host:port or address"),
    (("look", "0x" + "ab" * 20), 2, "the URL of its chain's node"),
    (("look", "127.0.0.1:1", "--persona", "qa-fix"), 2, "choose of qa-security"),
    (("look", "127.0.0.1:1"), 4, "connection refused"),
    (("look", "http://8.8.8.8"), 5, "--yes-i-may"),
    (("init", "http://8.8.8.8", "--yes"), 5, "--yes-i-may"),
    (("init", "--yes"), 2, "fleet init https://HOST"),
    (("--state", "none", "status"), 2, "none is not a folder"),
]


@pytest.mark.parametrize(("words", "code", "said"), ENDS, ids=[" ".join(one[0]) for one in ENDS])
def test_what_cannot_be_looked_at_says_why(
    tmp_path: Path, words: tuple[str, ...], code: int, said: str
) -> None:
    done = fleet(tmp_path, *words)
    assert (done[0], done[1]) == (code, None)
    assert said in done[2]


def test_a_dry_run_asks_nothing_and_shows_what_would_be(tmp_path: Path) -> None:
    code, plan, _ = fleet(tmp_path, "look", "http://8.8.8.8", "127.0.0.1:1", "--dry-run", "--exercise")
    assert (code, plan["needs_permission"], plan["rung"], plan["minutes"]) == (
        0,
        ["8.8.8.8"],
        "exercise",
        5.0,
    )
    assert plan["hosts"] == ["127.0.0.1:1", "8.8.8.8"]
    assert not (tmp_path / "state" / "looks").exists()
