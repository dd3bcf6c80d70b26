"""`fleet items log list` asks a node for what there is to ask for, and for no longer than it was given."""

from __future__ import annotations

import http.server
import json
import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from eth_abi.abi import encode

from fleet.chain.node.abi import FUNCTIONS
from tests.cli_process import run_fleet

pytestmark = pytest.mark.timeout(100)
COUNT, RANGE = (FUNCTIONS[name].selector.hex() for name in ("feedbackCount", "feedbackRange"))
PROFILE = """
name = "liar"
[chain]
rpc = "{url}"
id = 7
diamond = "0x0000000000000000000000000000000000000001"
[web]
site = "http://127.0.0.1:9"
face = "http://{{name}}.localhost:9/"
proxy = "http://127.0.0.1:9"
"""
Pages = Callable[[int, int], int]
"""`(start, count)` to how many entries come back."""


class Node:
    """Says that the log has `total` entries, and answers each page with as many as `pages` says."""

    def __init__(self, total: int, pages: Pages) -> None:
        self.total, self.pages = total, pages
        self.asked: list[tuple[int, int]] = []

    def answer(self, call: dict[str, Any]) -> dict[str, Any]:
        results = {"eth_chainId": "0x7", "eth_getCode": "0x00", "eth_blockNumber": "0x1"}
        said = results.get(call["method"]) or "0x" + self.view(call["params"][0]["data"][2:]).hex()
        return {"jsonrpc": "2.0", "id": call["id"], "result": said}

    def view(self, data: str) -> bytes:
        if data.startswith(COUNT):
            return self.total.to_bytes(32, "big")
        assert data.startswith(RANGE)
        start, count = int(data[8:72], 16), int(data[72:136], 16)
        self.asked.append((start, count))
        size = self.pages(start, count)
        rows = ["0x" + "11" * 20] * size, [1] * size, ["x"] * size
        return encode(["address[]", "uint64[]", "string[]"], rows)


@contextmanager
def serving(node: Node) -> Iterator[str]:
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            said = [node.answer(one) for one in asked] if isinstance(asked, list) else node.answer(asked)
            body = json.dumps(said).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def log_list(state: Path, node: Node, *words: str) -> subprocess.CompletedProcess[str]:
    (state / "devnet").mkdir()
    with serving(node) as url:
        (state / "devnet" / "liar.toml").write_text(PROFILE.format(url=url))
        return run_fleet(
            *("items", "log", "list", "--platform", "liar", *words),
            timeout=90,
            env=os.environ | {"STATE_DIRECTORY": str(state)},
        )


def test_a_node_that_always_has_another_page_is_asked_for_no_more_than_it_counted(tmp_path: Path) -> None:
    node = Node(450, lambda start, count: count)
    said = log_list(tmp_path, node, "--json", "--last", "420")
    assert (said.returncode, [row["index"] for row in json.loads(said.stdout)]) == (0, [*range(30, 450)])
    assert node.asked == [(30, 200), (230, 200), (430, 20)]


def test_a_node_that_answers_one_by_one_and_never_ends_meets_the_deadline(tmp_path: Path) -> None:
    node = Node(2**255, lambda start, count: 1)
    said = log_list(tmp_path, node, "--last", "100000", "--timeout", "1")
    assert (said.returncode, said.stdout) == (4, "")
    why = "reading the last 100000 entries took longer than 1 s"
    assert f"{why}\n  try: ask for fewer with --last" in said.stderr
    assert 0 < len(node.asked) < 100_000


@pytest.mark.parametrize(
    ("had", "words"),
    [
        (0, "the log ends at entry 0, short of its own count of 9"),
        (201, "more entries than requested"),
    ],
)
def test_a_page_that_cannot_be_true_is_unreachable(tmp_path: Path, had: int, words: str) -> None:
    said = log_list(tmp_path, Node(9, lambda start, count: had))
    assert (said.returncode, said.stdout) == (4, "")
    assert words in said.stderr


def test_an_empty_log_is_no_error(tmp_path: Path) -> None:
    node = Node(0, lambda start, count: count)
    said = log_list(tmp_path, node, "--json")
    assert (said.returncode, json.loads(said.stdout), node.asked) == (0, [], [])
