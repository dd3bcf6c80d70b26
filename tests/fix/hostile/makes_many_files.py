"""Files without a byte take no room, and yet fill a disk's table of them."""

from pathlib import Path

for number in range(600):
    Path(f"src/{number}.py").write_text("")
