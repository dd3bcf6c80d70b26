"""A repro as lines for a shell. Pure: nothing is run here, and every word is quoted.

A request for a page is one `curl`, a read of the chain one JSON-RPC call by `curl`. What needs a jail, a key,
a browser or a name of its own is one `fleet call` of all calls, because they share names and identities. No
line holds a secret: a header that may carry one, and the address of a node behind a key, are variables of the
person's own shell.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from shlex import quote
from typing import Any
from urllib.parse import urlsplit

from fleet.config import Platform
from fleet.drivers.template import mapped
from fleet.findings.repro import ReproCall, ReproError, parse_repro, write_repro
from fleet.personas.needs import strings
from sandbox.chain import abi
from sandbox.chain.contract import VIEWS
from sandbox.chain.spelling import arguments, watched_view
from sandbox.spec import Context, Mistake

WORD = 100_000
"""Characters of an argument of a command; Linux takes 131,072 bytes, and a longer one is piped."""
COLUMNS = 78
"""Of a line, where its words fit."""
LISTENER = 8899
"""Port of a listener that a script starts in place of the fleet's own."""
TIMES = 30
"""Requests of a loop at most: enough to see a difference of latency."""
_FACE = re.compile(r"\{face:([a-z0-9-]{1,63})\}")
_OF_A_RUN = re.compile(r"\{(?:name|run)\}|\{(?:face|target):")
"""Placeholders that only a run can fill."""
_PRIVATE = re.compile(r"(?i)authorization|cookie|token|key|secret|session")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}", re.ASCII)
_CURL = "curl -sS --globoff --path-as-is --max-time 30"
_TIMED = r"-o /dev/null -w '%{http_code} %{time_total} s %{url_effective}\n'"


@dataclass(frozen=True, slots=True)
class ShellPlace:
    """What the placeholders of a repro stand for; without a platform they stay as they are."""

    site: str = ""
    proxy: str = ""
    face: str = ""
    rpc: str = ""
    diamond: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)
    fleet: str = "fleet"
    """The command that starts this program, quoted for a shell."""
    state: str = ""
    """Its state directory."""
    agents: Mapping[str, str] = field(default_factory=dict)
    """Where agents are called that are not called through the proxy."""

    @classmethod
    def of(
        cls, platform: Platform, metadata: Mapping[str, str], fleet: str = "fleet", state: str = ""
    ) -> ShellPlace:
        """The public addresses of a profile; `metadata` are its keys in hex by role and by name."""
        web, chain = platform.web, platform.chain
        return cls(
            *(web.site, web.proxy, web.face, chain.rpc, chain.diamond),
            *(metadata, fleet, state, platform.agent_urls),
        )

    def url(self, spelled: str) -> str:
        """The URL that a repro's form stands for."""
        for word, base in (("{site}", self.site), ("{proxy}", self.proxy)):
            if base:
                spelled = spelled.replace(word, base.rstrip("/"))
        spelled = spelled.replace("{listener}", f"http://127.0.0.1:{LISTENER}")
        face = self.face or "{face:{name}}"
        return _FACE.sub(lambda found: face.replace("{name}", found[1]), spelled)


def shell(repro: str, place: ShellPlace) -> list[str]:
    """The lines, without those that make a file of them."""
    try:
        calls = parse_repro(repro) if repro else ()
    except ReproError as error:
        return [f"# not a repro: {error}"]
    lines: list[str] = []
    for call in calls:
        made = None
        if call.tool == "qa_fetch":
            made = _page(call.args, place)
        elif call.tool == "qa_chain":
            made = _chain(call.args, place)
        if made is None:
            return _by_fleet(calls, place)
        lines += made
    if "{listener}" in repro:
        start = f"python3 -m http.server {LISTENER} --bind 127.0.0.1 & listener=$!"
        return [f"{start}  # what asks it shows", "sleep 1", *lines, "kill $listener"]
    return lines


def script(repro: str, place: ShellPlace, notes: Sequence[str]) -> str:
    """A file for bash that shows the defect by itself; `notes` become its first comment. "" without calls."""
    if not (lines := shell(repro, place)):
        return ""
    head = ["#!/usr/bin/env bash", *(f"# {note}" for note in notes), "set -u"]
    return "\n".join([*head, *lines]) + "\n"


def _by_fleet(calls: Sequence[ReproCall], place: ShellPlace) -> list[str]:
    """One command that makes all calls in one run, in the state directory that knows the platform's keys."""
    text = write_repro(calls)
    lines = [f"export STATE_DIRECTORY={quote(place.state)}"] if place.state else []
    if len(text) <= WORD:
        return [*lines, f"{place.fleet} call {quote(text)}"]
    return [*lines, f"{place.fleet} call - <<'CALLS'", text, "CALLS"]


