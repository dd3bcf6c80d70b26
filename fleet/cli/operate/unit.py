"""The systemd unit of a checkout: the files to write and the commands to type. Pure."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from fleet.config import ROOT, read_text
from fleet.errors import ConfigError

UNIT = "qa-fleet.service"
TEMPLATE = ROOT / "config" / UNIT
MARK = "# Written by `fleet service install`."
USERS = "/etc/sysusers.d/qa-fleet.conf"
USERS_TEXT = f'{MARK}\nu qa-fleet - "QA fleet" /var/lib/qa-fleet\n'
HIDDEN = ("/home", "/root", "/run/user", "/tmp", "/var/tmp")
"""What ProtectHome and PrivateTmp hide; the needed paths below are bound back, read-only."""

CONFIGURATION = "ConfigurationDirectory=qa-fleet\nConfigurationDirectoryMode=0700\n"

_PLAIN = re.compile(r"/[A-Za-z0-9._/+-]*")
_SYSTEM_ONLY = re.compile(r"\n# begin system\n.*?\n# end system\n", re.DOTALL)


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
        before, after = _around(prefix / "bin" / "fleet")
    start = (f"{control} daemon-reload", f"{control} enable --now qa-fleet")
    return Installation(
        files=files,
        after=(*before, *start, *after, f"journalctl {'--user ' if user else ''}-fu qa-fleet"),
        before_removal=(f"{control} disable --now qa-fleet",),
        after_removal=(f"{control} daemon-reload",),
    )


def _around(fleet: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Commands before the first start, and to read the service's state afterwards."""
    before = (
        f"systemd-sysusers {USERS}",
        "install -d -m 0700 /etc/credstore",
        "install -m 0600 IDENTITY_KEY /etc/credstore/qa-fleet.identity",
        "install -m 0600 SPONSOR_KEY /etc/credstore/qa-fleet.sponsor",
    )
    return before, (f"runuser -u qa-fleet -- env STATE_DIRECTORY=/var/lib/qa-fleet {fleet} status",)


def render(template: str, *, root: Path, prefix: Path, base: Path, user: bool) -> str:
    """The unit for one checkout, virtual environment (`prefix`) and interpreter (`base`); pure.

    Raises ConfigError for a path that would need quoting: systemd has a different rule for every directive.
    """
    for path in (root, prefix, base):
        if not _PLAIN.fullmatch(str(path)):
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
    words = {"root": str(root), "fleet": str(prefix / "bin" / "fleet"), "home": _home(root, prefix, base)}
    return f"{MARK}\n" + re.sub(r"@(root|fleet|home)@", lambda found: words[found[1]], template)


def _home(*needed: Path) -> str:
    below = {path for path in needed if any(path.is_relative_to(folder) for folder in HIDDEN)}
    bound = sorted(
        path for path in below if not any(path != one and path.is_relative_to(one) for one in below)
    )
    if not bound:
        return "ProtectHome=yes"
    return f"ProtectHome=tmpfs\nBindReadOnlyPaths={' '.join(map(str, bound))}"
