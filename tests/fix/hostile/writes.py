"""Writes the files that it is told to: PATH TEXT, in pairs."""

import sys
from pathlib import Path

words = iter(sys.argv[1:])
for path, text in zip(words, words, strict=True):
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text)
