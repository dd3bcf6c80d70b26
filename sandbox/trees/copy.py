"""A work tree in a jail: `/box` itself, or a copy of a read-only mount that ends with the jail."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence

from sandbox.errors import Failure, JailBroken
from sandbox.places import BOX, OPT
from sandbox.programs import process
from sandbox.programs.starts import library_path

TREE = f"{OPT}/qa_tree"
"""Where a tree is mounted that is to be copied; no name of an operator's mount has an underscore."""
_OWN = frozenset({"py", "site", "sandbox", "qa_tree"})
_COPY_S = 120.0


def take_copy() -> None:
    """Copy the tree to `/box`, links as links and times kept; JailBroken when it does not fit or be read.

    The content is hostile: `cp` works with the rights of the jail's user, on a disk of the jail alone.
    """
    try:
        ended = process.run(["/usr/bin/cp", "-a", "--", f"{TREE}/.", BOX], b"", _COPY_S)
    except Failure as failure:
        raise JailBroken(f"the tree cannot be copied: {failure}") from None
    if ended.code != 0:
        said = ended.stderr.decode("utf-8", "replace").strip().partition("\n")[0]
        raise JailBroken(f"the tree cannot be copied: {said[:200]}")


def variables(more: Mapping[str, str]) -> dict[str, str]:
    """The environment of a command of the tree. Each mount `/opt/<name>` is in PYTHONPATH, its `bin` in PATH;
    the guest's own packages come last, so that they serve a tree that brings none."""
    names = sorted(name for name in os.listdir(OPT) if name not in _OWN)
    paths = [f"{OPT}/{name}" for name in names]
    # without mounts pytest is ours, and our plugins are none of the tree's
    plain = {} if names else {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return {
        **plain,
        **library_path([sys.executable]),
        "PATH": ":".join([*(f"{path}/bin" for path in paths), "/usr/bin", "/bin"]),
        "PYTHONPATH": ":".join([*paths, f"{OPT}/site"]),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
        **more,
    }


def words(command: Sequence[str], environment: Mapping[str, str], **known: str) -> list[str]:
    """argv with `{python}` and the other known words filled in, its program found by PATH.

    Raises Failure `cannot_start` when there is no such program.
    """
    known = {"python": sys.executable, "tree": BOX, **known}
    found = list(command)
    for name, value in known.items():
        found = [word.replace("{" + name + "}", value) for word in found]
    program = found[0] if "/" in found[0] else shutil.which(found[0], path=environment["PATH"])
    if not program:
        raise Failure("cannot_start", f"{found[0]}: there is no such program in the jail")
    return [program, *found[1:]]
