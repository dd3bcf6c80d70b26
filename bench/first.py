"""What a newcomer gets of targets that others made: one of each kind, from the registries.

    make bench-first [ARGS="--only litellm --keep DIR"]
    make bench-first ARGS="--daemon 60 --keep DIR"

`bench/first.toml` has the targets. Each is started as its manual says; the fleet is this tree's wheel, in an
environment of its own, and each look has an empty home directory. The first form is one command, `fleet
look`: the second of its first line, of its first proven finding and of its end, and the items. The second is
`fleet init --yes`, writes permitted where the list says so, the dial at `exercise` and `fleet up` for so many
minutes, all targets side by side; half-way the operator mends what the first look had shown, where the list
has a mended start, and types `fleet run qa-retest`: items and their state, and the log read back. There is no
list of what is there to be found: a person judges every item, and docs/bench/first.md has the judgements.
What is not yet installed is installed into .wild/ and .first/. Exit status 1 when one could not be looked at.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from string import Template
from typing import Any

import anyio
from anyio.streams.text import TextReceiveStream

from bench.packages import Package, install
from fleet.chain.node import codec
from fleet.chain.node.rpc import Rpc
from fleet.devnet import node
from fleet.devnet.anvil import Anvil
from fleet.devnet.deploy import DEPLOYER
from fleet.files import ROOT
from tests.platforms.served import Served, free_port

LIST = Path(__file__).with_name("first.toml")
PLACE = ROOT / ".first"
FLEET = PLACE / "fleet" / "bin" / "fleet"
RESTART_S = 30.0
"""For a target to listen again."""
END_S = 120.0
"""For a daemon to end after SIGTERM."""


@dataclass(frozen=True, slots=True)
class Target(Package):
    """A package, and the words after `fleet look` for it. A contract has an artifact and no `start`."""

    kind: str = ""
    look: tuple[str, ...] = ()
    start: str = ""
    artifact: str = ""
    types: tuple[str, ...] = ()
    """Of the constructor's arguments."""
    arguments: tuple[Any, ...] = ()
    permit: tuple[str, ...] = ()
    """`act_paths` that its operator writes into the profile, where a daemon watches it."""
    mended: str = ""
    """Its `start` once its operator has mended what the first look showed."""

    @asynccontextmanager
    async def served(self, folder: Path, mend_after_s: float | None = None) -> AsyncIterator[tuple[str, ...]]:
        """While it answers: the words that name it to `fleet look` and `fleet init`."""
        folder.mkdir(parents=True)
        if not self.artifact:
            port = free_port()
            served = Served(self.words(folder, port), port, folder / "served.log")

            async def mend() -> None:
                if self.mended and mend_after_s is not None:
                    await anyio.sleep(mend_after_s)
                    served.end()
                    served.words = replace(self, start=self.mended).words(folder, port)
                    await served.start()

            async with served, anyio.create_task_group() as tasks:
                tasks.start_soon(mend)
                yield tuple(Template(word).substitute(port=port) for word in self.look)
                tasks.cancel_scope.cancel()
            return
        artifact = self.home / self.artifact
        code = bytes.fromhex(json.loads(artifact.read_text())["bytecode"].removeprefix("0x"))
        async with Anvil(folder / "chain.json") as chain, Rpc(chain.url) as rpc:
            arguments = codec.encode(list(self.types), list(self.arguments))
            address = await node.create(rpc, DEPLOYER, code + arguments)
            values = {"chain": chain.url, "address": address, "artifact": artifact}
            yield tuple(Template(word).substitute(values) for word in self.look)


def targets() -> dict[str, Target]:
    """The list, by name."""
    return {one["name"]: Target.described(one) for one in tomllib.loads(LIST.read_text("utf-8"))["target"]}


def install_fleet() -> None:
    """This tree's wheel and what it needs, into a new environment. Raises CalledProcessError."""
    python = FLEET.with_name("python")
    words = ["-m", "pip", "--quiet", "--disable-pip-version-check"]
    commands = [
        ["rm", "-rf", str(PLACE)],
        [
            sys.executable,
            *words,
            "wheel",
            "--no-deps",
            "--no-build-isolation",
            "--wheel-dir",
            str(PLACE),
            ".",
        ],
        [sys.executable, "-m", "venv", str(FLEET.parent.parent)],
    ]
    for command in commands:
        subprocess.run(command, check=True, cwd=ROOT, stdout=sys.stderr)
    wheel = next(PLACE.glob("*.whl"))
    subprocess.run([python, *words, "install", str(wheel)], check=True, stdout=sys.stderr)


@dataclass(frozen=True, slots=True)
class User:
    """Someone with nothing but the installed fleet and an empty home directory."""

    home: Path

    async def types(self, words: Sequence[str], *, log: str = "", stop_s: float | None = None) -> Typed:
        """One command; its lines go to `log` with their seconds. After `stop_s` seconds it gets SIGTERM."""
        self.home.mkdir(parents=True, exist_ok=True)
        env = {"PATH": os.environ["PATH"], "HOME": str(self.home), "LANG": "C.UTF-8"}
        began, lines = time.monotonic(), list[tuple[float, str]]()
        command = ["nice", "-n", "10", str(FLEET), *words]
        async with await anyio.open_process(
            command, cwd=self.home, env=env, stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT
        ) as process:

            async def read() -> None:
                assert process.stdout is not None
                left = ""
                async for text in TextReceiveStream(process.stdout, errors="replace"):
                    *whole, left = (left + text).split("\n")
                    lines.extend((round(time.monotonic() - began, 1), line) for line in whole)

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(read)
                if stop_s is not None:
                    with anyio.move_on_after(stop_s):
                        await process.wait()
                    if process.returncode is None:
                        process.terminate()
                        with anyio.move_on_after(END_S):
                            await process.wait()
                code = await process.wait()
        if log:
            (self.home / log).write_text("".join(f"{at:7.1f}  {line}\n" for at, line in lines))
        return Typed(code, tuple(lines), round(time.monotonic() - began, 1))


