"""Literal tokens to values."""

from __future__ import annotations

import struct

from ._parser import Token
from .diagnostic import CompileError, Span
from .nodes import F32, Literal, Value

ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "0": "\0", "\\": "\\", "'": "'", '"': '"'}


def literal(token: Token) -> Literal:
    """The node of one literal token. Raises CompileError LH0005 (ill-formed) and LH0006 (out of range)."""
    span = (token.start_pos, token.end_pos)
    if token.type == "INT":
        digits, suffix = str(token), ""
        if digits.endswith(("i32", "i64")):
            digits, suffix = digits[:-3], digits[-3:]
        digits = digits.replace("_", "")
        bits = digits.startswith(("0x", "0b"))
        if len(digits) > 66:  # longer than any 64-bit literal; int() of a long text is quadratic
            raise CompileError("LH0006", "literal out of range for i64", (token.start_pos, token.end_pos))
        value: Value = int(digits, 0) if bits else int(digits, 10)
        return Literal((token.start_pos, token.end_pos), value, suffix, bits)
    if token.type == "FLOAT":
        return Literal(span, to_f32(float(token.replace("_", "").removesuffix(F32)), span), F32)
    if token.type in ("TRUE", "FALSE"):
        return Literal(span, token.type == "TRUE")
    text = _unescape(token)
    if token.type == "STRING":
        return Literal(span, text.encode("utf-8"))
    if len(text) != 1:
        raise CompileError("LH0005", "a char literal holds exactly one character", span)
    return Literal(span, ord(text))


def to_f32(value: float, span: Span) -> float:
    """`value` rounded to single precision. Raises CompileError LH0006 when it is beyond f32."""
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        raise CompileError("LH0006", "out of range for f32", span) from None


def _unescape(token: Token) -> str:
    text = token[1:-1].encode("latin-1").decode("utf-8")
    out, at = [], 0
    while at < len(text):
        char = text[at]
        at += 1
        if char != "\\":
            out.append(char)
            continue
        value, at = _escape(text, at, token)
        out.append(value)
    return "".join(out)


def _escape(text: str, at: int, token: Token) -> tuple[str, int]:
    """The character after a backslash at `at - 1`, and where the text goes on."""
    kind = text[at : at + 1]
    if kind in ESCAPES:
        return ESCAPES[kind], at + 1
    if kind == "x":
        digits, end, top = text[at + 1 : at + 3], at + 3, 0x7F
    elif kind == "u" and text[at + 1 : at + 2] == "{" and "}" in text[at : at + 10]:
        end = text.index("}", at) + 1
        digits, top = text[at + 2 : end - 1], 0x10FFFF
    else:
        digits, end, top = "", at, 0
    valid = (
        digits and all(c in "0123456789abcdefABCDEF" for c in digits) and (kind == "u" or len(digits) == 2)
    )
    code = int(digits, 16) if valid else -1
    if not 0 <= code <= top or 0xD800 <= code <= 0xDFFF:
        raise CompileError("LH0005", "unknown escape in a literal", (token.start_pos, token.end_pos))
    return chr(code), end
