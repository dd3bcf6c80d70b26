"""Asks the running daemon for one of its health pages; exits 0 only for status 200.

    python3 config/probe.py /healthz

For the health check of a container and the probes of Kubernetes: the pages are on a unix socket of the state
directory, not on an address that the engine or the kubelet can reach. Standard library only.
"""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

DEADLINE_S = 4.0


def main(page: str) -> int:
    """Print the page's answer; 0 for status 200, 1 for anything else."""
    place = Path(os.environ.get("STATE_DIRECTORY") or ".qa-fleet", "fleet.sock")
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asked:
            asked.settimeout(DEADLINE_S)
            asked.connect(str(place))
            asked.sendall(f"GET {page} HTTP/1.0\r\nHost: fleet\r\n\r\n".encode())
            answer = asked.makefile("rb").read(65_536)
    except OSError as error:
        print(f"{place}: {error}", file=sys.stderr)
        return 1
    head, _, body = answer.partition(b"\r\n\r\n")
    print(body.decode("utf-8", "replace"))
    return 0 if head.split(b" ", 2)[1:2] == [b"200"] else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1]))
