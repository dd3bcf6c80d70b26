"""Runs in a real jail: one round of a runner over given inputs, and what is there after it."""

from __future__ import annotations

import json
import os
import sys

from sandbox.programs.program import Program
from sandbox.runners.choice import runner


def main() -> int:
    asked = json.loads(sys.stdin.readline())
    subject = runner(Program(**asked["program"]), "compiler")
    said = []
    for word in asked["inputs"]:
        done = subject.run(word.encode(), asked["cpu_s"])
        said.append([done.ending.value, done.code, done.stdout[:64].decode("utf-8", "replace")])
    name = subject.name
    subject.close()
    left = [path for folder in ("/box", "/tmp", "/dev/shm") for path in os.listdir(folder)]
    own = {"1", str(os.getpid())}
    processes = [pid for pid in os.listdir("/proc") if pid.isdigit() and pid not in own]
    print(json.dumps({"name": name, "said": said, "left": left, "processes": processes}))
    return 0
