"""Start a jail's first process: `__main__.py CONTROL_FD LIMITS_JSON GUEST_MODULE`."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Become the jail's first process, with the guest module as its only child."""
    sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    control, limits, guest = sys.argv[1:4]
    from sandbox.start.init import start

    start(int(control), limits, guest)


if __name__ == "__main__":
    main()
