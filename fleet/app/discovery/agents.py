"""Agents of a site by documents at fixed places: the card of A2A, the list of models of an API like OpenAI's.

Pure. A card is written by strangers: what it names on another host is a note, and nothing is asked there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from fleet.app.discovery.visitor import VisitorAnswer
from fleet.text import line

CARDS = ("/.well-known/agent-card.json", "/.well-known/agent.json")
MODELS = "/v1/models"
MOST = 4
"""Interfaces of one card, and models of one list, that are taken."""
_PATH = re.compile(r"(?:/[A-Za-z0-9._~!$&'()*+,=:@-]*){1,20}")
_VERSIONS = {"1": "a2a-1.0", "0.3": "a2a-0.3"}


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundAgent:
    """An agent, in the words of `[agents]`; `url` is a whole one."""

    name: str
    wire: str
    url: str
    how: str
    model: str = ""


def agents_at(path: str, answer: VisitorAnswer, origin: str) -> tuple[list[FoundAgent], list[str]]:
    """The agents that a document at this path of a host tells of, and notes on what it names elsewhere."""
    said = answer.json
    if not isinstance(said, dict):
        return [], []
    if path == MODELS:
        return list(_models(said, origin)), []
    if path not in CARDS or not isinstance(said.get("name"), str):
        return [], []
    found, notes = dict[str, FoundAgent](), list[str]()
    for url, binding, version in _interfaces(said):
        spoken = (word for short, word in _VERSIONS.items() if f"{version}.".startswith(f"{short}."))
        wire, path_there = next(spoken, ""), _path(url, origin)
        way = f"{line(binding, 20)} {line(version, 20)} at {line(url, 200)}"
        what = f"the agent {line(said['name'], 60)!r}: {way}"
        if not (wire and binding == "JSONRPC"):
            notes.append(f"{what} is not spoken")
        elif not path_there:
            notes.append(f"{what} is not on this host: asked only if that one is named too")
        elif len(found) < MOST:
            how = f"its card {path} names A2A {line(version, 20)} over JSON-RPC"
            found.setdefault(
                wire, FoundAgent(name=_slug(said["name"]), wire=wire, url=origin + path_there, how=how)
            )
    newest = sorted(found.values(), key=lambda one: one.wire, reverse=True)
    return newest[:1], notes


def _interfaces(card: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """URL, binding and version of each way to an agent; those of a card of 0.3 too."""
    listed = card.get("supportedInterfaces")
    for one in listed[:MOST] if isinstance(listed, list) else ():
        if isinstance(one, dict) and isinstance(one.get("url"), str):
            yield one["url"], str(one.get("protocolBinding", "")), str(one.get("protocolVersion", ""))
    if isinstance(card.get("url"), str):
        yield (
            card["url"],
            str(card.get("preferredTransport", "JSONRPC")),
            str(card.get("protocolVersion", "")),
        )


def _path(url: str, origin: str) -> str:
    """The path of a URL of this host; "" for any other URL, and for one that a profile does not take."""
    try:
        parts = urlsplit(url)
        same = f"{parts.scheme.lower()}://{parts.netloc.lower()}" == origin
    except ValueError:
        return ""
    path = parts.path or "/"
    return path if same and not (parts.query or parts.fragment) and _PATH.fullmatch(path) else ""


def registrations(answer: VisitorAnswer) -> list[str]:
    """The agents that a document at REGISTRATION_PAGE names, as `agent 7 of eip155:1:0x…`."""
    said = answer.json.get("registrations") if isinstance(answer.json, dict) else None
    named = [one for one in said[:MOST] if isinstance(one, dict)] if isinstance(said, list) else []
    return [
        f"agent {line(str(one['agentId']), 20)} of {line(str(one['agentRegistry']), 80)}"
        for one in named
        if one.get("agentId") is not None and isinstance(one.get("agentRegistry"), str)
    ]


def mcp_services(answer: VisitorAnswer, origin: str) -> list[str]:
    """Where a registration says that MCP servers of this host are."""
    said = answer.json.get("services") if isinstance(answer.json, dict) else None
    named = [one for one in said[: 4 * MOST] if isinstance(one, dict)] if isinstance(said, list) else []
    found = (_path(str(one.get("endpoint", "")), origin) for one in named if one.get("name") == "MCP")
    return [f"{origin}{path}" for path in found if path][:MOST]


def _models(said: Mapping[str, Any], origin: str) -> Iterator[FoundAgent]:
    data = said.get("data")
    if said.get("object") != "list" or not isinstance(data, list):
        return
    for one in [each for each in data if isinstance(each, dict) and each.get("object") == "model"][:MOST]:
        if isinstance(ident := one.get("id"), str) and 0 < len(ident) <= 200 and ident.isprintable():
            how = f"{MODELS} lists the model {line(ident, 60)!r}"
            yield FoundAgent(name=_slug(ident), wire="chat", url=f"{origin}/v1", how=how, model=ident)


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower())[:40].strip("-") or "agent"
