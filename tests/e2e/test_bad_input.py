"""Bad input gives one clear error, a remedy and an exit code; and nothing is lost."""

from __future__ import annotations

import http.server
import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.conftest import Fleet

pytestmark = [pytest.mark.devnet, pytest.mark.jail, pytest.mark.timeout(240)]


def profile(shared: Path, name: str, *changes: tuple[str, str]) -> str:
    """Another profile beside the devnet's own, with some of its text replaced."""
    text = (shared / "devnet" / "devnet.toml").read_text()
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    (shared / "devnet" / f"{name}.toml").write_text(text)
    return name


def line_of(shared: Path, key: str) -> str:
    text = (shared / "devnet" / "devnet.toml").read_text()
    return next(line for line in text.splitlines() if line.startswith(f"{key} ="))


@contextmanager
def garbage(body: bytes, content_type: str = "text/html") -> Iterator[str]:
    """A server that answers everything with the same nonsense."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", content_type)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("content-length", 0)))
            self.do_GET()

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_an_unknown_platform_is_a_usage_error_that_lists_the_known_ones(devnet: Fleet) -> None:
    said = devnet("run", "qa-smoke", "--platform", "nowhere")
    assert (said.code, said.out) == (2, "")
    assert "no platform named 'nowhere'; known: devnet, example" in said.err
    assert "try:" in said.err


def test_an_unknown_persona_lists_the_known_ones(devnet: Fleet) -> None:
    said = devnet("run", "qa-nobody")
    assert said.code == 2
    assert "qa-fuzz, qa-mcp, qa-pay, qa-perf" in said.err


def test_a_wrong_chain_id_is_refused_before_anything_is_signed(devnet: Fleet, shared: Path) -> None:
    name = profile(shared, "wrong-id", ("id = 31337", "id = 4217"))
    said = devnet("run", "qa-smoke", "--platform", name)
    assert said.code == 4
    assert "31337" in said.err
    assert "4217" in said.err
    assert "chain.id" in said.err
    assert "try:" in said.err


def test_an_unreachable_node_says_so(devnet: Fleet, shared: Path) -> None:
    name = profile(shared, "dead", (line_of(shared, "rpc"), 'rpc = "http://127.0.0.1:9"'))
    said = devnet(
        "items", "log", "list", "--platform", name, "--json"
    )  # a run tells an outage: test_outage.py
    error = json.loads(said.err.splitlines()[-1])
    assert (said.code, error["exit_code"], error["kind"]) == (4, 4, "Unreachable")
    assert "127.0.0.1:9" in error["error"]


def test_a_contract_without_code_is_named(devnet: Fleet, shared: Path) -> None:
    nobody = "0x" + "12" * 20
    name = profile(shared, "empty", (line_of(shared, "diamond"), f'diamond = "{nobody}"'))
    said = devnet("run", "qa-smoke", "--platform", name)
    assert said.code == 4
    assert nobody in said.err
    assert "chain.diamond" in said.err


def test_a_node_that_answers_garbage_is_unreachable_not_trusted(devnet: Fleet, shared: Path) -> None:
    with garbage(b"<html>busy</html>") as url:
        name = profile(shared, "garbage", (line_of(shared, "rpc"), f'rpc = "{url}"'))
        said = devnet("run", "qa-smoke", "--platform", name)
    assert said.code == 4
    assert "Traceback" not in said.err


@pytest.mark.parametrize("body", [b"", b"\0\xff" * 4000, b"{" * 9000], ids=["empty", "binary", "braces"])
def test_a_platform_that_answers_garbage_ends_in_a_footer_and_no_leak(
    devnet: Fleet, shared: Path, body: bytes
) -> None:
    with garbage(body) as url:
        site = line_of(shared, "site").split('"')[1]
        name = profile(shared, "nonsense", (site, url))
        said = devnet("run", "qa-smoke", "--platform", name, "--json")
    assert said.code in (0, 1), said.err
    run = said.data
    assert (run["outcome"], run["settled"]) == ("done", True)
    records = (shared / "runs" / run["run"] / "trajectory.jsonl").read_text().splitlines()
    assert json.loads(records[-1])["type"] == "footer"
    assert "Traceback" not in said.err


def test_a_persona_with_an_unknown_key_names_file_line_key_and_remedy(fleet: Fleet, tmp_path: Path) -> None:
    path = tmp_path / "qa-x.md"
    path.write_text('+++\nname = "qa-x"\nsurface = "ux"\ntoolz = ["qa_fetch"]\n+++\nLook.\n')
    said = fleet("personas", "check", str(tmp_path), "--json")
    assert said.code == 3
    error, idle = said.data["errors"]
    assert (error["line"], error["key"], idle["key"]) == (4, "toolz", "probe")
    assert error["file"].endswith("qa-x.md")
    assert "tools" in error["reason"] + error["remedy"]


def test_a_world_writable_dial_means_observe_and_is_named(fleet: Fleet, state: Path) -> None:
    dial = state / "autonomy"
    dial.write_text("exercise\n")
    dial.chmod(0o666)
    shown = fleet("dial", "--json").data
    assert (shown["rung"], shown["trusted"]) == ("observe", False)
    (state / "devnet").mkdir()
    said = fleet("check", "config", "--platform", "example")
    assert said.code == 3
    assert str(dial) in said.err
    assert "try: " in said.err


def test_a_broken_configuration_names_file_key_and_the_valid_ones(fleet: Fleet, state: Path) -> None:
    (state / "devnet").mkdir()
    (state / "devnet" / "odd.toml").write_text('name = "odd"\n[chain]\nrcp = "http://127.0.0.1:1"\n')
    said = fleet("check", "config", "--platform", "odd")
    assert said.code == 3
    assert "odd.toml: chain." in said.err


@pytest.mark.parametrize(("key", "said_of_it"), [("corpus", "is not a folder"), ("grammar", "odd.lark")])
def test_what_a_search_starts_from_is_read_by_the_check(
    fleet: Fleet, state: Path, key: str, said_of_it: str
) -> None:
    (state / "devnet").mkdir()
    chain = f'[chain]\nrpc = "http://127.0.0.1:1"\nid = 1\ndiamond = "0x{"11" * 20}"\n'
    (state / "devnet" / "odd.toml").write_text(f'name = "odd"\n{chain}[compiler]\n{key} = "odd.lark"\n')
    said = fleet("check", "config", "--platform", "odd")
    assert said.code == 3
    assert said_of_it in said.err


def test_a_key_that_others_can_read_is_refused(devnet: Fleet, shared: Path) -> None:
    key = shared / "keys" / "identity"
    secret = key.read_text().strip()
    key.chmod(0o644)
    try:
        said = devnet("run", "qa-smoke")
    finally:
        key.chmod(0o600)
    assert said.code == 3
    assert "identity" in said.err
    assert secret not in said.err + said.out


def test_a_second_fleet_on_one_state_directory_is_refused(devnet: Fleet, shared: Path) -> None:
    import fcntl

    with (shared / "fleet.lock").open("a") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        said = devnet("run", "qa-smoke")
    assert said.code == 75
    assert "another fleet" in said.err


def test_while_stopped_nothing_runs_and_resume_is_a_persons(devnet: Fleet, shared: Path) -> None:
    assert devnet("stop", "--reason", "maintenance").code == 0
    said = devnet("run", "qa-smoke")
    assert said.code == 5
    assert "maintenance" in said.err
    assert os.path.lexists(shared / "STOP")
    assert devnet("resume").code == 0
    assert not os.path.lexists(shared / "STOP")
