"""The programs that a runtime keeps beside a container, and that outlive an engine or a failed start.

Each names its container on its command line: containerd's shim, runsc's sandbox and gofer.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

from fleet.errors import JailError
from fleet.jail.process import is_running, kill, open_pidfd

_RUNTIMES = (b"containerd-shim", b"runsc")
"""How their names begin: containerd-shim-runc-v2, runsc, runsc-sandbox, runsc-gofer."""
_BY_ITSELF_S = 2.0


def end_helpers(containers: Sequence[str]) -> int:
    """End what a runtime left of these container ids, after a time to go by itself; return how many."""
    deadline = time.monotonic() + _BY_ITSELF_S
    while (left := helpers(containers)) and time.monotonic() < deadline:
        time.sleep(0.02)
    for pid in left:
        if (pidfd := open_pidfd(pid)) is None:
            continue
        try:
            if _is_helper(str(pid), containers) and is_running(pidfd):  # not another one by now
                kill(pidfd)
        except PermissionError as error:
            reason = f"process {pid}, which a runtime left, cannot be ended"
            raise JailError(reason, remedy="restart the engine") from error
        finally:
            os.close(pidfd)
    return len(left)


def helpers(containers: Sequence[str]) -> list[int]:
    """The processes of runtimes that name one of these container ids."""
    if not containers:
        return []
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and _is_helper(name, containers)]


def _is_helper(pid: str, containers: Sequence[str]) -> bool:
    try:
        command = Path("/proc", pid, "cmdline").read_bytes()
    except OSError:
        return False
    name = os.path.basename(command.split(b"\0", 1)[0])
    return name.startswith(_RUNTIMES) and any(container.encode() in command for container in containers)
