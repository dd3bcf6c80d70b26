"""PID 1 of a container: `container_start.py LIMITS_JSON GUEST_MODULE`.

An engine passes no descriptors, so this takes them over a socket in a folder that the container was given:
the guest's standard streams and the system call filter come in one message. The same socket then is the
control socket of `sandbox.start.init`. The engine's own filter is weaker: see
`fleet.jail.docker.seccomp_profile`.
"""

from __future__ import annotations

import os
import socket
import sys

OPT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DOOR = f"{OPT}/start/door"
_KEPT = frozenset({"PATH", "HOME", "LANG", "LD_LIBRARY_PATH", "QA_PLACES"})
_LONGEST = 1 << 16  # a filter has at most 4096 instructions of 8 bytes


def main() -> None:
    """Take the streams, lock the door, and become the jail's first process."""
    sys.path.append(OPT)
    control = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    control.connect(DOOR)
    program, streams, _, _ = socket.recv_fds(control, _LONGEST, 3)
    for target, fd in enumerate(streams):
        os.dup2(fd, target)
    for name in os.environ.keys() - _KEPT:
        del os.environ[name]
    from sandbox.start.init import start
    from sandbox.start.syscall_filter import install

    install(program)
    start(control.detach(), *sys.argv[1:3])


if __name__ == "__main__":
    main()
