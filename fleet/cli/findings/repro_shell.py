"""A repro as lines for a shell. Pure: nothing is run here, and every word is quoted.

A request for a page is one `curl`, a read of the chain one JSON-RPC call by `curl`. What needs a jail, a key
or a name of its own is a comment with the command that runs it. No line holds a secret: a header that may
carry one, and the address of a node behind a key, are variables of the person's own shell.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from shlex import quote
from typing import Any
from urllib.parse import urlsplit

from fleet.config import Platform
from fleet.findings.repro import ReproError, parse_repro, spell
from fleet.text import clean
from sandbox.chain import abi
from sandbox.chain.contract import VIEWS
from sandbox.chain.spelling import arguments, watched_view
from sandbox.spec import Context, Mistake

LONGEST = 4_000
"""Characters of one line; a longer call is shown as a comment."""
_FACE = re.compile(r"\{face:([a-z0-9-]{1,63})\}")
_PRIVATE = re.compile(r"(?i)authorization|cookie|token|key|secret|session")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}", re.ASCII)
_CURL = ("curl", "-sS", "--globoff", "--path-as-is", "--proto", "=http,https", "--max-time", "30")


@dataclass(frozen=True, slots=True)
class ShellPlace:
    """What the placeholders of a repro stand for; without a platform they stay as they are."""

    site: str = ""
    proxy: str = ""
    face: str = ""
    rpc: str = ""
    diamond: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, platform: Platform, metadata: Mapping[str, str]) -> ShellPlace:
        """The public addresses of a profile; `metadata` are its keys in hex by role and by name."""
        web, chain = platform.web, platform.chain
        return cls(web.site, web.proxy, web.face, chain.rpc, chain.diamond, metadata)


def shell(repro: str, place: ShellPlace, again: str) -> list[str]:
    """The lines; `again` is the command that runs what a shell alone cannot."""
    try:
        calls = parse_repro(repro) if repro else ()
    except ReproError as error:
        return [f"# not a repro: {error}"]
    lines: list[str] = []
    rest = False
    for call in calls:
        made = None  # a shell cannot make another call
        if call.tool == "qa_fetch":
            made = _page(call.args, place)
        elif call.tool == "qa_chain":
            made = _chain(call.args, place)
        if made is None or any(len(one) > LONGEST for one in made):
            lines.append(f"# {clean(spell((call,)), 300)}")
            rest = True
        else:
            lines += made
    return [*lines, again] if rest and again else lines


def _page(args: Mapping[str, Any], place: ShellPlace) -> list[str] | None:
    url = str(args.get("url", ""))
    for word, base in (("{site}", place.site), ("{proxy}", place.proxy)):
        if base:
            url = url.replace(word, base.rstrip("/"))
    if place.face:
        url = _FACE.sub(lambda found: place.face.replace("{name}", found[1]), url)
    headers = args.get("headers", {})
    if not url.startswith(("http://", "https://")) or "{" in urlsplit(url).netloc or not _is_printable(url):
        return None
    if not isinstance(headers, dict):
        return None
    words: list[str] = [*_CURL, "-i"]
    method = str(args.get("method", "GET"))
    words += ["-I"] if method == "HEAD" else ["-X", method] if method != "GET" else []
    sent = dict(headers) | ({"Origin": args["origin"]} if args.get("origin") else {})
    data = json.dumps(args["fields"]) if args.get("fields") else str(args.get("body", ""))
    if data:
        kind = "application/json" if args.get("fields") else str(args.get("body_type", "text/plain"))
        sent = {"content-type": kind} | sent
    line = " ".join(map(quote, words))
    for name, value in sent.items():
        if _HEADER.fullmatch(name) is None or not _is_printable(str(value)):
            return None
        shown = f'"{name}: $SECRET"' if _PRIVATE.search(name) else quote(f"{name}: {value}")
        if _PRIVATE.search(name) and not re.fullmatch(r"[A-Za-z0-9-]+", name):
            return None
        line += f" -H {shown}"
    if data and not _is_printable(data):
        return None
    line += f" --data-raw {quote(data)}" if data else ""
    line += f" --url {quote(url)}"
    times = int(args["repeat"]) if isinstance(args.get("repeat"), int) else 1
    return [line] if times <= 1 else [f"# {times} times:", line]


def _chain(args: Mapping[str, Any], place: ShellPlace) -> list[str] | None:
    """A view, or several; a simulation needs state that a plain call cannot set."""
    if set(args) - {"function", "args", "watch"} or not place.diamond:
        return None
    context = Context(run="", prefix="", diamond=place.diamond, metadata=dict(place.metadata))
    try:
        if name := str(args.get("function", "")):
            view = VIEWS[name]
            data = [abi.encode_call(view, arguments(view.takes, tuple(args.get("args", ())), context, name))]
        else:
            seen = [watched_view(str(one), context, n) for n, one in enumerate(args["watch"])]
            data = [one.data for one in seen if not one.coin]
    except (Mistake, abi.AbiError, KeyError, TypeError, ValueError):
        return None
    parts = urlsplit(place.rpc)  # one with a path, a query or a user may hold a key: it is a variable
    private = parts.path.strip("/") or parts.query or parts.fragment or "@" in parts.netloc
    node = '"$RPC_URL"' if private or not parts.netloc else quote(place.rpc)
    lines = []
    for one in data:
        params = [{"to": place.diamond, "data": one}, "latest"]
        asked = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "eth_call", "params": params})
        words = (*_CURL, "-H", "content-type: application/json", "--data-raw", asked)
        lines.append(f"{' '.join(map(quote, words))} --url {node}")
    return lines or None


def _is_printable(text: str) -> bool:
    """Printable ASCII: what a terminal shows is what it pastes."""
    return text.isascii() and text.isprintable()
