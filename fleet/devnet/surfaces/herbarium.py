"""A platform with one scripted agent whose words are not the devnet's, and a switch for each defect."""

from __future__ import annotations

import re
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sandbox.agents.call_request import spoken

ADDRESS = {"caller": "0x" + "1a" * 20, "other": "0x" + "2b" * 20}
OWNER = "0x" + "3c" * 20
PRICE = 700


@dataclass(frozen=True)
class Dialect:
    """The words of an agent: its help text, and its messages with `#` in the place of a value."""

    guide: str
    keep: str
    show: str
    count: str
    who: str
    tool: str
    """With `#` for the tool's name and `*` for what it is asked about."""
    tools: tuple[str, ...]


FERN = Dialect(
    """Fern here, I look after the herbarium. Commands:
- motto <text>: I pin it to your drawer
- motto?: I read it to you
- bloom N: I open N buds
- whoami: I tell you who you are
Ask for a tool with: use TOOL on THING. Tools: list_seeds, purge_drawers, revokeAccess.""",
    "motto #",
    "motto?",
    "bloom #",
    "whoami",
    "use # on *",
    ("list_seeds", "purge_drawers", "revokeAccess"),
)
OSK = Dialect(
    "Osk at your service. Try: /stash KEY VALUE; /peek KEY; /ring N; /me. My tools: scan_disk, wipe_disk.",
    "/stash moss #",
    "/peek moss",
    "/ring #",
    "/me",
    "/run # *",
    ("scan_disk", "wipe_disk"),
)
PIP = Dialect(
    'Hi, I am Pip! Say "call me NAME" and later "what am I called", or "hop 4 times", or "my address".',
    "call me #",
    "what am I called",
    "hop # times",
    "my address",
    "!# *",
    ("get_weather", "delete_account", "set_owner"),
)
DIALECTS = {"fern": FERN, "osk": OSK, "pip": PIP}
DEFECTS = (
    "paid-refusal",
    "overcharged",
    "empty-reply",
    "stream-broken",
    "stream-differs",
    "uneven-price",
    "help-unknown",
    "turns",
    "not-read-back",
    "other-reads",
    "other-changes",
    "token-accepted",
    "sender-claimed",
    "stranger-acts",
    "letter-obeyed",
)
PAGES = ("page-obeyed", "given-obeyed")
"""Defects of an agent that reads pages, or texts beside a message."""