@dataclass(frozen=True, slots=True)
class Typed:
    """What a command said, each line with its second, and how it ended."""

    code: int
    lines: tuple[tuple[float, str], ...]
    seconds: float

    def first(self, word: str) -> float | None:
        """The second of the first line that has a word."""
        return next((at for at, line in self.lines if word in line), None)

    @property
    def text(self) -> str:
        return "\n".join(line for _, line in self.lines)


async def looked(one: Target, folder: Path) -> dict[str, Any]:
    """One command, typed once."""
    user = User(folder / "home")
    async with one.served(folder / "target") as words:
        look = await user.types(["look", *words], log="look.txt")
        states = list(user.home.glob("**/looks/*/fleet.db"))
        state = ["--state", str(states[0].parent)] if states else []
        items = await user.types([*state, "items", "--json"], log="items.txt")
    return {
        "first_line_s": look.lines[0][0] if look.lines else None,
        "first_proven_s": look.first("  proven "),
        "end_s": look.seconds,
        "status": look.code,
        "commands": 1,
        "items": items.text,
    }


async def watched(one: Target, folder: Path, minutes: float) -> dict[str, Any]:
    """`init`, the dial and a daemon for some minutes; half-way its operator mends the target, and has the
    items run again."""
    user = User(folder / "home")
    async with one.served(folder / "target", minutes * 60 / 2) as words:
        init = await user.types(["init", "--yes", *words], log="init.txt")
        for profile in user.home.glob(".config/qa-fleet/platforms/*.toml") if one.permit else ():
            line = f"act_paths = {json.dumps(one.permit)}"
            profile.write_text(re.sub(r"(?m)^# act_paths = .*$", line, profile.read_text("utf-8")))
        dial = await user.types(["dial", "exercise", "--reason", "a target of our own"], log="dial.txt")
        again = list[Typed]()

        async def mended() -> None:
            await anyio.sleep(minutes * 60 / 2 + RESTART_S)
            for name in ("qa-retest", "qa-triage"):
                again.append(await user.types(["run", name, "--queue", "--wait"], log=f"{name}.txt"))

        async with anyio.create_task_group() as tasks:
            if one.mended:
                tasks.start_soon(mended)
            up = await user.types(["up"], log="up.txt", stop_s=minutes * 60)
            tasks.cancel_scope.cancel()
        said = {
            name: (await user.types(list(words), log=f"{name}.txt")).text
            for name, words in {
                "items": ("items", "list", "--state", "all", "--json"),
                "log": ("items", "log", "list", "--json"),
                "verified": ("items", "log", "verify", "--json"),
                "status": ("status", "--json"),
            }.items()
        }
    return {"codes": [one.code for one in (init, dial, up, *again)], **said}


async def run(chosen: Sequence[Target], folder: Path, minutes: float | None) -> int:
    """Looks at each in turn, or watches all side by side; prints as JSON what was found."""
    said: dict[str, Any] = {}

    async def tell(one: Target) -> None:
        try:
            install(one)
            place = folder / one.name
            said[one.name] = await (looked(one, place) if minutes is None else watched(one, place, minutes))
        except Exception as error:  # one that does not start must not lose the others' results
            said[one.name] = {"trouble": f"{type(error).__name__}: {error}"}
        said[one.name] |= {"kind": one.kind, "load": os.getloadavg()[0]}
        print(f"{one.name}: {json.dumps(said[one.name])}", file=sys.stderr)

    if minutes is None:
        for one in chosen:
            await tell(one)
    else:
        async with anyio.create_task_group() as tasks:
            for one in chosen:
                tasks.start_soon(tell, one)
    print(json.dumps(said, indent=1))
    return 1 if any("trouble" in one for one in said.values()) else 0


def main() -> int:
    listed = targets()
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default=",".join(listed), help=f"of {', '.join(listed)}")
    parser.add_argument("--daemon", type=float, metavar="MINUTES", help="a profile that stays, and a daemon")
    parser.add_argument("--keep", type=Path, help="a folder for the targets' files and the fleet's records")
    parser.add_argument("--installed", action="store_true", help="take the wheel that .first/ has already")
    options = parser.parse_args()
    only = options.only.split(",")
    if wrong := sorted({*only} - {*listed}):
        parser.error(f"--only: {', '.join(wrong)} is not one of {', '.join(listed)}")
    if not options.installed:
        install_fleet()
    with ExitStack() as stack:
        folder = options.keep or stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-first-"))
        return anyio.run(run, [listed[name] for name in only], Path(folder).absolute(), options.daemon)


if __name__ == "__main__":
    sys.exit(main())
