"""What is certainly wrong with EVM bytecode: a jump to a constant place that is not a JUMPDEST.

Deployment code is followed from its first instruction with the constants on its stack; what it returns after
a CODECOPY of constant bounds is followed likewise, as the code of the contract. Whatever cannot be followed
(data behind the code, metadata, a computed jump) says nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

MAX_STATES = 4_000
"""States that are followed in one code; the rest of it says nothing then."""
_KEPT = 24
"""Stack entries that distinguish two states."""
_LOWEST = 8
"""Old solc wrote jumps to 0 and 2 on purpose, to fail."""

JUMP, JUMPI, JUMPDEST, CODECOPY, RETURN, ISZERO = 0x56, 0x57, 0x5B, 0x39, 0xF3, 0x15
_CALLS = frozenset((0xF0, 0xF1, 0xF2, 0xF4, 0xF5, 0xFA))
_ENDS = frozenset((0x00, RETURN, 0xFD, 0xFE, 0xFF))
_TAKES_GIVES: dict[int, tuple[int, int]] = (
    {0x5B: (0, 0), 0x15: (1, 1), 0x19: (1, 1), 0x1E: (1, 1), 0x20: (2, 1), 0x08: (3, 1), 0x09: (3, 1)}
    | dict.fromkeys((*range(1, 8), 10, 11, *range(16, 21), 22, 23, 24), (2, 1))
    | dict.fromkeys((26, 27, 28, 29), (2, 1))
    | dict.fromkeys((48, 50, 51, 52, 54, 56, 58, 61, *range(65, 73), 74), (0, 1))
    | dict.fromkeys((49, 53, 59, 63, 64, 73, 81, 84, 92), (1, 1))
    | {0x37: (3, 0), 0x39: (3, 0), 0x3C: (4, 0), 0x3E: (3, 0), 0x50: (1, 0), 0x52: (2, 0), 0x53: (2, 0)}
    | {0x55: (2, 0), 0x58: (0, 1), 0x59: (0, 1), 0x5A: (0, 1), 0x5D: (2, 0), 0x5E: (3, 0)}
    | {0xA0 + topics: (2 + topics, 0) for topics in range(5)}
    | {0xF0: (3, 1), 0xF1: (7, 1), 0xF2: (7, 1), 0xF4: (6, 1), 0xF5: (4, 1), 0xFA: (6, 1)}
)

Stack = tuple[int | None, ...]
State = tuple[int, Stack, tuple[int, int] | None]
"""Place, stack (the top last), and the bounds of the last constant CODECOPY.

An entry is a constant, None where it is not known, or negative: whether the call at a place succeeded (-2,
-4, ...) or failed (one less). Code of `try` in Solidity reaches one place with two heights of the stack, and
goes on by that flag (issue 12911 of its compiler): a branch on it settles it.
"""


def bad_jump(code: bytes) -> str:
    """What is wrong with deployment code, in words without numbers; "" when nothing is certain."""
    if code[:2] == b"\xef\x00":  # another container, with rules of its own (EIP-3540)
        return ""
    where, returned = _follow(code)
    if where:
        return "the deployment code jumps to a constant place that is not a JUMPDEST"
    for start, size in sorted(returned):
        if size and start + size <= len(code) and _follow(code[start : start + size])[0]:
            return "the contract's code jumps to a constant place that is not a JUMPDEST"
    return ""


def opcodes(code: bytes) -> frozenset[int]:
    """Opcodes of a linear reading, data behind the code included."""
    return frozenset(opcode for _, opcode, _ in _instructions(code))


def _instructions(code: bytes) -> Iterator[tuple[int, int, int]]:
    """Place, opcode and the bytes that follow as its operand."""
    at = 0
    while at < len(code):
        size = code[at] - 0x5F if 0x60 <= code[at] <= 0x7F else 0
        yield at, code[at], size
        at += 1 + size


def _follow(code: bytes) -> tuple[bool, set[tuple[int, int]]]:
    """Whether a reached constant jump is bad, and the bounds of what the code returns."""
    places = {at for at, opcode, _ in _instructions(code) if opcode == JUMPDEST}
    todo: list[State] = [(0, (), None)]
    known: set[tuple[int, Stack]] = set()
    returned: set[tuple[int, int]] = set()
    while todo and len(known) < MAX_STATES:
        at, stack, copied = todo.pop()
        if (at, stack[-_KEPT:]) in known:
            continue
        known.add((at, stack[-_KEPT:]))
        end, stack, copied = _block(code, at, stack, copied)
        opcode = code[end] if end < len(code) else 0
        if opcode == RETURN and copied:
            returned.add(copied)
        if opcode not in (JUMP, JUMPI) or not stack:
            continue
        target, rest = stack[-1], stack[:-1]
        flag = rest[-1] if opcode == JUMPI and rest else None
        if flag != 0:
            if target is not None and target >= _LOWEST and target not in places:
                return True, returned
            if target in places:
                todo.append((target or 0, rest if opcode == JUMP else _settled(rest, flag, True), copied))
        if opcode == JUMPI and (flag is None or flag <= 0):
            todo.append((end + 1, _settled(rest, flag, False), copied))
    return False, returned


def _settled(stack: Stack, flag: int | None, taken: bool) -> Stack:
    """The stack below the flag of a JUMPI, with what its being taken or not says of a call."""
    if flag is None or flag >= 0:
        return stack[:-1]
    succeeded = flag + flag % 2
    success = taken == (flag == succeeded)
    known = {succeeded: int(success), succeeded - 1: int(not success)}
    return tuple(known.get(one, one) if one is not None else None for one in stack[:-1])


def _negated(value: int | None) -> int | None:
    if value is None or value >= 0:
        return None if value is None else int(not value)
    return value - 1 if value % 2 == 0 else value + 1


def _block(
    code: bytes, at: int, stack: Stack, copied: tuple[int, int] | None
) -> tuple[int, Stack, tuple[int, int] | None]:
    """Follow to the next jump or end; the place of that instruction. One that is not known ends it too."""
    values = list(stack)
    while at < len(code):
        opcode = code[at]
        if opcode in (JUMP, JUMPI) or opcode in _ENDS:
            return at, tuple(values), copied
        if 0x5F <= opcode <= 0x7F:
            size = opcode - 0x5F
            values.append(int.from_bytes(code[at + 1 : at + 1 + size].ljust(size, b"\0"), "big"))
            at += 1 + size
            continue
        if 0x80 <= opcode <= 0x9F:
            depth = opcode - 0x7F if opcode < 0x90 else opcode - 0x8E
            if depth > len(values):
                return len(code), (), None
            if opcode < 0x90:
                values.append(values[-depth])
            else:
                values[-1], values[-depth] = values[-depth], values[-1]
            at += 1
            continue
        takes, gives = _TAKES_GIVES.get(opcode, (-1, 0))
        if takes < 0 or takes > len(values):
            return len(code), (), None
        if opcode == CODECOPY:
            start, size_ = values[-2], values[-3]
            copied = (start, size_) if start is not None and size_ is not None else None
        if opcode == ISZERO:
            values[-1] = _negated(values[-1])
            at += 1
            continue
        del values[len(values) - takes :]
        if opcode in _CALLS:
            # push the flag of the call at this place; one of an earlier execution is not known any more
            flag = -2 * (at + 1)
            values[:] = [None if one in (flag, flag - 1) else one for one in values]
            values.append(flag)
        else:
            values += [None] * gives
        at += 1
    return len(code), (), None
