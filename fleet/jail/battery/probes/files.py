"""F: files of the host, and F15: what stands behind the standard descriptors."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess

from .registry import Facts, probe, refused, require

_DEVICES = {
    "console",
    "core",
    "fd",
    "full",
    "null",
    "ptmx",
    "pts",
    "random",
    "shm",
    "stderr",
    "stdin",
    "stdout",
    "tty",
    "urandom",
    "zero",
}
_SERVICES = (
    "/run/docker.sock",
    "/var/run/docker.sock",
    "/run/dbus/system_bus_socket",
    "/run/systemd/private",
    "/run/nscd/socket",
    "/run/systemd/resolve/io.systemd.Resolve",
    "/run/user",
    "/run",
    "/var",
    "/home",
    "/root",
)


def _create(folder: str) -> None:
    with open(os.path.join(folder, "planted"), "w"):
        pass


def _text(path: str) -> str:
    with open(path) as file:
        return file.read()


@probe("F01")
def secrets(facts: Facts) -> str:
    return " ".join(refused("ENOENT", _text, path) for path in facts["secrets"])


@probe("F02")
def accounts(facts: Facts) -> str:
    refused("ENOENT", _text, "/etc/shadow")
    with open("/etc/passwd") as text:
        users = text.read()
    return require(users.count("\n") == 1 and users.startswith("qa:"), users)


@probe("F03")
def by_other_processes(facts: Facts) -> str:
    tried = 0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        for door in ("root", "cwd"):
            refused("ENOENT EACCES", _text, f"/proc/{pid}/{door}{facts['secrets'][0]}")
            tried += 1
    return require(tried > 2, f"{tried} doors")


@probe("F04")
def read_only(facts: Facts) -> str:
    folders = (
        "/",
        "/usr",
        "/etc",
        "/lib",
        "/var",
        "/opt",
        "/opt/sandbox",
        "/dev",
        "/sys",
        "/proc/sys",
        "/proc",
    )
    return " ".join(refused("EROFS EACCES ENOENT EPERM", _create, folder) for folder in folders)


@probe("F06")
def hard_links(facts: Facts) -> str:
    refused("ENOENT", os.link, facts["secrets"][0], "/box/key")
    return refused("EXDEV EPERM", os.link, "/usr/bin/env", "/box/env")


@probe("F07")
def devices(facts: Facts) -> str:
    extra = set(os.listdir("/dev")) - _DEVICES
    return require(not extra, extra or "the fixed list")


@probe("F08")
def new_devices(facts: Facts) -> str:
    for kind in (stat.S_IFBLK, stat.S_IFCHR):
        refused("EPERM", os.mknod, "/box/device", kind | 0o600, os.makedev(1, 1))
    return "EPERM"


@probe("F09")
def kernel_devices(facts: Facts) -> str:
    names = ("mem", "kmsg", "kvm", "fuse", "net/tun", "vsock", "vda", "sda", "port")
    for path in [*(f"/dev/{name}" for name in names), "/proc/kcore", "/proc/sysrq-trigger"]:
        refused("ENOENT EACCES EROFS EPERM", os.open, path, os.O_RDWR)
    return "refused"


@probe("F10", destructive=True)
def setuid(facts: Facts) -> str:
    refused("EPERM EINVAL", os.setuid, 0)
    shutil.copy("/usr/bin/id", "/box/id")
    os.chmod("/box/id", 0o4755)
    seen = subprocess.run(["/box/id", "-u"], capture_output=True, text=True, timeout=5).stdout.strip()
    return require(seen == str(facts["user"]), seen)


@probe("F11")
def services(facts: Facts) -> str:
    seen = [path for path in _SERVICES if os.path.lexists(path)]
    return require(not seen, seen or "none")


@probe("F15")
def standard_descriptors(facts: Facts) -> str:
    kinds = [stat.S_ISFIFO(os.fstat(fd).st_mode) for fd in (0, 1, 2)]
    require(all(kinds), kinds)
    return " ".join(refused("EINVAL EBADF", os.ftruncate, fd, 0) for fd in (1, 2))


@probe("F16")
def belongings_of_the_run(facts: Facts) -> str:
    """Dial, STOP, configuration, persona, brief, plan, state and decisions: none is there to be changed."""
    for path in facts["belongings"]:
        refused("ENOENT", os.open, path, os.O_WRONLY)
        refused("ENOENT", os.open, path, os.O_WRONLY | os.O_CREAT, 0o600)
        refused("ENOENT", os.unlink, path + ".not-there")
    return f"{len(facts['belongings'])} files"
