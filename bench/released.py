"""What the fleet says of web applications that others wrote and released; a person judges each item.

    make bench-released [ARGS="--only datasette,fava --personas qa-security --keep DIR"]

Each application (.ci/released.txt) is started with a little content of its own, beside a bare platform's
chain, and the shipped personas look at it once, in a fresh state directory. These applications have no seeded
defects, so there is no recall, and what is found in them may be true: the answer is the list of items with
their calls. docs/bench/released.md has the judgements. Exit status 1 when one could not be looked at.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

import anyio

from bench.findings.causes import causes, hand_made
from bench.findings.fleet_rounds import FinderOutcome, FleetRounds
from fleet.chain.node.rpc import Rpc
from fleet.devnet.anvil import Anvil
from fleet.devnet.deploy import create_diamond
from fleet.files import ROOT
from tests.platforms.bare import FACETS, LEFT_OUT, NAME, describe
from tests.platforms.profile import written
from tests.platforms.served import Served, free_port
from tests.platforms.stand import Stand

PROGRAMS = ROOT / ".venv-released" / "bin"
LEDGER = """option "title" "Moss"
option "operating_currency" "USD"
2020-01-01 open Assets:Cash
2020-01-01 open Expenses:Food
"""
Words = Callable[[Path, int], list[str]]
"""The command line of an application, from a folder with content and its port."""
Run = Callable[[list[str], tuple[str, ...], Path], Awaitable[int]]
Fill = Callable[[Path], Path]
"""Writes content into a folder, which it returns."""


def content(folder: Path) -> Path:
    """A few files, a database with two tables, a ledger."""
    (folder / "files").mkdir(parents=True)
    for number in range(4):
        (folder / "files" / f"note{number}.txt").write_text(f"note {number}\n" * 20)
    with sqlite3.connect(folder / "pets.db") as database:
        database.execute("create table dogs (id integer primary key, name text, age int)")
        database.execute("create table owners (id integer primary key, name text)")
        dogs = [(f"dog {number}", number % 15) for number in range(200)]
        database.executemany("insert into dogs (name, age) values (?, ?)", dogs)
        database.executemany("insert into owners (name) values (?)", [(f"owner {at}",) for at in range(20)])
    database.close()
    days = (f'2020-02-{day:02} * "shop"\n  Expenses:Food  {day} USD\n  Assets:Cash\n' for day in range(1, 28))
    (folder / "moss.beancount").write_text(LEDGER + "".join(days))
    return folder


APPLICATIONS: Mapping[str, Words] = {
    "datasette": lambda at, port: ["datasette", "serve", f"{at}/pets.db", "-h", "127.0.0.1", "-p", f"{port}"],
    "fava": lambda at, port: ["fava", "-H", "127.0.0.1", "-p", f"{port}", f"{at}/moss.beancount"],
    "httpbin": lambda at, port: ["gunicorn", "--threads", "8", "-b", f"127.0.0.1:{port}", "httpbin:app"],  # noqa: ARG005  the port's
    "pypiserver": lambda at, port: ["pypi-server", "run", "-p", f"{port}", "-i", "127.0.0.1", f"{at}/files"],
    "radicale": lambda at, port: [
        *("radicale", "--server-hosts", f"127.0.0.1:{port}", "--auth-type", "none"),
        *("--storage-filesystem-folder", f"{at}/radicale"),
    ],
    "sqlite-web": lambda at, port: ["sqlite_web", "-x", "-H", "127.0.0.1", "-p", f"{port}", f"{at}/pets.db"],
    "wsgidav": lambda at, port: [
        *(
            "wsgidav",
            "--host",
            "127.0.0.1",
            "--port",
            f"{port}",
            "--auth",
            "anonymous",
            "--root",
            f"{at}/files",
        ),
    ],
}


@asynccontextmanager
async def running(program: Words, folder: Path, fill: Fill = content) -> AsyncIterator[Stand]:
    """The program, a chain with a log, and their profile."""
    own = fill(folder / "content")
    async with Anvil(folder / "chain.json") as chain, Rpc(chain.url) as rpc:
        diamond, port = await create_diamond(rpc, FACETS, left_out=LEFT_OUT), free_port()
        async with Served(program(own, port), port, folder / "site.log") as web:
            profile = folder / f"{NAME}.toml"
            profile.write_text(written(describe(chain.url, diamond, web.url)), "utf-8")
            yield Stand(NAME, profile, chain, rpc, diamond, web, {})


def installed(name: str) -> Words:
    """An application, with the path of its command."""

    def words(at: Path, port: int) -> list[str]:
        command, *rest = APPLICATIONS[name](at, port)
        return [str(PROGRAMS / command), *rest]

    return words


async def looked_at(
    name: str, program: Words, folder: Path, personas: tuple[str, ...], fill: Fill = content
) -> FinderOutcome:
    """One look of each persona at one program."""
    outcome = FinderOutcome()
    try:
        async with running(program, folder / "platform", fill) as stand:
            outcome = await FleetRounds(1, personas=personas).observe(folder / "fleet", stand)
    except Exception as error:  # one that does not start must not lose the others' results
        outcome.troubles.append(f"{type(error).__name__}: {error}")
    print(
        f"{name}: {len(outcome.items)} items, {outcome.calls} calls, {outcome.seconds:.0f} s", file=sys.stderr
    )
    return outcome


def versions() -> dict[str, str]:
    """Of the installed applications, by name."""
    done = subprocess.run(
        [str(PROGRAMS / "python"), "-m", "pip", "list", "--format=json"],
        capture_output=True,
        text=True,
        check=True,
    )
    return {str(one["name"]).lower(): str(one["version"]) for one in json.loads(done.stdout)}


async def run(names: list[str], personas: tuple[str, ...], folder: Path) -> int:
    """Looks at each in turn; prints the items as JSON."""
    said, found, titles = {}, versions(), []
    for name in names:
        outcome = await looked_at(name, installed(name), folder / name, personas)
        titles += [(name, one.title) for one in outcome.items]
        said[f"{name} {found.get(name, '?')}"] = {
            "items": [
                {"title": one.title, "calls": [call.args for call in one.calls]} for one in outcome.items
            ],
            "calls": outcome.calls,
            "seconds": round(outcome.seconds, 1),
            "troubles": outcome.troubles,
        }
    print(json.dumps(said, indent=1))
    print(causes(titles, hand_made()), file=sys.stderr)
    return 1 if any(one["troubles"] for one in said.values()) else 0


def chosen(says: str | None, names: Collection[str], personas: str, run: Run) -> int:
    """The command line of a bench on servers: which of `names`, by which personas, with their files where."""
    parser = argparse.ArgumentParser(description=says, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(names), help=f"of {', '.join(names)}")
    parser.add_argument("--personas", default=personas)
    parser.add_argument("--keep", type=Path, help="a folder for the servers' files and the runs' records")
    options = parser.parse_args()
    if wrong := sorted(set(options.only.split(",")) - set(names)):
        parser.error(f"--only: {', '.join(wrong)} is not one of {', '.join(names)}")
    with ExitStack() as stack:
        folder = options.keep or stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-servers-"))
        return anyio.run(run, options.only.split(","), tuple(options.personas.split(",")), Path(folder))


if __name__ == "__main__":
    sys.exit(chosen(__doc__, APPLICATIONS, "qa-security,qa-ux,qa-perf", run))
