"""What an input of a compiler or a loader is made of: tells defects apart that a program words alike. Pure.

Where a program does not say what failed, its message is that of its end ("SIGABRT", "exports none of frame"),
the same for any cause. The words of a language that an input needs, or the sections of a module, stay the
same when names, numbers and texts in it change, and differ where another construct is at fault.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import accumulate
from typing import Any

LONG, DEEP = 4_096, 24
"""Bytes, and levels of brackets, from which on size or depth is a property of an input."""
_LONGEST_UNIT = 8
_TOKENS = 20_000
_TOKEN = re.compile(r"[A-Za-z_]\w*|\d[\w.]*|\S")
_MAGIC = b"\0asm\x01\0\0\0"
_QUIET = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.S)
_WORDS = re.compile(
    r"\b(?:"
    r"abstract|async|await|break|case|catch|class|const|constructor|continue|contract|def|"
    r"do|else|enum|event|except|export|extends|extern|fallback|final|fn|for|foreach|from|"
    r"func|function|global|if|impl|implements|import|in|inline|interface|internal|lambda|"
    r"let|library|loop|macro|map|match|mod|module|mut|namespace|new|operator|override|"
    r"private|protected|pub|public|pure|raise|receive|ref|repeat|return|returns|self|static|"
    r"struct|super|switch|template|throw|trait|try|type|typedef|union|unless|unsafe|until|"
    r"use|using|var|view|virtual|where|while|with|yield"
    r")\b"
)


def shape(args: Mapping[str, Any]) -> str:
    """The shape of a source or of a module in hex; "" for neither."""
    if source := str(args.get("source", "")):
        return _of_source(source)
    return _of_module(str(args.get("module_hex", "")).removeprefix("0x"))


def _of_source(source: str) -> str:
    """What is repeated, of a source that is one thing many times over: what stands around it varies, and the
    recursion, or the work, is that of the repeated part."""
    code = _QUIET.sub(" ", source)
    if unit := _repeated(code):
        return f"+repeats {unit}"
    words = sorted({*_WORDS.findall(code)})
    deepest = max(accumulate((char in "([{") - (char in ")]}") for char in code), default=0)
    marks = [
        ("text", '"' in source or "'" in source),
        ("wide", not source.isascii()),
        ("deep", deepest >= DEEP),
        ("long", len(source.encode()) >= LONG),
    ]
    return " ".join([*words, *(f"+{name}" for name, holds in marks if holds)])


def _repeated(code: str) -> str:
    """The shortest run of tokens that follows itself at least DEEP times, where no other fills more of the
    source, and that a third of it, as one side of brackets is; rotated to begin with its first by name. Names
    and numbers count as one each. "" for none."""
    tokens = [_folded(one) for one in _TOKEN.findall(code)[:_TOKENS]]
    longest, found = 0, list[str]()
    for period in range(1, _LONGEST_UNIT + 1):
        begin = 0
        for at in range(period, len(tokens) + 1):
            if at < len(tokens) and tokens[at] == tokens[at - period]:
                continue
            run = at - begin
            enough = run >= max(DEEP * period, len(tokens) // 3)
            if enough and run > longest + period:  # a multiple of a unit is no longer
                longest, found = run, tokens[begin : begin + period]
            begin = at - period + 1
    return " ".join(min(([*found[at:], *found[:at]] for at in range(len(found))), default=[]))


def _folded(token: str) -> str:
    if token[0].isdigit():
        return "1"
    return token if not (token[0].isalpha() or token[0] == "_") or _WORDS.fullmatch(token) else "a"


def _of_module(text: str) -> str:
    """The kinds of a module's sections in their order, up to the first that is cut off."""
    try:
        module = bytes.fromhex(text)
    except ValueError:
        return "no hex"
    if not module:
        return ""
    if not module.startswith(_MAGIC):
        return "no module"
    kinds, at = list[str](), len(_MAGIC)
    while at < len(module):
        kind, size, at = module[at], *_leb(module, at + 1)
        kinds.append(str(kind) if size <= len(module) - at else f"{kind} cut")
        at += size
    return f"sections {' '.join(dict.fromkeys(kinds))}".strip()


def _leb(module: bytes, at: int) -> tuple[int, int]:
    """An unsigned number of at most five bytes, and the place after it; cut off, a number too large."""
    value = 0
    for place in range(5):
        if at + place >= len(module):
            return len(module) + 1, len(module)
        byte = module[at + place]
        value |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return value, at + place + 1
    return len(module) + 1, len(module)
