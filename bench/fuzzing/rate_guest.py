"""Runs in a jail: executes one input for a while, and prints the runner's name and executions a second."""

from __future__ import annotations

import json
import sys
import time

from sandbox.programs.process import Ending
from sandbox.programs.program import Program
from sandbox.runners.choice import runner


def main() -> int:
    asked = json.loads(sys.stdin.readline())
    subject = runner(Program(**asked["program"]), "compiler")
    source, done = asked["source"].encode(), 0
    began = time.monotonic()
    while (spent := time.monotonic() - began) < asked["seconds"]:
        assert subject.run(source, 5).ending is Ending.ACCEPTED
        done += 1
    print(json.dumps({"name": subject.name, "rate": done / spent}))
    subject.close()
    return 0
