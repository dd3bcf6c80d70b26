"""Commits and pushes by itself."""

import subprocess

for words in (["log"], ["push", "origin", "main"], ["init", "-q"], ["add", "-A"], ["commit", "-m", "x"]):
    try:
        end = subprocess.run(["git", *words], capture_output=True, text=True)
        print(words[0], end.returncode)
    except OSError as error:
        print(words[0], error.strerror)
