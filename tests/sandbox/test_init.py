"""The watch of a jail's first process: what it cannot read is over the limit."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOOK = """
import resource, sys
sys.path.append({root!r})
from sandbox.start.init import Used, _over
limits = {{"box": 0, "inodes": 1 << 40, "memory": 1 << 40}}
resource.setrlimit(resource.RLIMIT_NOFILE, ({files}, 64))
print(_over(limits, Used()), file=sys.stdout)
"""


@pytest.mark.parametrize(("files", "over"), [(64, "False"), (0, "True")])
def test_an_error_while_the_limits_are_read_is_over_them(files: int, over: str) -> None:
    """A guest that took its descriptors could otherwise hold any memory."""
    code = LOOK.format(root=str(ROOT), files=files)
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, timeout=30)
    assert (done.stdout, done.stderr) == (f"{over}\n", "")
