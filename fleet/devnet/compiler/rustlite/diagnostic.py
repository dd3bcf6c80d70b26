"""The compiler's error message: `LH0204: message, at `source text` [s..e]`, offsets in bytes."""

from __future__ import annotations

Span = tuple[int, int]

SNIPPET = 32
"""Most bytes of source text that an error line quotes."""


class CompileError(Exception):
    """A clean error: the program is wrong, and the message says where."""

    def __init__(self, code: str, message: str, span: Span) -> None:
        super().__init__(message)
        self.code, self.message, self.span = code, message, span


class Panic(Exception):
    """The compiler is wrong; ends the process with 101, as a Rust program does."""


def render(error: CompileError, source: bytes, defects: frozenset[str]) -> str:
    """The one line that goes to stderr."""
    start, end = error.span
    if "compiler-panic" in defects:
        line = _line_bytewise(source, start, end)
    else:
        line = 1 + source.count(b"\n", 0, start)
    quoted = _snippet(source, start, end)
    where = f"line {line}" + (f", at `{quoted}`" if quoted else "")
    return f"{error.code}: {error.message} ({where}) [{start}..{end}]"


def _line_bytewise(source: bytes, start: int, end: int) -> int:
    """Seeded defect: walks text by single bytes, so a wider character up to the end of the span ends it."""
    text = "".join(slice_str(source, at, at + 1) for at in range(end))
    return 1 + text[:start].count("\n")


def _snippet(source: bytes, start: int, end: int) -> str:
    """The refused text, cut between characters and made printable."""
    text = source[start : min(end, start + SNIPPET)].decode("utf-8", "ignore")
    return "".join(c if c.isprintable() else " " for c in text)


def slice_str(source: bytes, start: int, end: int) -> str:
    """`&source[start..end]` of a UTF-8 string; like Rust's, it panics inside a character."""
    for at in (start, end):
        if at < len(source) and source[at] & 0xC0 == 0x80:
            raise Panic(f"byte index {at} is not a char boundary; it is inside a character of the source")
    return source[start:end].decode("utf-8")
