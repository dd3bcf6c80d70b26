"""A repro as shell: the lines do what the calls say, for any argument, and reveal no secret."""

from __future__ import annotations

import json
import shlex
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from random import Random

import pytest

from fleet.chain.node.digest import metadata_key
from fleet.findings.repro import ReproCall, parse_repro, write_repro
from fleet.triage.outputs.repro_shell import ShellPlace, script, shell
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
CURL = "curl -sS --globoff --path-as-is --max-time 30"
EVIL = "a'; touch pwned; echo $(touch pwned) `touch pwned` \" && \\"


def lines(*calls: ReproCall) -> list[str]:
    return shell(write_repro(calls), PLACE)


def command(*calls: ReproCall) -> str:
    """One command, without its line breaks."""
    (line,) = lines(*calls)
    return line.replace(" \\\n  ", " ")


def fetch(**args: object) -> ReproCall:
    return ReproCall("qa_fetch", args)


def test_a_page_is_one_curl() -> None:
    assert command(fetch(url="{site}/llms.txt")) == f"{CURL} -i --url http://site.test/llms.txt"
    assert command(fetch(url="{face:bob}", origin="https://x.test")) == (
        f"{CURL} -i --header 'Origin: https://x.test' --url http://bob.face.test/"
    )
    assert command(fetch(url="{proxy}/v1", method="POST", fields={"a": "{site}"})) == (
        f"{CURL} -i --request POST --header 'content-type: application/json' "
        '--data-raw \'{"a": "http://site.test"}\' --url https://api.test/v1'
    )
    assert command(fetch(url="{site}/x", method="HEAD", headers={"x-a": ""})) == (
        f"{CURL} -i --head --header 'x-a;' --url http://site.test/x"
    )


def test_a_command_fits_a_terminal_and_breaks_between_its_options() -> None:
    call = fetch(url="{site}/llms.txt", method="POST", fields={"name": "x"}, headers={"accept": "*/*"})
    assert lines(call)[0].splitlines() == [
        f"{CURL} -i --request POST \\",
        "  --header 'content-type: application/json' --header 'accept: */*' \\",
        """  --data-raw '{"name": "x"}' --url http://site.test/llms.txt""",
    ]


def test_a_latency_is_measured_beside_its_control() -> None:
    begin, page, control, end = lines(fetch(url="{site}/x", control="{site}/y", repeat=200))
    assert (begin, end) == ("for time in {1..30}; do", "done")
    assert page.endswith("--url http://site.test/x")
    assert control.endswith("--url http://site.test/y")
    assert all("%{time_total} s" in one for one in (page, control))


def test_no_line_holds_a_secret() -> None:
    line = command(fetch(url="{site}/x", headers={"X-Api-Key": "hunter2hunter2", "accept": "*/*"}))
    assert "hunter2" not in line
    assert '--header "X-Api-Key: ${X_API_KEY:?the value of this header}"' in line
    secret = ShellPlace(rpc="https://node.test/v3/hunter2hunter2", diamond=DIAMOND)
    (line,) = shell(write_repro([ReproCall("qa_chain", {"function": "owner"})]), secret)
    assert line.endswith('--url "${RPC_URL:?the address of a node}"')
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
        ReproCall("qa_call", {"target": "moss", "message": EVIL}),
        ReproCall("qa_chain", {"simulate": "0x01020304"}),
        ReproCall("qa_chain", {"function": "release"}),
        ReproCall("qa_chain", {"function": "ownerOfId", "args": ["x"]}),
        fetch(url="{target:shop}/x"),
        fetch(url="{site}/{name}"),
        fetch(url="file:///etc/passwd"),
        fetch(url="{site}/\u202e"),
        fetch(url="{site}/x", headers={"a\n b": "c"}),
    ],
)
def test_what_a_shell_cannot_do_is_one_call_of_the_fleet(call: ReproCall) -> None:
    """With all calls before it: they share the names and identities of one run."""
    calls = (fetch(url="{site}/"), call)
    place = replace(PLACE, fleet="/opt/my\\ fleet", state="/var/lib/qa fleet")
    where, line = shell(write_repro(calls), place)
    assert shlex.split(where) == ["export", "STATE_DIRECTORY=/var/lib/qa fleet"]
    assert shlex.split(line) == ["/opt/my fleet", "call", write_repro(calls)]
    assert line.isprintable()
    assert parse_repro(shlex.split(line)[2]) == calls


def test_calls_that_are_too_long_for_a_command_are_its_input(tmp_path: Path) -> None:
    letters = Random(1).choices("abcdefghijklmnopqrstuvwxyz'\"$\\\n", k=150_000)
    calls = [ReproCall("qa_compile", {"source": "".join(letters)})]
    made = script(write_repro(calls), replace(PLACE, fleet="cat <(echo", state=""), ["x"])
    assert made.splitlines()[3] == "cat <(echo call - <<'CALLS'"
    assert parse_repro(made.splitlines()[4]) == tuple(calls)
    assert made.splitlines()[5:] == ["CALLS"]


def test_a_text_that_is_no_repro_is_said() -> None:
    assert shell("rm -rf /", PLACE)[0].startswith("# not a repro: ")
    assert shell("", PLACE) == []
    assert script("", PLACE, ["x"]) == ""


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


BODIES = {
    "quotes": EVIL,
    "any byte but zero": "".join(map(chr, range(1, 256))) + "\u202e\U0001f600%s\\x41",
    "a zero byte": "a\0b'\\0101%s\n",
    "long": "x'" * 60_000,
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_the_script_sends_exactly_what_the_call_says(server: HTTPServer, tmp_path: Path, body: str) -> None:
    place = ShellPlace(site=f"http://127.0.0.1:{server.server_port}")
    call = fetch(url="{site}/../a[1]?q={x}", method="POST", body=body, headers={"x-note": EVIL})
    made = script(write_repro([call]), place, ["a 'note' $(touch pwned)"])
    done = subprocess.run(["bash"], input=made.encode(), cwd=tmp_path, capture_output=True, timeout=30)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(b"HTTP/1.0 200 OK\r\n")
    assert server.RequestHandlerClass.seen == [  # type: ignore[attr-defined]
        ("POST", "/../a[1]?q={x}", body.encode(), EVIL)
    ]
    assert list(tmp_path.iterdir()) == []
