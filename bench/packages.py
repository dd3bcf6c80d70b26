"""Released packages that benches start: each installed once, in its own folder, and served behind a fence.

What a package writes or runs stays in the folder that it serves from: it sees the machine read-only, and no
process but its own.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from string import Template
from typing import Any, Self

from bench.known import again
from fleet.files import ROOT
from fleet.jail.locate import find_bwrap
from tests.platforms.served import free_port

PLACE = ROOT / ".wild"
FENCE = [
    find_bwrap(),
    "--ro-bind",
    "/",
    "/",
    "--dev",
    "/dev",
    "--proc",
    "/proc",
    "--tmpfs",
    "/tmp",
]
FENCE += ["--unshare-pid", "--die-with-parent", "--unshare-user", "--uid", "1000", "--gid", "1000"]
"""Some defects write files or run commands: a package writes below its own folder only, and not as root."""


@dataclass(frozen=True, slots=True)
class Package:
    """A released package: `setup` runs once in the folder it serves from, `start` again when it ends."""

    name: str
    start: str
    pypi: tuple[str, ...] = ()
    npm: tuple[str, ...] = ()
    before: str = ""
    """The day as of which PyPI's releases are taken; npm's registry keeps no such days of older ones."""
    overrides: tuple[str, ...] = ()
    """Releases taken against what the package asks for, where that does not run on this Python."""
    prepare: str = ""
    """Runs once, in the package's home, when it has been installed."""
    setup: str = ":"
    files: Mapping[str, str] = field(default_factory=dict)
    """An application, where the package is a library: its documented quick start."""

    @classmethod
    def described(cls, one: Mapping[str, Any]) -> Self:
        """A package as a list in TOML has it, by the names of the fields."""
        known: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in one.items()
        }
        return cls(**known)

    @property
    def home(self) -> Path:
        return PLACE / self.name

    def shell(self, folder: Path) -> str:
        """What a shell needs before a line of this package's own commands."""
        path = f"{self.home / 'bin'}:{self.home / 'node_modules' / '.bin'}"
        return f"export HOME={shlex.quote(str(folder))} PATH={shlex.quote(path)}:$PATH"

    def words(self, folder: Path, port: int) -> list[str]:
        """The command line that serves it from a folder."""
        for name, text in self.files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        modules = folder / "node_modules"
        if self.npm and not modules.exists():  # an import of a module looks beside the file only
            modules.symlink_to(self.home / "node_modules")
        values = {"port": port, "spare": free_port(), "home": self.home, "folder": folder}
        setup, start = (Template(line).safe_substitute(values) for line in (self.setup, self.start))
        ready = f"unset PYTHONPATH; {self.shell(folder)}"
        shell, option, loop = again(folder, start)
        line = f"{ready}; cd {shlex.quote(str(folder))}; {setup}; {loop}"
        return [*FENCE, "--bind", str(folder), str(folder), shell, option, line]


def install(one: Package) -> None:
    """Into its own environment and folder, unless that is there. Raises CalledProcessError."""
    ready = one.home / ".ready"
    wanted = json.dumps([one.pypi, one.npm, one.before, one.overrides, one.prepare])
    if ready.exists() and ready.read_text() == wanted:
        return
    one.home.mkdir(parents=True, exist_ok=True)
    uv = PLACE / "uv" / "bin" / "uv"
    commands: list[list[str | Path]] = []
    if one.pypi and not uv.exists():
        commands += [[sys.executable, "-m", "venv", PLACE / "uv"]]
        commands += [[PLACE / "uv" / "bin" / "python", "-m", "pip", "install", "--quiet", "uv"]]
    if one.pypi:  # uv, because pip cannot install as of a day
        commands += [[sys.executable, "-m", "venv", "--without-pip", one.home]]
        python = str(one.home / "bin" / "python")
        words = ["pip", "install", "--quiet", "--python", python, "--exclude-newer", one.before]
        (one.home / "overrides.txt").write_text("\n".join(one.overrides))
        commands += [[uv, *words, "--overrides", "overrides.txt", *one.pypi]]
    if one.npm:
        (one.home / "package.json").write_text('{"private": true}\n')
        quiet = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
        commands += [["npm", "install", "--prefix", one.home, *quiet, *one.npm]]
    if one.prepare:
        commands += [["/bin/sh", "-ec", f"{one.shell(one.home)}; {one.prepare}"]]
    for command in commands:
        subprocess.run(command, check=True, cwd=one.home, stdout=sys.stderr)
    ready.write_text(wanted)
