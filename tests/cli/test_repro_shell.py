"""A repro as shell: the lines do what the calls say, for any argument, and reveal no secret."""

from __future__ import annotations

import json
import shlex
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from fleet.chain.node.digest import metadata_key
from fleet.cli.findings.repro_shell import ShellPlace, shell
from fleet.findings.repro import ReproCall, write_repro
from sandbox.chain.contract import VIEWS

DIAMOND = "0x" + "12" * 20
PLACE = ShellPlace(
    site="http://site.test/",
    proxy="https://api.test",
    face="http://{name}.face.test/",
    rpc="http://127.0.0.1:8545",
    diamond=DIAMOND,
    metadata={"app": "0x" + metadata_key("app").hex()},
)
CURL = "curl -sS --globoff --path-as-is --proto =http,https --max-time 30"
EVIL = "a'; touch pwned; echo $(touch pwned) `touch pwned` \" && \\"


def lines(*calls: ReproCall, again: str = "") -> list[str]:
    return shell(write_repro(calls), PLACE, again)


def fetch(**args: object) -> ReproCall:
    return ReproCall("qa_fetch", args)


def test_a_page_is_one_curl() -> None:
    assert lines(fetch(url="{site}/llms.txt")) == [f"{CURL} -i --url http://site.test/llms.txt"]
    assert lines(fetch(url="{face:bob}", origin="https://x.test")) == [
        f"{CURL} -i -H 'Origin: https://x.test' --url http://bob.face.test/"
    ]
    assert lines(fetch(url="{proxy}/v1", method="POST", fields={"a": "b"})) == [
        f"{CURL} -i -X POST -H 'content-type: application/json' "
        '--data-raw \'{"a": "b"}\' --url https://api.test/v1'
    ]
    assert lines(fetch(url="{site}/x", repeat=3))[0] == "# 3 times:"


def test_no_line_holds_a_secret() -> None:
    (line,) = lines(fetch(url="{site}/x", headers={"X-Api-Key": "hunter2hunter2", "accept": "*/*"}))
    assert "hunter2" not in line
    assert '-H "X-Api-Key: $SECRET"' in line
    secret = ShellPlace(rpc="https://node.test/v3/hunter2hunter2", diamond=DIAMOND)
    (line,) = shell(write_repro([ReproCall("qa_chain", {"function": "owner"})]), secret, "")
    assert line.endswith('--url "$RPC_URL"')
    assert "hunter2" not in line


def test_a_view_is_one_call_of_the_node() -> None:
    call = ReproCall("qa_chain", {"function": "ownerOfId", "args": [7]})
    words = shlex.split(lines(call)[0])
    asked = json.loads(words[words.index("--data-raw") + 1])
    assert asked["method"] == "eth_call"
    data = VIEWS["ownerOfId"].selector + f"{7:064x}"
    assert asked["params"] == [{"to": DIAMOND, "data": data}, "latest"]
    assert words[-1] == "http://127.0.0.1:8545"
    watched = lines(ReproCall("qa_chain", {"watch": ["owner", "ownerOfId(1)"]}))
    assert len(watched) == 2
    role = lines(ReproCall("qa_chain", {"function": "metadata", "args": [1, "app"]}))[0]
    assert metadata_key("app").hex() in role


@pytest.mark.parametrize(
    "call",
    [
        ReproCall("qa_compile", {"source": "enum E{}\n"}),
        ReproCall("qa_chain", {"simulate": "0x01020304"}),
        ReproCall("qa_chain", {"function": "release"}),
        ReproCall("qa_chain", {"function": "ownerOfId", "args": ["x"]}),
        fetch(url="{target:shop}/x"),
        fetch(url="file:///etc/passwd"),
        fetch(url="{site}/\u202e"),
        fetch(url="{site}/x", headers={"a\n b": "c"}),
        fetch(url="{site}/x", body="x" * 5_000, method="POST"),
    ],
)
def test_what_a_shell_cannot_do_is_a_comment_and_a_command(call: ReproCall) -> None:
    comment, again = lines(call, again="fleet runs replay r1")
    assert comment.startswith(f"# {call.tool}(")
    assert comment.isprintable()
    assert again == "fleet runs replay r1"


def test_a_text_that_is_no_repro_is_said() -> None:
    assert shell("rm -rf /", PLACE, "x")[0].startswith("# not a repro: ")
    assert shell("", PLACE, "x") == []


@pytest.fixture
def server() -> Iterator[HTTPServer]:
    class Echo(BaseHTTPRequestHandler):
        seen: list[tuple[str, str, bytes, str]] = []

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            self.seen.append((self.command, self.path, body, self.headers.get("x-note", "")))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *args: object) -> None: ...

    made = HTTPServer(("127.0.0.1", 0), Echo)
    thread = threading.Thread(target=made.serve_forever, args=(0.05,))
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


def test_the_line_sends_exactly_what_the_call_says(server: HTTPServer, tmp_path: Path) -> None:
    place = ShellPlace(site=f"http://127.0.0.1:{server.server_port}")
    call = fetch(url="{site}/../a[1]?q={x}", method="POST", body=EVIL, headers={"x-note": EVIL})
    (line,) = shell(write_repro([call]), place, "")
    done = subprocess.run(["sh", "-c", line], cwd=tmp_path, capture_output=True, timeout=30, check=False)
    assert done.returncode == 0, done.stderr
    assert server.RequestHandlerClass.seen == [  # type: ignore[attr-defined]
        ("POST", "/../a[1]?q={x}", EVIL.encode(), EVIL)
    ]
    assert list(tmp_path.iterdir()) == []
