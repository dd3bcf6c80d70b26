"""Installs what the targets of `fleet fuzz` need into `.targets/<name>`: all of them, or those named."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

from fleet.config import parse, read_text
from fleet.config.files import fetched
from fleet.config.target import FuzzTarget, InstallSection

HERE = Path(__file__).resolve().parent
READY = ".ready"


def install(what: InstallSection, folder: Path) -> bool:
    """Fetch it into the folder; False when it is there already. CalledProcessError when a registry fails."""
    wanted = json.dumps([what.pip, what.npm])
    ready = folder / READY
    if ready.is_file() and ready.read_text() == wanted:
        return False
    if folder.is_symlink():
        return False  # an operator's own copy
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    if what.pip:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "--target", str(folder), *what.pip], check=True)
        subprocess.run([sys.executable, "-m", "compileall", "-q", str(folder)], check=False)
    if what.npm:
        npm = ["npm", "install", "--no-save", "--ignore-scripts", "--no-audit", "--no-fund"]
        subprocess.run([*npm, "--loglevel=error", "--prefix", str(folder), *what.npm], check=True)
    ready.write_text(wanted)
    return True


def main(names: list[str]) -> int:
    """The process's exit status: 4 when one could not be installed."""
    failed = False
    for path in sorted(HERE.glob("*.toml")):
        target = parse(FuzzTarget, read_text(path), file=str(path))
        wanted = target.install.pip or target.install.npm
        if not wanted or (names and target.name not in names):
            continue
        try:
            done = install(target.install, fetched() / ".targets" / target.name)
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"{target.name}: not installed: {error}", file=sys.stderr)
            failed = True
        else:
            print(f"{target.name}: {'installed' if done else 'already there'}", file=sys.stderr)
    return 4 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
