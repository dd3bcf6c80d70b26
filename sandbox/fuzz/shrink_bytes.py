"""How bytes shrink: sections of a module, chunks, then bytes to zero."""

from __future__ import annotations

from sandbox.fuzz.shrink_state import Shrinking

_HEADER = 8
"""Bytes of a module's magic number and version."""
SMALL = 512
"""Bytes of an input that is simplified byte by byte."""


def sections(state: Shrinking) -> None:
    """Remove sections of a WebAssembly module whole, and contents of a section with its length put right."""
    if not state.best.startswith(b"\0asm"):
        return
    parts = _sections(state.best)
    state.cut(parts, lambda left: state.best[:_HEADER] + b"".join(left))
    for at in range(len(_sections(state.best)) - 1, -1, -1):
        parts = _sections(state.best)
        if at < len(parts):
            kind, body = parts[at][:1], _body(parts[at])
            before, after = state.best[:_HEADER] + b"".join(parts[:at]), b"".join(parts[at + 1 :])
            state.cut(
                [body[i : i + 1] for i in range(len(body))],
                lambda left, kind=kind, before=before, after=after: (  # type: ignore[misc]
                    before + kind + _leb(sum(map(len, left))) + b"".join(left) + after
                ),
            )


def chunks(state: Shrinking) -> None:
    """Remove bytes."""
    state.cut([state.best[at : at + 1] for at in range(len(state.best))])


def zeros(state: Shrinking) -> None:
    """Make bytes zero, then as small as they may be."""
    size = min(len(state.best), SMALL)
    while size:
        for at in range(0, len(state.best), size):
            end = min(at + size, len(state.best))
            state.keeps(state.best[:at] + bytes(end - at) + state.best[end:])
        size = size // 2 if len(state.best) <= SMALL else 0
    if len(state.best) <= SMALL:
        for at in range(len(state.best)):
            for less in (1, state.best[at] // 2, state.best[at] - 1):
                if 0 < less < state.best[at]:
                    state.keeps(state.best[:at] + bytes((less,)) + state.best[at + 1 :])


def _sections(module: bytes) -> list[bytes]:
    """The sections after the header; what does not parse is the last one."""
    found, at = [], _HEADER
    while at < len(module):
        size, body = _read_leb(module, at + 1)
        end = body + size
        found.append(module[at:end])
        at = max(end, at + 1)
    return found


def _body(section: bytes) -> bytes:
    return section[_read_leb(section, 1)[1] :]


def _read_leb(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data) and shift < 35:
        value |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not data[at - 1] & 0x80:
            break
    return value, at


def _leb(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
