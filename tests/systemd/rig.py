"""A Debian with a real systemd, booted in a container: one root file system, made once and reused.

The root lies in `$XDG_CACHE_HOME/qa-fleet/nspawn-root`; removing it is always safe. The checkout is
copied into it at every boot, the packages only when the lock file has changed.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fcntl import LOCK_EX, flock
from pathlib import Path
from typing import Any

from fleet.devnet.anvil import find_anvil
from fleet.files import ROOT

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "qa-fleet"
PACKAGES = "systemd,systemd-sysv,dbus,python3,python3-venv,bubblewrap,procps"
MIRROR = os.environ.get("DEBIAN_MIRROR", "http://deb.debian.org/debian")
PLACE = "opt/qa-fleet"
"""Where the checkout lies in the container."""
COPIED = ("fleet", "sandbox", "personas", "config", "pyproject.toml")
DEVELOPMENT = (
    "mypy*",
    "*mypyc*",
    "ruff*",
    "pip",
    "pip-*",
    "hypothesis*",
    "setuptools*",
    "pytest*",
    "_pytest",
    "*.pth",
)
INSIDE = tuple(Path(__file__).with_name(name) for name in ("inside.py", "hands.py", "qa-rig.md"))
OUT = "var/lib/qatest"
LEFT = (
    "etc/systemd/system",
    "etc/sysusers.d",
    "etc/credstore",
    "etc/qa-fleet",
    "var/lib/qa-fleet",
    "var/log/journal",
    "home/dev",
)
"""What the last boot left in the root."""
BOOT_S = 540

DRIVER_UNIT = """[Unit]
Description=what the tests of systemd do inside
After=basic.target dbus.service
[Service]
Type=oneshot
WorkingDirectory=/opt/qatest
ExecStart=/usr/bin/python3 -m tests.systemd.inside
ExecStopPost=/usr/bin/systemctl --no-block poweroff
TimeoutStartSec=infinity
[Install]
WantedBy=multi-user.target
"""


@dataclass(frozen=True, slots=True)
class Booted:
    """What a boot left behind: facts by name, the texts of its commands, and the console."""

    facts: dict[str, Any]
    console: str
    seconds: float


def missing() -> str:
    """Why no container can be booted here; empty when one can."""
    if os.geteuid() != 0:
        return "needs root: a container is booted"
    if sys.version_info[:2] != (3, 11):
        return "needs a virtual environment of Python 3.11, that of Debian 12"
    if shutil.which("systemd-nspawn") and (shutil.which("debootstrap") or (CACHE / "nspawn-root").exists()):
        return ""
    return "needs systemd-nspawn and debootstrap: apt-get install -y debootstrap systemd-container"


@contextmanager
def root() -> Iterator[Path]:
    """The root file system, made if need be, for us alone."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "nspawn.lock").open("w") as lock:
        flock(lock, LOCK_EX)
        folder = CACHE / "nspawn-root"
        if not folder.exists():
            part = CACHE / "nspawn-root.part"
            shutil.rmtree(part, ignore_errors=True)
            words = [
                "debootstrap",
                "--variant=minbase",
                f"--include={PACKAGES}",
                "bookworm",
                str(part),
                MIRROR,
            ]
            subprocess.run(words, check=True, stdout=subprocess.DEVNULL, timeout=900)
            part.rename(folder)
        yield folder


def furnish(folder: Path) -> None:
    """Checkout, packages, chain binary and driver, as an operator would lay them out in /opt."""
    place = folder / PLACE
    for name in COPIED:
        _copy(ROOT / name, place / name)
    anvil = find_anvil()
    there = place / anvil.relative_to(ROOT)
    if not there.exists() or there.stat().st_size != anvil.stat().st_size:
        there.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(anvil, there)
    _packages(place / ".venv")
    _chroot(
        folder, f"/{PLACE}/.venv/bin/python", "-m", "compileall", "-q", f"/{PLACE}/fleet", f"/{PLACE}/sandbox"
    )
    for left in (*LEFT, OUT):
        shutil.rmtree(folder / left, ignore_errors=True)
    (folder / "opt/qatest/tests/systemd").mkdir(parents=True, exist_ok=True)
    for file in INSIDE:
        shutil.copy2(file, folder / "opt/qatest/tests/systemd" / file.name)
    units = folder / "etc/systemd/system"
    (units / "multi-user.target.wants").mkdir(parents=True, exist_ok=True)
    (units / "qatest.service").write_text(DRIVER_UNIT)
    (units / "multi-user.target.wants/qatest.service").symlink_to("../qatest.service")


def boot(folder: Path) -> Booted:
    """Boot, let the driver do its work, power off; what it wrote. RuntimeError when it wrote nothing."""
    started = time.monotonic()
    words = [
        "timeout",
        "-k",
        "10",
        str(BOOT_S),
        "systemd-nspawn",
        "-D",
        str(folder),
        "-M",
        f"qa{os.getpid()}",
    ]
    words += ["--boot", "--register=no", "--keep-unit", "--private-network"]
    done = subprocess.run(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=BOOT_S + 30
    )
    console = done.stdout.decode("utf-8", "replace")
    facts = folder / OUT / "facts.json"
    if not facts.exists():
        raise RuntimeError(f"the container ended with {done.returncode} and no facts:\n{console[-3000:]}")
    return Booted(json.loads(facts.read_text("utf-8")), console, time.monotonic() - started)


def _copy(source: Path, target: Path) -> None:
    if source.is_file():
        shutil.copy2(source, target)
        return
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", "*.pyc"))


def _packages(venv: Path) -> None:
    """A virtual environment of the container's Python with the packages that we were installed with."""
    stamp = venv / "lock.sha256"
    digest = hashlib.sha256(
        (ROOT / "requirements.lock").read_bytes() + repr(DEVELOPMENT).encode()
    ).hexdigest()
    if stamp.exists() and stamp.read_text() == digest:
        return
    shutil.rmtree(venv, ignore_errors=True)
    folder = venv.parents[len(Path(PLACE).parts)]
    _chroot(folder, "/usr/bin/python3", "-m", "venv", "--without-pip", f"/{PLACE}/.venv")
    site = venv / "lib/python3.11/site-packages"
    ignore = shutil.ignore_patterns(*DEVELOPMENT, "tests")
    shutil.copytree(sysconfig.get_path("purelib"), site, ignore=ignore, dirs_exist_ok=True)
    (site / "checkout.pth").write_text(f"/{PLACE}\n")  # what `pip install --editable` writes
    script = venv / "bin" / "fleet"
    script.write_text(f"#!/{PLACE}/.venv/bin/python\nfrom fleet.cli import main\n\nmain()\n")
    script.chmod(0o755)
    stamp.write_text(digest)


def _chroot(folder: Path, *words: str) -> None:
    subprocess.run(
        ["chroot", str(folder), *words], check=True, timeout=300, env={"PATH": "/usr/sbin:/usr/bin"}
    )
