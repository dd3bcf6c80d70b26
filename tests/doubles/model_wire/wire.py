"""The table of protocols."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tests.doubles.model_wire import anthropic, google, openai, openai_request
from tests.doubles.model_wire.say import Say

Body = Mapping[str, Any]


def _takes_anything(body: Body) -> None:
    """No schema of ours is held against it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelProtocol:
    """One protocol: where it is asked, and how requests are read and answers written."""

    path: str
    base: str
    """Path of the base URL that a client is configured with."""
    key: str
    """The header, in lower case, that carries the key."""
    frames: Callable[[Body, int, Say], Iterator[bytes]]
    tools: Callable[[Body], set[str]]
    answers: Callable[[Body], dict[str, str]]
    system: Callable[[Body], str]
    refusal: Callable[[int], dict[str, Any]]
    invalid: Callable[[Body], dict[str, Any] | None] = _takes_anything
    """The answer, with HTTP 500, to a request that does not fit the schema; None for one that does."""


WIRES = {
    "openai": ModelProtocol(
        path=openai.PATH,
        base=openai.BASE,
        key=openai.KEY,
        frames=openai.frames,
        tools=openai.tools,
        answers=openai.answers,
        system=openai.system,
        refusal=openai.refusal,
        invalid=openai_request.invalid,
    ),
    "anthropic": ModelProtocol(
        path=anthropic.PATH,
        base=anthropic.BASE,
        key=anthropic.KEY,
        frames=anthropic.frames,
        tools=anthropic.tools,
        answers=anthropic.answers,
        system=anthropic.system,
        refusal=anthropic.refusal,
    ),
    "google": ModelProtocol(
        path=google.PATH,
        base=google.BASE,
        key=google.KEY,
        frames=google.frames,
        tools=google.tools,
        answers=google.answers,
        system=google.system,
        refusal=google.refusal,
    ),
}
"""By the kinds that a `[model]` table names."""
