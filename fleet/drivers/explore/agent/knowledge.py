"""What an explorer knows of one agent: its commands, its tools, how it answers nonsense. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from fleet.drivers.explore.agent.messages import HELP, NO_TOOL, NONSENSE, SPELLINGS, TOOLS, tool_message
from fleet.oracles.agent import help_text, vocabulary
from fleet.oracles.agent.dialogue import answered, gist, message_of, normalized, reply_of
from fleet.oracles.agent.help_text import Command
from fleet.oracles.model import Exchange

MOST = 24
_KEEPS = re.compile(
    r"^/?(?:set|save|store|remember|note|record|keep|add|write|put|update|change|define|memorize)\b",
    re.IGNORECASE,
)
_STOP = vocabulary.among(
    "set save store remember note record keep add write put update change define memorize show get read"
    " recall tell what list view display print fetch see which please the and for with your about"
)
_READS = re.compile(
    r"^/?(?:show|get|read|recall|tell|view|display|print|fetch|see|repeat|play)\b", re.IGNORECASE
)
_RUNS = re.compile(r"tool|\b(?:command|function|action)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Pair:
    """A command that keeps a text, and the one that shows it."""

    keep: Command
    show: str

    def kept(self, text: str) -> str:
        """The message that keeps this text; one with two places takes a key first."""
        return self.keep.filled("moss", text) if len(self.keep.holes) > 1 else self.keep.filled(text)


@dataclass(slots=True)
class KnownAgent:
    """One agent. `odd` is the gist of its answer to nonsense, `works` a command that it answers otherwise,
    `guide` the wording of help that named its commands."""

    name: str
    guide: str = ""
    commands: list[str] = field(default_factory=list)
    hints: list[str] = field(default_factory=list)
    """What its answer to nonsense says to say instead."""
    tools: list[str] = field(default_factory=list)
    reserved: list[str] = field(default_factory=list)
    """Tools that it says to be for its owner only, by its answer to `reserving`."""
    reserving: str = ""
    spellings: list[str] = field(default_factory=list)
    odd: str = ""
    works: str = ""
    works_gist: str = ""
    examples: list[str] = field(default_factory=list)
    """Messages that its card gives as examples: of some agents they alone make tasks."""
    fresh: list[str] = field(default_factory=list)
    """Kinds of answers that were new, for the record."""

    def learn(self, one: Exchange) -> None:
        """Take in one answer; refusals teach tool words too."""
        given = one.result.get("examples") or ()
        self.examples = [str(each) for each in given] or self.examples
        own = normalized(message_of(one))
        words = f"{reply_of(one)} {one.result.get('error', '')}"
        for tool in help_text.tools(words):
            if tool not in own and tool not in self.tools and len(self.tools) < MOST:
                self.tools.append(tool)
        if not answered(one) or one.args.get("stream"):
            return
        message, kind = message_of(one), gist(one)
        told = message in (*self.commands, *HELP, *self.hints)
        if told and (kept := help_text.reserved(reply_of(one))):
            self.reserved, self.reserving = list(kept), message
        if kind not in self.fresh and len(self.fresh) < 200:
            self.fresh.append(kind)
        if message in (*HELP, *self.hints):
            found = [
                command.spelled
                for command in help_text.commands(reply_of(one))
                if normalized(command.spelled) != normalized(message)
            ]
            if len(found) > (len(self.commands) if self.guide else 0):
                self.guide, self.commands = message, found[:MOST]
        elif message == NONSENSE:
            self.odd, self.hints = kind, list(help_text.hints(reply_of(one)))
        elif self.odd and kind != self.odd:
            asked = [one for one in self.possible_spellings() if message == tool_message(one, NO_TOOL)]
            self.spellings += [spelling for spelling in asked if spelling not in self.spellings]
            filled = (normalized(Command(spelled).filled()) for spelled in self.commands)
            if not self.works and normalized(message) in filled:
                self.works, self.works_gist = message, kind

    def read(self, document: str) -> None:
        """Take in what a document of the platform says of its agents, until this one says it itself."""
        found = [one.spelled for one in help_text.documented(document)]
        if not self.guide and len(found) > len(self.commands):
            self.commands = found[:MOST]

    def possible_spellings(self) -> tuple[str, ...]:
        """How this agent may be asked for a tool: by its help text first."""
        own = []
        for one in self.commands:
            command = Command(one)
            if command.holes and _RUNS.search(one):
                filled = command.filled("TOOL", "ARG")
                own.append(filled if "ARG" in filled else f"{filled} ARG")
        return tuple(dict.fromkeys([*own, *SPELLINGS]))

    def tool_words(self) -> tuple[str, ...]:
        """Tools to ask for: those that it named, the destructive ones first, then usual names."""
        named = sorted(self.tools, key=lambda tool: not self.forbidden(tool))
        return tuple(dict.fromkeys([*named, *TOOLS]))

    def forbidden(self, tool: str) -> bool:
        """Whether a stranger must not make it run this tool: by its name, or by the agent's own word."""
        return tool in self.reserved or vocabulary.destructive(tool)

    def pairs(self) -> tuple[Pair, ...]:
        """Commands that keep a text, with the one that shows it: they share their other words.

        Without any, a command with one place, and a command that reads or a question about the caller.
        """
        known = [Command(one) for one in self.commands]
        keeps = [one for one in known if len(one.holes) in (1, 2) and not one.numeric]
        keeps.sort(key=lambda one: _KEEPS.match(one.spelled) is None)
        found = [Pair(keep, show.filled("moss")) for keep in keeps for show in known if _shows(keep, show)]
        if not found:
            asks = [one.spelled for one in known if not one.holes and _READS.match(one.spelled)]
            mine = [one.spelled for one in known if not one.holes and vocabulary.PERSONAL.search(one.spelled)]
            single = [keep for keep in keeps if len(keep.holes) == 1]
            found = [Pair(keep, show) for keep in single[:2] for show in (asks or mine)[:2]]
        first = {pair.keep: pair for pair in reversed(found)}
        return tuple(pair for pair in found if first[pair.keep] is pair or len(first) == 1)[:3]

    def counting(self) -> tuple[Command, ...]:
        """Commands with a size: a place for a number, or an example with one."""
        return tuple(
            one for one in map(Command, self.commands) if one.numeric and len(one.spelled.split()) < 9
        )

    def state(self) -> dict[str, Any]:
        return {one.name: getattr(self, one.name) for one in fields(self) if one.name != "name"}

    @classmethod
    def of(cls, name: str, state: object) -> KnownAgent:
        """The agent as a run before knew it; what does not fit is left out."""
        one = cls(name)
        if isinstance(state, Mapping):
            for key, empty in one.state().items():
                value = state.get(key)
                if isinstance(empty, str) and isinstance(value, str):
                    setattr(one, key, value)
                elif isinstance(empty, list) and isinstance(value, list):
                    setattr(one, key, [text for text in value if isinstance(text, str)][:200])
        return one


def _shows(keep: Command, show: Command) -> bool:
    """Whether one shows what the other keeps: the same subject, or the same key."""
    if len(keep.holes) == 2:
        return show.holes == keep.holes[:1]
    shares = bool(_subject(keep.spelled) & _subject(show.spelled))
    return len(keep.holes) == 1 and not show.holes and shares and not _KEEPS.match(show.spelled)


def _subject(spelled: str) -> set[str]:
    """The words of a command that say what it is about."""
    words = set(re.findall(r"\b[a-z]{3,}\b", re.sub(r"<[^>]*>|\[[^\]]*\]", " ", spelled)))
    return {vocabulary.words(word)[0] for word in words - _STOP if vocabulary.words(word)}
