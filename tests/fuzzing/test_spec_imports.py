"""The trusted side needs the definition of `qa_fuzz`, not the search itself."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
from sandbox.tools import TOOLS
list(TOOLS.values())
print(sorted(name for name in sys.modules if name.startswith("sandbox.fuzz.")))
"""


def test_the_definitions_of_all_tools_load_no_search() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['sandbox.fuzz.port']"
