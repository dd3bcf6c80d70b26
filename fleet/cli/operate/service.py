"""`fleet service install|uninstall|show`: the systemd unit of this installation.

It writes and removes files, and prints the systemctl commands: it never runs them.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from fleet.cli.console import DryRun, Json, make_app, note, put
from fleet.config import read_text
from fleet.errors import ConfigError, Refused, UsageError
from fleet.files import ROOT, SHIPPED, sync_folder, write_atomic

app = make_app(
    group=True,
    lazy={
        "hook": ("operate.hook", "List webhooks, create a secret, send a delivery."),
        "notify": ("operate.notify", "Test notifications; silence an event for a while."),
    },
)

UNIT = "qa-fleet.service"
TEMPLATE = SHIPPED / "config" / UNIT
MARK = "# Written by `fleet service install`."
USERS = "/etc/sysusers.d/qa-fleet.conf"
USERS_TEXT = f'{MARK}\nu qa-fleet - "QA fleet" /var/lib/qa-fleet\n'
HIDDEN = ("/home", "/root", "/run/user", "/tmp", "/var/tmp")
"""What ProtectHome and PrivateTmp hide; the needed paths below are bound back, read-only."""

CONFIGURATION = "ConfigurationDirectory=qa-fleet\nConfigurationDirectoryMode=0700\n"

_UNQUOTED = re.compile(r"/[A-Za-z0-9._/+-]*")
_SYSTEM_ONLY = re.compile(r"\n# begin system\n.*?\n# end system\n", re.DOTALL)


System = Annotated[
    bool, typer.Option("--system", help="Install for the machine (default): own user, full hardening.")
]
User = Annotated[bool, typer.Option("--user", help="Install for your user only, under your own systemd.")]
Root = Annotated[Path, typer.Option(help="Write below this folder, such as the root of an image.")]


@app.callback()
def _group() -> None:
    """The systemd unit of this installation, its webhooks and its notifications."""


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

    def show_files() -> None:
        for path, content in chosen.files.items():
            print(f"# --- {path}\n{content}" if dry_run else f"wrote {path}")
        _commands("nothing was started; next", chosen.after)

    put(data, as_json=as_json, text=show_files)


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

    def text() -> None:
        for path in there:
            print(f"{'would remove' if dry_run else 'removed'} {path}")
        if not there:
            note("nothing is installed")
            return
        _commands("before that" if dry_run else "if it still runs", chosen.before_removal)
        _commands("next", chosen.after_removal)

    put(data, as_json=as_json, text=text)


@app.command()
def show(root: Root = Path("/"), as_json: Json = False) -> None:
    """Show what is installed, and whether it matches this installation."""
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


def _commands(title: str, commands: tuple[str, ...]) -> None:
    note(f"{title}:")
    for command in commands:
        note(f"  {command}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """The files of one scope, the unit first, and the commands around them."""

    files: dict[Path, str]
    after: tuple[str, ...]
    before_removal: tuple[str, ...]
    after_removal: tuple[str, ...]

    @property
    def unit(self) -> Path:
        """The unit file itself."""
        return next(iter(self.files))


def installation(*, user: bool, root: Path = Path("/")) -> Installation:
    """What `install` writes for this checkout and interpreter; ConfigError if it could not work.

    `root` is the root of the machine's files: `/`, or the folder of an image.
    """
    prefix = Path(sys.prefix)
    unit = render(read_text(TEMPLATE), root=ROOT, prefix=prefix, base=Path(sys.base_prefix), user=user)
    control = "systemctl --user" if user else "systemctl"
    if user:
        home = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
        files = {home / "systemd" / "user" / UNIT: unit}
        before: tuple[str, ...] = ()
        after: tuple[str, ...] = ("loginctl enable-linger    # keeps running after you log out",)
    else:
        files = {root / "etc/systemd/system" / UNIT: unit, root / USERS.lstrip("/"): USERS_TEXT}
        before = (
            f"systemd-sysusers {USERS}",
            "install -d -m 0700 /etc/credstore",
            "install -m 0600 IDENTITY_KEY /etc/credstore/qa-fleet.identity",
            "install -m 0600 SPONSOR_KEY /etc/credstore/qa-fleet.sponsor",
        )
        fleet = prefix / "bin" / "fleet"
        after = (f"runuser -u qa-fleet -- env STATE_DIRECTORY=/var/lib/qa-fleet {fleet} status",)
    start = (f"{control} daemon-reload", f"{control} enable --now qa-fleet")
    return Installation(
        files=files,
        after=(*before, *start, *after, f"journalctl {'--user ' if user else ''}-fu qa-fleet"),
        before_removal=(f"{control} disable --now qa-fleet",),
        after_removal=(f"{control} daemon-reload",),
    )


def render(template: str, *, root: Path, prefix: Path, base: Path, user: bool) -> str:
    """The unit for one checkout, virtual environment (`prefix`) and interpreter (`base`); pure.

    Raises ConfigError for a path that would need quoting: systemd has a different rule for every directive.
    """
    for path in (root, prefix, base):
        if not _UNQUOTED.fullmatch(str(path)):
            raise ConfigError(
                f"{path}: systemd would misread this path", remedy="use a path without special characters"
            )
    if user:
        template = _SYSTEM_ONLY.sub("", template)
        template = template.replace("WantedBy=multi-user.target", "WantedBy=default.target")
        # before systemd 254 a user's state and configuration share one folder
        template = template.replace("ConfigurationDirectory=qa-fleet\n", CONFIGURATION)
        template = re.sub(r"(After|Wants)=network-online\.target\n", "", template)  # system scope only
    template = re.sub(r"# (begin|end) system\n", "", template)
    below = {path for path in (root, prefix, base) if any(path.is_relative_to(folder) for folder in HIDDEN)}
    bound = sorted(
        path for path in below if not any(path != one and path.is_relative_to(one) for one in below)
    )
    home = f"ProtectHome=tmpfs\nBindReadOnlyPaths={' '.join(map(str, bound))}" if bound else "ProtectHome=yes"
    words = {"root": str(root), "fleet": str(prefix / "bin" / "fleet"), "home": home}
    return f"{MARK}\n" + re.sub(r"@(root|fleet|home)@", lambda found: words[found[1]], template)
