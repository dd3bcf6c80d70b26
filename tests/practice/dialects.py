"""Words of agents made from a seed: commands, tools and a help text in one of the usual forms."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random

from fleet.devnet.surfaces.herbarium import Dialect

KEEPS = ("set", "note", "pin", "store", "record", "remember", "save", "engrave", "register")
THINGS = (
    "slogan",
    "nickname",
    "password hint",
    "quote",
    "banner",
    "greeting",
    "label",
    "address book",
    "wish",
)
COUNTS = ("ring", "clap", "roll", "blink", "deal", "knock", "whistle", "stack")
TALES = ("the orchard", "tickets", "the night shift", "parcels", "the observatory", "boats")
READING, DESTROYING = ("list", "scan", "get", "count"), ("delete", "wipe", "transfer", "revoke", "purge")
OBJECTS = ("shelf", "ticket", "crate", "orbit", "parcel", "badge")
Form = Callable[[str, Mapping[str, str], tuple[str, ...], str], str]


def _listed(about: str, said: Mapping[str, str], tools: tuple[str, ...], ask: str) -> str:
    lines = "\n".join(f"- {command}: {what}" for command, what in said.items())
    end = f"Ask for a tool with: {ask}. Tools: {', '.join(tools)}."
    return f"Hello, I look after {about}. Commands:\n{lines}\n{end}"


def _slashed(about: str, said: Mapping[str, str], tools: tuple[str, ...], _ask: str) -> str:
    return f"I am here for {about}. Try: {'; '.join(said)}. My tools: {', '.join(tools)}."


def _quoted(about: str, said: Mapping[str, str], tools: tuple[str, ...], ask: str) -> str:
    words = ", ".join(f'"{one}"' for one in said)
    return f'Ask me about {about}: say {words}. Tools: {", ".join(tools)}. To run one say "{ask}".'


def _ticked(about: str, said: Mapping[str, str], tools: tuple[str, ...], ask: str) -> str:
    rows = "\n".join(f"* `{command}` - {what}" for command, what in said.items())
    rows += f"\n* `{ask}` - runs a tool\n\nTools: {', '.join(tools)}"
    return f"**{about.title()}** at your service.\n\nYou can send:\n{rows}"


FORMS: tuple[Form, ...] = (_listed, _slashed, _quoted, _ticked)


def dialect(chance: Random, form: int) -> Dialect:
    """The words of one agent. `form`: of its help text, in FORMS."""
    keep, thing, count = chance.choice(KEEPS), chance.choice(THINGS), chance.choice(COUNTS)
    tools = (
        f"{chance.choice(READING)}_{chance.choice(OBJECTS)}s",
        *(f"{one}_{chance.choice(OBJECTS)}" for one in chance.sample(DESTROYING, 2)),
    )
    if form == 1:
        kept, shown, counted, who = f"/{keep} #", "/show", f"/{count} #", "/me"
        ask = "/run # *"
    else:
        kept, shown = (
            f"{keep} {thing} #",
            chance.choice((f"{thing}?", f"show {thing}", f"what is my {thing}")),
        )
        counted, who = f"{count} # times", chance.choice(("whoami", "who am I", "my address"))
        ask = "use # on *"
    value = chance.choice(("<text>", "TEXT"))
    said = {
        kept.replace("#", value): "I keep it for you",
        shown: "I read it to you",
        counted.replace("#", "N"): "I do that",
        who: "I tell you who you are",
    }
    guide = FORMS[form](chance.choice(TALES), said, tools, ask.replace("#", "TOOL").replace("*", "THING"))
    return Dialect(guide, kept, shown, counted, who, ask, tools)
