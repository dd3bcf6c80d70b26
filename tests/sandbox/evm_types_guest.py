"""Runs in a real jail: the functions of the codes on the request line."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict

from sandbox.chain import evm_types


def main() -> int:
    codes = [bytes.fromhex(one) for one in json.loads(sys.stdin.readline())]
    found = evm_types.analysed(codes)
    print(json.dumps([{selector: asdict(one) for selector, one in code.items()} for code in found]))
    return 0
