"""The functions that a contract's code dispatches to, read from its bytes; bounded, and never run."""

from __future__ import annotations

import hashlib

MAX_FUNCTIONS = 512
_PUSH1, _PUSH4, _PUSH32 = 0x60, 0x63, 0x7F
_COMPARES = frozenset((0x14, 0x18, 0x03))
"""EQ of solc; XOR and SUB of other compilers."""
_DUPS = range(0x80, 0x90)


def fingerprint(code: bytes) -> str:
    """The identity of a code, short."""
    return hashlib.sha256(code).hexdigest()[:16]


def dispatched(code: bytes) -> tuple[str, ...]:
    """Selectors that the code compares its calldata with, in its order.

    `PUSH4 selector` and a comparison, with at most one DUP between them: how solc and vyper write a
    dispatcher. A constant that is compared elsewhere may be among them.
    """
    found: dict[str, None] = {}
    operations = list(_operations(code))
    for at, (opcode, operand) in enumerate(operations):
        if opcode != _PUSH4:
            continue
        after = [one for one, _ in operations[at + 1 : at + 3]]
        if after[:1] and (after[0] in _COMPARES or (after[0] in _DUPS and set(after[1:]) & _COMPARES)):
            found["0x" + operand.hex()] = None
        if len(found) == MAX_FUNCTIONS:
            break
    return tuple(found)


def _operations(code: bytes) -> list[tuple[int, bytes]]:
    """Opcodes with what they push."""
    operations, at = [], 0
    while at < len(code):
        opcode = code[at]
        size = opcode - _PUSH1 + 1 if _PUSH1 <= opcode <= _PUSH32 else 0
        operations.append((opcode, code[at + 1 : at + 1 + size]))
        at += 1 + size
    return operations
