"""The machine rule of a switch: whether a posted item shows the effect, and whether its title says so. Pure.

A rule sees what anyone sees who reads the item: its title, and the calls and answers of its evidence. It does
not know which probe, oracle or explorer made it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html import escape
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit


@dataclass(frozen=True, slots=True)
class EvidenceCall:
    """One call of the evidence."""

    tool: str
    args: Mapping[str, Any]
    result: Mapping[str, Any]

    @property
    def path(self) -> str:
        """Path of the page that it asked for, percent-decoded once."""
        try:
            return unquote(urlsplit(str(self.args.get("url", ""))).path) or "/"
        except ValueError:
            return ""

    @property
    def values(self) -> tuple[str, ...]:
        """The values of its query, decoded."""
        try:
            query = parse_qsl(urlsplit(str(self.args.get("url", ""))).query, keep_blank_values=True)
        except ValueError:
            return ()
        return tuple(value for _, value in query)

    @property
    def sent(self) -> str:
        """All that it sent, as text: decoded parameters, then the arguments."""
        given = json.dumps(self.args, ensure_ascii=False, default=str)
        return "\n".join([*self.values, unquote(given.replace("+", " ")), given])

    @property
    def status(self) -> int:
        return int(number(self.result.get("status")))

    @property
    def text(self) -> str:
        """The body, or the reply."""
        return (
            f"{self.result.get('text', '')}\n{self.result.get('reply', '')}\n{self.result.get('error', '')}"
        )

    @property
    def says(self) -> str:
        """The message of an agent call, in lower case."""
        return str(self.args.get("message", "")).strip().lower()

    @property
    def is_call(self) -> bool:
        return "reply" in self.result


@dataclass(frozen=True, slots=True, kw_only=True)
class Posted:
    """An item as it was posted, or as a peer reported it."""

    title: str
    calls: tuple[EvidenceCall, ...]
    surface: str = ""
    at: str = ""
    """When it was seen, ISO."""


Shows = Callable[[Posted], bool]


@dataclass(frozen=True, slots=True)
class EffectRule:
    """`shows` judges the evidence, `title` is the pattern of a true title."""

    shows: Shows
    title: str

    def titled(self, item: Posted) -> bool:
        """Whether the title says what the evidence shows."""
        return re.search(self.title, item.title, re.IGNORECASE) is not None


def number(value: Any) -> float:  # noqa: ANN401  any JSON
    """A number, or a decimal string; 0 for anything else."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return 0.0


def like(template: str) -> Callable[[str], bool]:
    """Whether a path is one of a template with `{word}` segments; a trailing slash does not count."""
    parts = re.split(r"\{[a-z]+\}", template.rstrip("/"))
    pattern = re.compile("[^/]+".join(re.escape(one) for one in parts) + "/?")
    return lambda path: pattern.fullmatch(path) is not None


def at(template: str, holds: Callable[[EvidenceCall], bool]) -> Shows:
    """Some call to a page of this template for which `holds`."""
    there = like(template)
    return lambda item: any(there(one.path) and "url" in one.args and holds(one) for one in item.calls)


def answered(template: str, *statuses: int) -> Shows:
    """A page of this template answered with one of these statuses."""
    return at(template, lambda one: one.status in statuses)


def said(holds: Callable[[EvidenceCall], bool]) -> Shows:
    """Some call of an agent for which `holds`."""
    return lambda item: any(one.is_call and holds(one) for one in item.calls)


def contains(template: str, pattern: str) -> Shows:
    """A page of this template has this text."""
    return at(template, lambda one: re.search(pattern, one.text, re.IGNORECASE) is not None)


def ran(call: EvidenceCall, context: str) -> bool:
    """Whether a canary ran, by any field that says so, and stands unescaped in this context of the page.

    A page that a browser ran has no text: then the field alone counts.
    """
    if not any("canary" in key and bool(value) for key, value in call.result.items()):
        return False
    text = str(call.result.get("text", ""))
    raw = {
        "element": [one for one in call.values if "<" in one],
        "attribute": [f'data-asked="{escape(one, quote=False)}' for one in call.values if '"' in one],
        "script": [f'asked = "{one}'.replace("<", "\\u003c") for one in call.values if '"' in one],
    }[context]
    return not text or any(one in text for one in raw)


def speaks_of(*words: str) -> Shows:
    """A call of the chain that names one of these functions or selectors, in arguments or answer."""

    def shows(item: Posted) -> bool:
        for one in item.calls:
            if "url" in one.args and one.tool in ("qa_fetch", "qa_browse"):
                continue
            text = json.dumps([one.args, one.result], default=str).lower()
            if any(word.lower() in text for word in words):
                return True
        return False

    return shows
