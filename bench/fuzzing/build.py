"""A copy of the bundled compiler with defects in its source, each off until `--faults` names it."""

from __future__ import annotations

import shutil
import tomllib
from collections.abc import Sequence
from compileall import compile_dir
from pathlib import Path

from bench.fuzzing.faults import HERE, PlantedFault
from fleet.files import ROOT

COMPILER = ROOT / "fleet" / "devnet" / "compiler" / "rustlite"
FINDS = {
    "node": "[node for node, parent, above, depth, function, kinds in walked(items) if {when}]",
    "function": "[one.body for one in items if isinstance(one, n.Function)"
    " for function, names in [(one, names_of(one))] if {when}]",
    "program": "bodies(items) if {when} else []",
    "source": "bodies(items) if {when} else []",
    "error": "{when}",
    "module": "{when}",
}
TAKES = {"error": "error, source", "module": "module, sections"}
ACTS = {"code": "code, node", "exports": "functions", "output": "module"}
PATCHES = tuple(
    (one["file"], one["old"], one["new"])
    for one in tomllib.loads((HERE / "patches.toml").read_text("utf-8"))["patch"]
)


def built(
    folder: Path, faults: Sequence[PlantedFault], patches: Sequence[tuple[str, str, str]] = PATCHES
) -> Path:
    """The copy, in `folder`/rustlite."""
    copy = folder / "rustlite"
    shutil.copytree(COMPILER, copy, ignore=shutil.ignore_patterns("__pycache__", "*.pyi", "grammar.lark"))
    for name, old, new in patches:
        text = (copy / name).read_text("utf-8")
        if text.count(old) != 1:
            raise ValueError(f"{name}: {old!r} is there {text.count(old)} times")
        (copy / name).write_text(text.replace(old, new), "utf-8")
    planted(copy, faults)
    return copy


def planted(copy: Path, faults: Sequence[PlantedFault]) -> None:
    """Write the copy's defects anew."""
    parts = [(HERE / "hooks.py.txt").read_text("utf-8"), *map(_functions, faults)]
    (copy / "checks.py").write_text("\n\n".join(parts), "utf-8")
    compile_dir(copy, quiet=2)


def _functions(fault: PlantedFault) -> str:
    takes = TAKES.get(fault.stage, "items, source")
    find = FINDS[fault.place.sees].replace("{when}", f"({fault.place.when})")
    body = "".join(f"    {line}\n" for line in fault.do.splitlines())
    act = f"{fault.where}_{fault.id}"
    return (
        f"def sees_{fault.id}({takes}):\n    return {find}\n\n\n"
        f"def {act}({ACTS.get(fault.stage, '')}):\n{body}\n\n"
        f"TABLE[{fault.stage!r}].append(({fault.id!r}, sees_{fault.id}, {act}))\n"
    )
