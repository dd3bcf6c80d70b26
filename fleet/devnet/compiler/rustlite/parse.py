"""Source bytes to a syntax tree whose positions are byte offsets."""

from __future__ import annotations

from functools import cache

from ._parser import Lark, Lark_StandAlone, Tree, UnexpectedCharacters, UnexpectedInput, UnexpectedToken
from .diagnostic import CompileError

CAP = 65_536
"""Largest source, in bytes."""


def parse(source: bytes) -> Tree:
    """The tree of one source text. Raises CompileError LH0001-LH0004, LH0101, LH0102.

    The text is read as Latin-1, one character a byte, so every position the parser reports is a byte offset;
    the grammar is ASCII outside strings, char literals and comments, which are decoded when they are lowered.
    """
    if len(source) > CAP:
        raise CompileError("LH0002", f"the source is larger than {CAP} bytes", (CAP, len(source)))
    try:
        source.decode("utf-8")
    except UnicodeDecodeError as error:
        raise CompileError("LH0001", "the source is not UTF-8", (error.start, error.end)) from None
    try:
        return _parser().parse(source.decode("latin-1"))
    except UnexpectedInput as error:
        raise _translated(error, source) from None


@cache
def _parser() -> Lark:
    return Lark_StandAlone()


def _translated(error: UnexpectedInput, source: bytes) -> CompileError:
    if isinstance(error, UnexpectedToken) and error.token.type == "$END":
        return CompileError("LH0102", "unexpected end of the source", (len(source), len(source)))
    at = error.pos_in_stream or 0
    if isinstance(error, UnexpectedToken):
        opened = next((i for i in (at, at - 1) if source[max(i, 0) : i + 2] == b"/*"), -1)
        if opened >= 0:
            return CompileError("LH0004", "unterminated block comment", (opened, len(source)))
        return CompileError("LH0101", "unexpected token", (at, error.token.end_pos))
    assert isinstance(error, UnexpectedCharacters)
    if source[at] == ord('"'):
        return CompileError("LH0004", "unterminated string", (at, len(source)))
    if source[at] == ord("'"):
        return CompileError("LH0004", "unterminated or ill-formed char literal", (at, at + 1))
    end = at + 1
    while end < len(source) and source[end] & 0xC0 == 0x80:
        end += 1
    return CompileError("LH0003", "unexpected character", (at, end))
