"""Start a jail's first process: `__main__.py CONTROL_FD LIMITS_JSON GUEST_MODULE`.

The guest is imported before the fork, so a pooled jail has paid for its imports when a request arrives.
"""

from __future__ import annotations

import json
import sys


def main() -> None:
    """Import the guest module and run its `main()` as the only child."""
    from importlib import import_module

    sys.path += ["/opt", "/opt/site"]
    control, limits, guest = sys.argv[1:4]
    from sandbox.init import run_as_init

    run_as_init(int(control), json.loads(limits), import_module(guest).main)


if __name__ == "__main__":
    main()
