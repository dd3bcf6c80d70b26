"""What a first look finds in released packages with published defects: a list that is drawn from, once.

    make bench-wild ARGS="--check [--list wild2] [--only mkdocs,vite]"
    make bench-wild ARGS="--draw SEED --half [--list wild2] [--rest] [--minutes 3] [--keep DIR]"
    make bench-wild ARGS="--peers [--list wild2] [--only mkdocs,vite] [--keep DIR]"

`bench/wild.toml` and `bench/wild2.toml` have the packages: version, how each is installed and started, and
for each defect the advisory, the requests that show it by hand and what the last answer has. They were
chosen by what is published and shown by hand, never by what the fleet can find. `--check` starts each and
shows its defects; exit status 1 when one does not show. `--draw` orders the list by lot, `--half` keeps the
first half, `--rest` the other: `fleet look --exercise` looks at each once, as a user types it, in a fresh
state directory. A defect counts as found when the title of an item names its kind and its place; all other
items are listed for a person to judge. `--peers` has Schemathesis, where the list names a description, and
Wapiti look instead, each at a package started anew; a person judges their items. What is not yet installed
is installed into .wild/, from PyPI as of its day. docs/bench/wild.md has the results.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import anyio

from bench.findings.causes import causes, hand_made
from bench.findings.fleet_rounds import FinderOutcome
from bench.findings.peers.scanners import Schemathesis, Wapiti
from bench.findings.rules import Posted
from bench.known import KnownDefect, by_hand, filled, titles, told
from bench.packages import Package, install
from fleet.files import ROOT
from tests.platforms.served import Served, free_port

LISTS = {name: Path(__file__).with_name(f"{name}.toml") for name in ("wild", "wild2")}
CANARY = "qa-wild-canary"
"""What the listener answers that a server-side request reaches."""
ASKED = 500
"""Requests of Schemathesis, about, as the fleet asks a small package."""
LATER = 50
"""Tenths of a second that a queue may take until it sends a request to the listener."""


@dataclass(frozen=True, slots=True)
class WildPackage(Package):
    """A package with published defects."""

    defects: tuple[KnownDefect, ...] = ()
    openapi: str = ""
    """Where it serves its OpenAPI description."""


def packages(path: Path = LISTS["wild"]) -> dict[str, WildPackage]:
    """A list, by name."""
    data = tomllib.loads(path.read_text("utf-8"))
    return {one["name"]: _package(one, data["kinds"]) for one in data["package"]}


def _package(one: dict[str, Any], kinds: Mapping[str, str]) -> WildPackage:
    defects = tuple(
        KnownDefect(
            name=f"{defect['advisory']} {defect['kind']}",
            requests=tuple(defect["requests"]),
            shows=defect["shows"],
            item=kinds[defect["kind"]],
            place=defect["place"],
            keep=defect.get("keep", {}),
        )
        for defect in one.pop("defect")
    )
    return WildPackage.described({**one, "defects": defects})


def drawn(names: Sequence[str], seed: int, part: str) -> list[str]:
    """The names in the order of a lot: all, the first half of them, rounded up, or the rest."""
    order = random.Random(seed).sample(sorted(names), len(names))
    middle = (len(order) + 1) // 2
    return {"all": order, "half": order[:middle], "rest": order[middle:]}[part]


@contextmanager
def canary() -> Iterator[tuple[int, list[str]]]:
    """A listener of our own: its port, and the lines of the requests that reached it."""
    asked: list[str] = []

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(CANARY.encode())

        do_HEAD = do_POST = do_GET

        def log_message(self, *_: object) -> None:
            body = self.rfile.read(min(int(self.headers.get("Content-Length") or 0), 1 << 16))
            asked.append(f"{CANARY} was asked: {self.requestline} {body.decode('utf-8', 'replace')}")

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_port, asked
    finally:
        server.shutdown()
        server.server_close()


async def check(one: WildPackage, folder: Path) -> list[str]:
    """What does not show by hand."""
    port, unseen = free_port(), []
    async with Served(one.words(filled(folder / "content") / "files", port), port, folder / "site.log"):
        for defect in one.defects:
            with canary() as (listens, asked):
                values = {"canary": str(listens), "folder": str(folder / "content" / "files")}
                got = await anyio.to_thread.run_sync(by_hand, port, defect, values)
                for _ in range(LATER):
                    if shows := re.search(defect.shows, "\n".join([got, *asked])):
                        break
                    await anyio.sleep(0.1)
            (folder / f"{defect.name.partition(' ')[0]}.answer").write_text("\n".join([got, *asked]))
            print(f"{one.name}: {defect.name}: {'shown' if shows else 'NOT SHOWN'}", file=sys.stderr)
            unseen += [] if shows else [f"{one.name}: {defect.name}: did not show by hand"]
    return unseen


async def look(one: WildPackage, folder: Path, minutes: float) -> FinderOutcome:
    """One look by the command itself, as a user types it."""
    port, state = free_port(), folder / "state"
    words = ["look", f"http://127.0.0.1:{port}", "--exercise", "--yes-i-may", "--json"]
    words += ["--minutes", f"{minutes:g}"]
    env = {**os.environ, "STATE_DIRECTORY": str(state), "HOME": str(folder)}
    async with Served(one.words(filled(folder / "content") / "files", port), port, folder / "site.log"):
        command = [sys.executable, "-m", "fleet.cli", *words]
        done = await anyio.run_process(command, env=env, check=False, cwd=ROOT)
    (folder / "look.json").write_bytes(done.stdout)
    (folder / "look.log").write_bytes(done.stderr)
    if not done.stdout.startswith(b"{"):
        said = done.stderr.decode("utf-8", "replace").strip()[-300:]
        return FinderOutcome(troubles=[f"look: status {done.returncode}: {said}"])
    data = json.loads(done.stdout)
    items = [Posted(title=item["title"], calls=(), surface=item["surface"], at="") for item in data["items"]]
    calls = sum(run["calls"] for run in data["runs"])
    return FinderOutcome(items=items, calls=calls, seconds=data["seconds"])


async def peers(chosen: Sequence[WildPackage], folder: Path) -> int:
    """Has each peer look at each once; prints as JSON what they said."""
    said: dict[str, Any] = {}
    for one in chosen:
        install(one)
        finders = {"wapiti": Wapiti().scan}
        if one.openapi:
            finders["schemathesis"] = Schemathesis(ASKED, one.openapi).scan
        for name, scan in finders.items():
            place, port = folder / one.name / name, free_port()
            place.mkdir(parents=True)
            words = one.words(filled(place / "content") / "files", port)
            async with Served(words, port, place / "site.log"):
                outcome = await scan(place, f"http://127.0.0.1:{port}")
            heard = {
                "items": [item.title for item in outcome.items],
                "seconds": round(outcome.seconds, 1),
                "troubles": outcome.troubles,
            }
            said.setdefault(one.name, {})[name] = heard
            print(f"{one.name}: {name}: {json.dumps(heard)}", file=sys.stderr)
    print(json.dumps(said, indent=1))
    return 1 if any(each["troubles"] for one in said.values() for each in one.values()) else 0


async def looks(chosen: Sequence[WildPackage], folder: Path, minutes: float) -> int:
    """Looks at each once; prints as JSON what was found."""
    said: dict[str, Any] = {}
    for one in chosen:
        try:
            install(one)
            (folder / one.name).mkdir(parents=True)
            outcome = await look(one, folder / one.name, minutes)
        except Exception as error:  # one that does not start must not lose the others' results
            outcome = FinderOutcome(troubles=[f"{type(error).__name__}: {error}"])
        names = [defect.name for defect in one.defects]
        said[one.name] = {**told(outcome, one.defects, names), "load": os.getloadavg()[0]}
        print(f"{one.name}: {json.dumps(said[one.name])}", file=sys.stderr)
    print(json.dumps(said, indent=1))
    every = [bool(items) for one in said.values() for items in one["known"].values()]
    print(f"{sum(every)} of {len(every)} known defects found", file=sys.stderr)
    named = [(name, title) for name, one in said.items() for title in titles(one)]
    print(causes(named, hand_made()), file=sys.stderr)
    return 1 if any(one["troubles"] for one in said.values()) else 0


async def checks(chosen: Sequence[WildPackage], folder: Path) -> int:
    """Shows every defect by hand; prints what did not show."""
    unseen = []
    for one in chosen:
        try:
            install(one)
            (folder / one.name).mkdir(parents=True)
            unseen += await check(one, folder / one.name)
        except Exception as error:
            unseen.append(f"{one.name}: {type(error).__name__}: {error}")
            print(unseen[-1], file=sys.stderr)
    count = sum(len(one.defects) for one in chosen)
    print(f"{len(chosen)} packages, {count} defects", *unseen, sep="\n")
    return 1 if unseen else 0


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--check", action="store_true", help="show each defect by hand; the fleet looks at none"
    )
    parser.add_argument("--draw", type=int, metavar="SEED", help="look at the packages in the order of a lot")
    parser.add_argument("--peers", action="store_true", help="Schemathesis and Wapiti look, not the fleet")
    parser.add_argument("--list", choices=LISTS, default="wild", help="which list")
    parser.add_argument("--half", dest="part", action="store_const", const="half", default="all")
    parser.add_argument("--rest", dest="part", action="store_const", const="rest", help="the other half")
    parser.add_argument("--minutes", type=float, default=5.0, help="of each look, at most")
    parser.add_argument("--only", help="names of the list, with commas")
    parser.add_argument("--keep", type=Path, help="a folder for the packages' files and the looks' records")
    options = parser.parse_args()
    listed = packages(LISTS[options.list])
    only = options.only.split(",") if options.only else [*listed]
    if wrong := sorted({*only} - {*listed}):
        parser.error(f"--only: {', '.join(wrong)} is not one of {', '.join(listed)}")
    if [options.check, options.peers, options.draw is not None].count(True) != 1:
        parser.error("one of --check, --peers and --draw SEED")
    names = only if options.draw is None else drawn(only, options.draw, options.part)
    chosen = [listed[name] for name in names]
    with ExitStack() as stack:
        folder = options.keep or stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-wild-"))
        run = checks if options.check else peers if options.peers else partial(looks, minutes=options.minutes)
        return anyio.run(run, chosen, Path(folder).absolute())


if __name__ == "__main__":
    sys.exit(main())
