"""Expectations in CEL: what must hold on a healthy platform. Nothing is evaluated as Python.

The library and its grammar (0.4 s, 11 MB) are loaded by the first expectation only.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, lru_cache
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

VARIABLES = ("result", "results", "history", "facts")
"""The last step's result, every step's result in order, figures of earlier runs by metric, and what the
profile promises."""


LARGEST = 1 << 20
"""Largest size of a file of compiled expectations; a larger one is started anew."""


class ExpectationError(Exception):
    """The expectation does not compile, or cannot be decided on these results."""


@dataclass(frozen=True, slots=True)
class Values:
    """The variables of an expectation."""

    results: Sequence[Mapping[str, Any]]
    history: Mapping[str, float] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)

    def named(self) -> dict[str, Any]:
        """By the names of VARIABLES."""
        named = {"result": self.results[-1], "results": list(self.results)}
        return named | {"history": dict(self.history), "facts": dict(self.facts)}


@lru_cache(maxsize=1)
def _environment() -> Any:
    import celpy

    return celpy.Environment()


@lru_cache(maxsize=512)
def _program(text: str) -> Any:
    from celpy.celparser import CELParseError

    try:
        environment = _environment()
        return environment.program(environment.compile(text))
    except CELParseError as error:
        lines = str(error).strip().splitlines() or ["syntax"]
        raise ExpectationError(" ".join(lines)) from None


def check(text: str) -> str | None:
    """Why this expectation does not compile, or None."""
    try:
        _program(text)
    except ExpectationError as error:
        return f"not a CEL expression: {error}"
    return None


class ExpectationCache:
    """`check` with a file of what compiled before, so that a restarted daemon need not load the grammar.

    Keyed by digest of the text and the library's version. A wrong line there permits nothing: what does not
    compile cannot be decided either, and is not a finding. An unusable file only costs time.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def check(self, text: str) -> str | None:
        """Why this expectation does not compile, or None."""
        digest = sha256(f"{_version()}\0{text}".encode()).hexdigest()
        with suppress(OSError):
            if digest in self._path.read_text("ascii", "replace").splitlines():
                return None
        if (why := check(text)) is None:
            self._keep(f"{digest}\n".encode())
        return why

    def _keep(self, line: bytes) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        with suppress(OSError), open(os.open(self._path, flags, 0o600), "ab", 0) as file:
            if file.tell() > LARGEST:
                file.truncate(0)
            file.write(line)


@cache
def _version() -> str:
    return version("cel-python")


def holds(text: str, values: Values) -> bool:
    """Whether the expectation holds; ExpectationError when undecidable, which is never a finding."""
    from celpy.celtypes import BoolType

    answer = _evaluate(text, values)
    if not isinstance(answer, BoolType):
        raise ExpectationError("is neither true nor false")
    return bool(answer)


def number(text: str, values: Values) -> float:
    """A figure worth keeping, such as `result.p95_ms`; ExpectationError when it is not a number."""
    from celpy.celtypes import DoubleType, IntType

    answer = _evaluate(text, values)
    if not isinstance(answer, DoubleType | IntType):
        raise ExpectationError("is not a number")
    return float(answer)


def _evaluate(text: str, values: Values) -> Any:
    from celpy.adapter import json_to_cel
    from celpy.evaluation import CELEvalError

    try:
        return _program(text).evaluate(json_to_cel(values.named()))
    except (CELEvalError, ValueError, OverflowError, RecursionError) as error:
        # not only its own errors: an integer of 65 bits in a result is a plain ValueError
        raise ExpectationError(f"cannot be decided: {error.args[0] if error.args else error}") from None