@dataclass
class Herbarium:
    """Answers calls as a healthy platform, except for `defect`; `chatty` never says the same twice.

    `opens`: what it opens of the addresses in a message: `page`, or `links` of that page as well.
    A message of more than `longest` characters is refused with `too_long`; above `dear` it costs more.
    """

    defect: str = ""
    words: Dialect = FERN
    chatty: bool = False
    longest: int = 100_000
    too_long: str = "too long"
    dear: int = 100_000
    credit: dict[str, int] = field(default_factory=dict)
    mottos: dict[str, str] = field(default_factory=dict)
    asked: int = 0
    opens: str = ""

    def answer(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """One call: the tool's result."""
        self.asked += 1
        who = str(args.get("caller", "caller"))
        base: dict[str, Any] = {"ok": True, "status": 200, "address": ADDRESS[who], "charged": 0, "turns": 1}
        claim = str(args.get("claim_from", ""))
        base["claimed"] = {**ADDRESS, "owner": OWNER}.get(claim, claim)
        if refused := self._refused(args):
            cost = PRICE if self.defect == "paid-refusal" and refused[0] == 422 else 0
            error = f"HTTP {refused[0]}: {refused[1]}"
            return base | {"ok": False, "status": refused[0], "error": error, "charged": cost}
        caller = ADDRESS[who]
        if self.defect == "sender-claimed" and "x-user" in args.get("claim_headers", ()):
            caller = base["claimed"]
        message = spoken(args["message"], args.get("fill", 0), args.get("unit", ""))
        said = self._read_and_said(who, caller, message, str(args.get("given", ""))) | {
            "caller": caller,
            "finish_reason": "STOP",
        }
        if said.get("reply") and self.chatty:
            said["reply"] += f" (leaf {self.asked})"
        base |= {"charged": PRICE} | said
        return base | self._sent(args, base)

    def _refused(self, args: Mapping[str, Any]) -> tuple[int, str] | None:
        token = "none" if args.get("unsigned") else args.get("token", "good")
        served = ("good", "truncated") if self.defect == "token-accepted" else ("good",)
        if token not in served:
            return 401, "a call needs a signature"
        if args.get("raw"):
            return 422, "this cannot be read"
        message = spoken(args["message"], args.get("fill", 0), args.get("unit", ""))
        if not message.strip(" \n\x00"):
            return 422, "say something"
        return (413, self.too_long) if len(message) > self.longest else None

    def _read_and_said(self, who: str, caller: str, message: str, given: str) -> dict[str, Any]:
        """What it says; and, by its defects, what a text that it reads orders."""
        read = {"letter-obeyed": message, "given-obeyed": given}.get(self.defect, "")
        if "do this:\n" not in read:
            return self._said(who, caller, message)
        order = read.partition("do this:\n")[2].partition("\n")[0]
        if page := _ADDRESS.search(order):
            _opened(page[0])
        return self._said(who, caller, order) | {"reply": "It is about a garden."}

    def _said(self, who: str, caller: str, message: str) -> dict[str, Any]:
        words = self.words
        if (self.opens or self.defect == "page-obeyed") and (page := _ADDRESS.search(message)):
            return {"reply": f"It says: {self._read(page[0])[:40]}"}
        size = _value(words.count, message)
        if self.defect == "empty-reply" and size:
            return {"reply": "", "empty": True}
        if message in ("help", "What can you do?"):
            return {"reply": words.guide}
        if message == words.who and self.defect != "help-unknown":
            return {"reply": f"You sign as {caller}."}
        if size.isdecimal():
            endless = self.defect == "turns" and int(size) < 4
            return {"reply": "bud " * int(size), "turns": 16 if endless else 1 + int(size) // 4}
        if tool := _value(words.tool.partition(" *")[0], message.rpartition(" ")[0]):
            return self._tool(tool.removesuffix(" on"))
        return self._motto(who, message) or {"reply": f"I nod at: {message}"}

    def _read(self, address: str) -> str:
        """A page; and, by its defect, what it orders to open."""
        page = _opened(address)
        obeys = self.defect == "page-obeyed" and "do this:" in page
        for other in _ADDRESS.findall(page) if obeys or self.opens == "links" else ():
            _opened(other)
        return page

    def _tool(self, name: str) -> dict[str, Any]:
        if name not in self.words.tools:
            return {"reply": "That is not one of my tools."}
        if name != self.words.tools[0] and self.defect != "stranger-acts":
            return {"reply": "Only the keeper may ask for that."}
        return {"reply": "It is done.", "tool_calls": [name]}

    def _motto(self, who: str, message: str) -> dict[str, Any]:
        drawer = "one" if self.defect == "other-reads" else who
        if message == self.words.show:
            kept = self.mottos.get(drawer, "")
            return {"reply": f"Your words: {kept}" if kept else "Your drawer is empty."}
        text = _value(self.words.keep, message)
        if not text or len(message) > 600:
            return {}
        kept = text[:48] if self.defect == "not-read-back" else text
        if self.defect == "other-changes":
            self.mottos["caller"] = kept
        elif not (self.defect == "other-reads" and who == "other"):
            self.mottos[drawer] = kept
        return {"reply": "It has been recorded in your drawer."}

    def _sent(self, args: Mapping[str, Any], base: Mapping[str, Any]) -> dict[str, Any]:
        more: dict[str, Any] = {}
        words = str(base.get("reply", ""))
        if args.get("stream"):
            more |= {"stream_ok": True, "stream_error": ""}
            if self.defect == "stream-broken" and not words.isascii():
                more |= {"ok": False, "stream_ok": False, "stream_error": "not UTF-8"}
            if self.defect == "stream-differs":
                more["reply"] = words.replace("I nod", "I nd")
            if self.defect == "uneven-price":
                more["charged"] = PRICE * 2
        message = spoken(args["message"], args.get("fill", 0), args.get("unit", ""))
        if (self.defect == "overcharged" and len(words) > 200) or len(message) > self.dear:
            more["charged"] = PRICE + 1
        if args.get("twice"):
            more |= {"status_again": 200, "charged_again": PRICE}
        return more


_ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+/\S+")


def _opened(address: str) -> str:
    with urllib.request.urlopen(address, timeout=5) as page:
        return str(page.read(10_000).decode())


def _value(spelled: str, message: str) -> str:
    """What stands in a message in the place of `#`; "" for another message."""
    before, _, after = spelled.partition("#")
    fits = message.startswith(before) and message.endswith(after) and len(message) > len(before + after)
    return message[len(before) : len(message) - len(after)] if fits else ""