def _page(args: Mapping[str, Any], place: ShellPlace) -> list[str] | None:
    args = mapped(args, place.url)
    url, headers = str(args.get("url", "")), args.get("headers", {})
    if not _is_address(url) or not isinstance(headers, dict) or _OF_A_RUN.search(" ".join(strings(args))):
        return None
    method, fields = str(args.get("method", "GET")), args.get("fields")
    data = json.dumps(fields) if fields else str(args.get("body", ""))
    sent = dict(headers) | ({"Origin": args["origin"]} if args.get("origin") else {})
    if data:
        sent = {"content-type": "application/json" if fields else args.get("body_type", "text/plain")} | sent
    asked = (
        ["--head"] if method == "HEAD" else [f"--request {quote(method)}"] if method != "GET" or data else []
    )
    for name, value in sent.items():
        if (word := _header(name, str(value))) is None:
            return None
        asked.append(f"--header {word}")
    before: list[str] = []
    if data and len(data) <= WORD and "\0" not in data:
        asked.append(f"--data-raw {_word(data)}")
    elif data:
        octal = _bytes(data, "\\0{:03o}")
        before, asked = [f"printf '%b' '{octal}' |"], [*asked, "--data-binary @-"]
    others = [str(args[name]) for name in ("control", "alive") if args.get(name)]
    if not all(_is_address(one) for one in others):
        return None
    times = args.get("repeat")
    often = isinstance(times, int) and times > 1
    curl = [_CURL, _TIMED if often else "-i"]
    lines = [[*before, *curl, *asked, f"--url {quote(url)}"]]
    lines += [[*curl, f"--url {quote(one)}"] for one in others]
    if not often:
        return [_folded(words) for words in lines]
    loop = (_folded(words, "  ") for words in lines)
    return [f"for time in {{1..{min(int(times or 1), TIMES)}}}; do", *loop, "done"]


def _folded(words: Sequence[str], indent: str = "") -> str:
    """A command in lines that fit a terminal, where its words do."""
    lines, begin = [], indent
    for word in words:
        if begin.strip() and len(begin) + len(word) + 2 > COLUMNS:
            lines.append(f"{begin}\\")
            begin = f"{indent}  "
        begin += f"{word} "
    return "\n".join([*lines, begin.rstrip()])


def _is_address(url: str) -> bool:
    """Whether it is a whole URL that a terminal shows as it is pasted."""
    plain = url.isascii() and url.isprintable()
    return plain and url.startswith(("http://", "https://")) and "{" not in urlsplit(url).netloc


def _header(name: str, value: str) -> str | None:
    """A header as a word; None where its name or value cannot be sent by curl as it is."""
    if _HEADER.fullmatch(name) is None or not (value.isascii() and value.isprintable()):
        return None
    if not _PRIVATE.search(name):
        return quote(f"{name}: {value}" if value else f"{name};")
    variable = re.sub(r"[^A-Z0-9]", "_", name.upper())
    plain = re.fullmatch(r"[A-Za-z][A-Za-z0-9-]*", name)
    return f'"{name}: ${{{variable}:?the value of this header}}"' if plain else None


def _word(text: str) -> str:
    """Any text without a zero byte as one word of bash; what is not printable ASCII as bytes in hex."""
    if text.isascii() and text.isprintable():
        return quote(text)
    return "$'" + _bytes(text, "\\x{:02x}") + "'"


def _bytes(text: str, form: str) -> str:
    """The text in UTF-8, with each byte that a quoted word may not hold in a form of its number."""
    plain = range(0x20, 0x7F)
    return "".join(
        chr(one) if one in plain and chr(one) not in "\\'" else form.format(one)
        for one in text.encode("utf-8", "replace")
    )


def _chain(args: Mapping[str, Any], place: ShellPlace) -> list[str] | None:
    """A view, or several; a simulation needs state that a plain call cannot set."""
    if set(args) - {"function", "args", "watch"} or not place.diamond:
        return None
    context = Context(run="", prefix="", diamond=place.diamond, metadata=dict(place.metadata))
    try:
        if name := str(args.get("function", "")):
            view = VIEWS[name]
            encoded = [
                abi.encode_call(view, arguments(view.takes, tuple(args.get("args", ())), context, name))
            ]
        else:
            seen = [watched_view(str(one), context, n) for n, one in enumerate(args["watch"])]
            encoded = [one.data for one in seen if not one.coin]
    except (Mistake, abi.AbiError, KeyError, TypeError, ValueError):
        return None
    parts = urlsplit(place.rpc)  # one with a path, a query or a user may hold a key: it is a variable
    private = parts.path.strip("/") or parts.query or parts.fragment or "@" in parts.netloc
    node = '"${RPC_URL:?the address of a node}"' if private or not parts.netloc else quote(place.rpc)
    lines = []
    for one in encoded:
        params = [{"to": place.diamond, "data": one}, "latest"]
        asked = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "eth_call", "params": params})
        data = f"--data-raw {quote(asked)}"
        lines.append(_folded([_CURL, "--header 'content-type: application/json'", data, f"--url {node}"]))
    return lines or None
