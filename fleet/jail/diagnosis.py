"""Why no jail works on this machine: found in milliseconds, by trying, before anything is set up.

Each reason comes with what to do about it, and with the page that says more.
"""

from __future__ import annotations

import os
import shlex
import socket
import subprocess
from contextlib import ExitStack, closing
from pathlib import Path

from fleet.errors import JailError
from fleet.files import SHIPPED
from fleet.jail.jail_spec import UNPRIVILEGED, by_descriptor

APPARMOR = Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
_TRY_S = 10.0
_TRIAL = (
    *("--unshare-all", "--unshare-user", "--disable-userns", "--new-session", "--cap-drop", "ALL"),
    *("--uid", "1000", "--gid", "1000", "--hostname", "jail"),
    *("--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--", "/bin/true"),
)
"""A jail's namespaces and its /proc, which is what fails; its mounts and its filter are the self-check's."""
LOAD = (
    f"sudo cp {shlex.quote(str(SHIPPED / 'config/apparmor/qa-fleet-bwrap'))} /etc/apparmor.d/ && "
    "sudo apparmor_parser -r /etc/apparmor.d/qa-fleet-bwrap"
)
_CONTAINER = (
    f"start the container with `--security-opt seccomp={shlex.quote(str(SHIPPED / 'config/seccomp.json'))} "
    "--security-opt systempaths=unconfined` (docs/containers.md)"
)
_SIGNS = (
    (
        "Read-only file system",
        "/proc/sys is read-only here, as in a container",
        _CONTAINER,
    ),
    (
        "mount proc",
        "a part of /proc is covered or read-only here, as in a container or a hardened service unit",
        f"{_CONTAINER}; a unit must not set ProcSubset or ProtectKernelTunables; ProtectProc: invisible",
    ),
    (
        "Mount too revealing",
        "a part of /proc is covered here, as in a hardened service unit",
        "the unit must not set ProcSubset, ProtectKernelTunables, or a ProtectProc but invisible",
    ),
    (
        "No permissions to creat",
        "no user namespace may be made here",
        f"outside of a container set kernel.unprivileged_userns_clone=1; inside, {_CONTAINER}",
    ),
    (
        "pivot_root",
        "the root directory cannot be exchanged here, as in a container",
        _CONTAINER,
    ),
    (
        "namespace failed",
        "no more namespaces may be made here",
        "raise user.max_user_namespaces, or end other jails",
    ),
    (
        "nknown option",
        "this bubblewrap is too old",
        "0.8 of Debian 12 or newer is needed",
    ),
    (
        "No module named",
        "the guest module is not in the image",
        "check the name of the guest module (Image.guest) and the installed package",
    ),
)
"""A part of what bubblewrap says, what it means, what to do."""
_DENIED = ("uid map", "RTM_NEWADDR", "Permission denied", "Operation not permitted")
"""What a program says that AppArmor lets make a user namespace, and then nothing in it."""


def explained(message: str) -> tuple[str, str]:
    """What a message of bubblewrap means here, and the remedy; "" for the former when it is not known."""
    if restricts_userns() and any(sign in message for sign in _DENIED):
        return "AppArmor lets bubblewrap make no user namespace (as Ubuntu 24.04 does by default)", LOAD
    return next(
        ((why, remedy) for sign, why, remedy in _SIGNS if sign in message), ("", "run `fleet check machine`")
    )


def restricts_userns() -> bool:
    """Whether AppArmor keeps user namespaces for programs with a profile (Ubuntu 23.10 and later)."""
    try:
        return APPARMOR.read_text().strip() == "1"
    except OSError:
        return False


def try_bwrap(bwrap: str) -> None:
    """Make the namespaces of a jail once, as the user that jails have; JailError says why it cannot."""
    with ExitStack() as stack:
        shared: list[int] = []
        executable, environment = bwrap, dict[str, str]()
        if os.geteuid() == 0:
            executable, environment = by_descriptor(stack, bwrap, shared)
        user = UNPRIVILEGED if os.geteuid() == 0 else None
        try:
            ended = subprocess.run(
                ["bwrap", *_TRIAL],
                executable=executable,
                env=environment,
                cwd="/",
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                pass_fds=shared,
                user=user,
                group=user,
                extra_groups=None if user is None else [],
                timeout=_TRY_S,
                check=False,
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise JailError(f"bubblewrap does not start: {error}", remedy="reinstall bubblewrap") from error
    if ended.returncode:
        message = ended.stderr.strip() or f"it ended with status {ended.returncode}"
        why, remedy = explained(message)
        raise JailError(
            f"{why} ({message})" if why else f"bubblewrap makes no jail: {message}", remedy=remedy
        )


def try_engine(url: str) -> None:
    """Connect to the socket of a Docker engine; JailError says why it cannot."""
    path = url.removeprefix("unix://")
    with closing(socket.socket(socket.AF_UNIX)) as connection:
        connection.settimeout(_TRY_S)
        try:
            connection.connect(path)
        except PermissionError as error:
            raise JailError(
                f"no permission to use Docker's socket {path}",
                remedy="use a rootless engine, or join the group `docker`: it is as good as root "
                "(docs/containers.md)",
            ) from error
        except OSError as error:
            raise JailError(
                f"no Docker engine answers at {path}: {error.strerror or error}",
                remedy="start Docker, or name its socket in `[jail] socket` (docs/containers.md)",
            ) from error
