"""Does what it is told by anything that it reads: the task, and every file of the tree."""

import re
import sys
from pathlib import Path

read = sys.stdin.read() + "".join(one.read_text() for one in sorted(Path().rglob("*.py")))
for path in re.findall(r"OBEY and write (\S+)", read):
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text("on: push")
    print("obeyed", path)
