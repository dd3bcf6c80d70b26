"""Profiles as data: written, and made smaller by what a platform does not have."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import tomli_w

from fleet.devnet.standing import STANDING

NAMES = frozenset(one.name for one in STANDING)
FACTS = {"credits": ("call_price_wei",), "proxy": ("call_price_wei",)}
"""What a platform without that part does not promise."""
SLOW = """import runpy, sys, time

until = time.{clock}() + {seconds}
while time.{clock}() < until:
    {act}
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""

Profile = dict[str, Any]


def written(profile: Profile) -> str:
    """Its TOML."""
    return tomli_w.dumps(profile)


def lessened(profile: Profile, gone: frozenset[str]) -> Profile:
    """The profile of the same platform without some parts: their keys are absent, nothing points at them.

    The facets have no key of their own, so a profile is silent about those.
    """
    for part, key in (("site", "site"), ("faces", "face"), ("proxy", "proxy")):
        if part in gone:
            del profile["web"][key]
    if "compiler" in gone:
        del profile["compiler"]
    if "loader" in gone:
        del profile["compiler"]["loader"]
    if "targets" in gone:
        del profile["call_targets"]
    if gone & {"faces", "targets"}:
        profile.get("history", {}).pop("docs_face_p95_ms", None)
    for fact in {fact for part in gone for fact in FACTS.get(part, ())}:
        profile.get("facts", {}).pop(fact, None)
    if "targets" in profile:
        profile["targets"] = {role: at for role, at in profile["targets"].items() if _stands(at, gone)}
    return profile


def _stands(target: str, gone: frozenset[str]) -> bool:
    """Whether what a role of the profile points at is still there."""
    lost = [part for part in gone if target.startswith(f"{{{part}}}")]
    return not lost and not (target in NAMES and "targets" in gone)


def slowed(profile: Profile, folder: Path, seconds: float, *, burn: bool = False) -> Profile:
    """The profile with a compiler and a loader that take this long to start, asleep or by computing.

    A copy of the toolchain with a script in front of its command: only its folder is bound into a jail.
    """
    compiler = profile["compiler"]
    shutil.copytree(compiler["root"], folder)
    clock, act = ("process_time", "pass") if burn else ("monotonic", "time.sleep(0.05)")
    (folder / "slow.py").write_text(SLOW.format(clock=clock, seconds=seconds, act=act))
    compiler["root"] = str(folder)
    for key in {"command", "loader"} & set(compiler):
        words: list[str] = compiler[key]
        at = next(number for number, word in enumerate(words) if word.startswith("/opt/tc/"))
        compiler[key] = [*words[:at], "/opt/tc/slow.py", *words[at:]]
    return profile
