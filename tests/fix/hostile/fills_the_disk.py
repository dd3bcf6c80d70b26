"""Writes for as long as it is let."""

from pathlib import Path

for number in range(100_000):
    Path(f"src/{number}.md").write_bytes(b"x" * (4 << 20))
