"""The guest that runs a list of probes: {"probes": [...], "facts": {...}} in, {id: [held, seen]} out."""

from __future__ import annotations

import json
import sys

from . import files, kernel, limits, network, processes
from .registry import PROBES, run

ROOMS = (files, processes, kernel, network, limits)
ALL = tuple(PROBES)


def main() -> int:
    """Answer one request line."""
    request = json.loads(sys.stdin.readline())
    results = {name: run(name, request["facts"]) for name in request["probes"]}
    print(json.dumps(results))
    return 0
