"""`fleet service install|uninstall|show`: the systemd unit of this checkout.

It writes and removes files, and prints the systemctl commands: it never runs them.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from fleet.cli.console import DryRun, Json, make_app, note, put
from fleet.cli.operate.unit import MARK, Installation, installation
from fleet.errors import Refused, UsageError
from fleet.files import sync_folder, write_atomic

app = make_app(group=True)

System = Annotated[
    bool, typer.Option("--system", help="Install for the machine (default): own user, full hardening.")
]
User = Annotated[bool, typer.Option("--user", help="Install for your user only, under your own systemd.")]
Root = Annotated[Path, typer.Option(help="Write below this folder, such as the root of an image.")]


@app.callback()
def _group() -> None:
    """Write, remove or show the systemd unit of this checkout."""


@app.command()
def install(
    system: System = False,
    user: User = False,
    root: Root = Path("/"),
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Write the unit and print the next commands; start nothing."""
    chosen = _chosen(system, user, root)
    if not dry_run:
        may_replace(chosen)
        for path, text in chosen.files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(path, text.encode(), mode=0o644)  # world-readable: a unit holds no secret
    data = {
        "files": {str(path): text for path, text in chosen.files.items()},
        "written": not dry_run,
        "next": chosen.after,
    }
    put(data, as_json=as_json, text=lambda: _tell_install(chosen, dry_run))


@app.command()
def uninstall(
    system: System = False,
    user: User = False,
    root: Root = Path("/"),
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Remove what `install` wrote; keep state, keys and configuration."""
    chosen = _chosen(system, user, root)
    there = [path for path in chosen.files if os.path.lexists(path)]
    if not dry_run:
        may_replace(chosen)
        for path in there:
            path.unlink()
            sync_folder(path.parent)
    data = {
        "files": [str(path) for path in there],
        "removed": not dry_run,
        "before": chosen.before_removal,
        "next": chosen.after_removal,
    }
    put(data, as_json=as_json, text=lambda: _tell_uninstall(chosen, there, dry_run))


@app.command()
def show(root: Root = Path("/"), as_json: Json = False) -> None:
    """Show what is installed, and whether it matches this checkout."""
    rows = []
    for scope in ("system", "user"):
        chosen = installation(user=scope == "user", root=root)
        found = _content(chosen.unit)
        state = "absent" if found is None else "current" if found == chosen.files[chosen.unit] else "differs"
        rows.append({"scope": scope, "state": state, "unit": str(chosen.unit)})
    put(rows, as_json=as_json, text=lambda: print("\n".join("\t".join(row.values()) for row in rows)))


def may_replace(chosen: Installation, *, writable: Callable[[Path], bool] | None = None) -> None:
    """Raise Refused, before the first change, for a path we may not write or a file that is not ours."""
    allowed = writable or (lambda folder: os.access(folder, os.W_OK))
    for path in chosen.files:
        if os.path.lexists(path) and not (_content(path) or "").startswith(MARK):
            raise Refused(
                f"{path} was not written by `fleet service install`",
                rule="foreign-file",
                remedy=f"check it, then move it away: {path}",
            )
        nearest = next(folder for folder in path.parents if folder.exists())
        if not allowed(nearest):
            again = shlex.join([str(Path(sys.prefix) / "bin" / "fleet"), *sys.argv[1:]])
            raise Refused(
                f"you may not write to {nearest}",
                rule="not-root",
                remedy=f"sudo {again}; or --user; or --dry-run to see the files",
            )


def _chosen(system: bool, user: bool, root: Path) -> Installation:
    if system and user:
        raise UsageError("--system or --user, not both")
    if user and root != Path("/"):
        raise UsageError("--root is for --system", remedy="set XDG_CONFIG_HOME for --user")
    return installation(user=user, root=root.absolute())


def _content(path: Path) -> str | None:
    """A file's content; None when it is missing or not a regular file."""
    try:
        return None if path.is_symlink() or not path.is_file() else path.read_text("utf-8", "replace")
    except OSError:
        return None


def _tell_install(chosen: Installation, dry_run: bool) -> None:
    for path, text in chosen.files.items():
        print(f"# --- {path}\n{text}" if dry_run else f"wrote {path}")
    _commands("nothing was started; next", chosen.after)


def _tell_uninstall(chosen: Installation, there: list[Path], dry_run: bool) -> None:
    for path in there:
        print(f"{'would remove' if dry_run else 'removed'} {path}")
    if not there:
        note("nothing is installed")
        return
    _commands("before that" if dry_run else "if it still runs", chosen.before_removal)
    _commands("next", chosen.after_removal)


def _commands(title: str, commands: tuple[str, ...]) -> None:
    note(f"{title}:")
    for command in commands:
        note(f"  {command}")
