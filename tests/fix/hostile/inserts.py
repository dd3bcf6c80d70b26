"""Puts lines at the beginning of `compile`: as many arguments as lines."""

import sys
from pathlib import Path

path = Path("src/compiler.py")
lines = "".join("    " + line + "\n" for line in sys.argv[1:])
path.write_text(path.read_text().replace("def compile(source):\n", "def compile(source):\n" + lines))
