"""The description of one container for the engine: pure, from the shape of its jail."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fleet.jail.bwrap.spawn import HOST_FACTS
from fleet.jail.docker.seccomp_profile import profile
from fleet.jail.model import Layout, Limits

PROCESSORS = 2
"""At most, for one jail."""
_MASKED = (
    *("/proc/acpi", "/proc/asound", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/scsi"),
    *("/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug", "/sys"),
    "/dev/mqueue",
    *HOST_FACTS,
)
"""The engine's own list (moby `oci/defaults.go`), all of /sys, and what bubblewrap's jails hide."""
_READ_ONLY = ("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")
_SPARE_INODES = 1024
_SPARE_MEMORY = 64 << 20
_START = "/opt/sandbox/start/container_start.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerMount:
    """A directory of the host and its place inside."""

    source: str
    target: str
    writable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerShape:
    """What every container of one class of limits has in common. `user` is a host uid and gid.

    `own_box` is False when a host directory is mounted at /box.
    """

    python: str
    library_path: str
    guest: str
    limits: Limits
    layout: Layout
    mounts: tuple[ContainerMount, ...]
    own_box: bool
    user: tuple[int, int]
    runtime: str


def container_config(
    shape: ContainerShape, *, image: str, processors: int, door: Path, labels: Mapping[str, str]
) -> dict[str, Any]:
    """The body of the engine's `POST /containers/create`; `door` is the folder with the socket."""
    uid, gid = shape.user
    return {
        "Image": image,
        "Hostname": shape.layout.host,
        "User": f"{uid}:{gid}",
        "Entrypoint": [shape.python],
        "Cmd": ["-I", "-S", "-B", shape.layout.inside(_START), json.dumps(inner_limits(shape)), shape.guest],
        "Env": environment(shape.library_path, shape.layout),
        "WorkingDir": shape.layout.box,
        "Labels": dict(labels),
        "Healthcheck": {"Test": ["NONE"]},
        "AttachStdin": False,
        "AttachStdout": False,
        "AttachStderr": False,
        "HostConfig": _host_config(shape, processors, door),
    }


def inner_limits(shape: ContainerShape) -> dict[str, int]:
    """For `sandbox.start.init`: the control group counts processes; an rlimit would count every jail's."""
    return asdict(shape.limits) | {"processes": 0} | ({} if shape.own_box else {"box": 0})


def environment(library_path: str, layout: Layout) -> list[str]:
    """The whole of it; HOSTNAME, which the engine adds, is removed inside."""
    found = ["PATH=/usr/bin:/bin", f"HOME={layout.box}", "LANG=C.UTF-8"]
    found += [f"{name}={value}" for name, value in layout.variables.items()]
    return [*found, f"LD_LIBRARY_PATH={library_path}"] if library_path else found


def _host_config(shape: ContainerShape, processors: int, door: Path) -> dict[str, Any]:
    limits = shape.limits
    memory = limits.memory + limits.tmp + limits.shm + _SPARE_MEMORY + (limits.box if shape.own_box else 0)
    mounts = [*shape.mounts, ContainerMount(source=str(door), target=shape.layout.inside("/opt/start"))]
    # PID 1 ends a jail with more than `inodes`; the file system stops a little above
    uid, gid = shape.user
    inodes = shape.limits.inodes + _SPARE_INODES
    common = f"nosuid,nodev,nr_inodes={inodes},uid={uid},gid={gid}"
    sizes = {"/tmp": (shape.limits.tmp, "1777"), "/dev/shm": (shape.limits.shm, "1777")}
    if shape.own_box:
        sizes[shape.layout.box] = (shape.limits.box, "0700")
    return {
        "NetworkMode": "none",
        "ReadonlyRootfs": True,
        "CapDrop": ["ALL"],
        "SecurityOpt": ["no-new-privileges", f"seccomp={profile()}"],
        "MaskedPaths": list(_MASKED),
        "ReadonlyPaths": list(_READ_ONLY),
        "Sysctls": {"net.ipv4.ping_group_range": "1 0"},  # the engine opens ping sockets to everybody
        "IpcMode": "none",  # a namespace of its own, and no /dev/shm but ours
        "Memory": memory,
        "MemorySwap": memory,
        "PidsLimit": limits.processes,
        "NanoCpus": min(PROCESSORS, processors) * 10**9,
        "Tmpfs": {path: f"rw,exec,{common},size={size},mode={mode}" for path, (size, mode) in sizes.items()},
        "Mounts": [
            {
                "Type": "bind",
                "Source": mount.source,
                "Target": mount.target,
                "ReadOnly": not mount.writable,
                "BindOptions": {"Propagation": "private"},
            }
            for mount in mounts
        ],
        "LogConfig": {"Type": "none", "Config": {}},
        "RestartPolicy": {"Name": "no"},
        "Init": False,
        **({"Runtime": shape.runtime} if shape.runtime else {}),
    }
