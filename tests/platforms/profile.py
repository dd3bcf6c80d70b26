"""Profiles as data: written, and made smaller by what a platform does not have."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import tomli_w

from fleet.devnet.seeded_names import SEEDED_NAMES

NAMES = frozenset(one.name for one in SEEDED_NAMES)
PRICE = frozenset(("call_price", "call_price_wei"))
FACTS = {
    "credits": PRICE,
    "proxy": PRICE | {"agents_know_callers", "call_path", "calls_need_token", "streams"},
    "faces": frozenset(("unknown_names_404",)),
}
"""What a platform without that part does not promise."""
FACES = frozenset(("docs_face_p95_ms", "face_control_p95_ms", "page_face_p95_ms"))
FIGURES = {"site": frozenset(("guide_p95_ms", "site_p95_ms")), "faces": FACES, "targets": FACES}
"""What nobody has measured there."""
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
    if "calls" in gone:
        for key in ("model", "auth_scope", "route"):
            del profile["web"][key]
    if "metadata" in gone:
        del profile["metadata"]
    if "codes" in gone:
        del profile["compiler"]["no_entry_code"], profile["compiler"]["too_large_code"]
    if "compiler" in gone:
        del profile["compiler"]
    if "loader" in gone:
        del profile["compiler"]["loader"]
    if "targets" in gone:
        del profile["call_targets"]
    for table, keys in (("facts", FACTS), ("history", FIGURES)):
        for key in {key for part in gone for key in keys.get(part, ())}:
            profile.get(table, {}).pop(key, None)
    if "targets" in profile:
        profile["targets"] = {role: at for role, at in profile["targets"].items() if _stands(at, gone)}
    return profile


def _stands(target: str, gone: frozenset[str]) -> bool:
    """Whether what a role of the profile points at is still there."""
    lost = [part for part in gone if target.startswith(f"{{{part}}}")]
    name = target.rpartition("=")[2]  # by itself, or as the query of a URL
    return not lost and not (name in NAMES and "targets" in gone)


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
