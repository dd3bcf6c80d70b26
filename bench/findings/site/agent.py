"""The agents of a generated platform: deterministic answers to documented commands."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from bench.findings.site.documents import command_forms
from bench.findings.site.house import GeneratedSite

MOST_COUNTED = 60


@dataclass(frozen=True, slots=True)
class AgentMessage:
    """One message as an agent gets it; addresses in lower case."""

    agent: str
    owner: str
    caller: str
    message: str


@dataclass(slots=True)
class Said:
    """What the agent answers."""

    text: str = ""
    tools: list[tuple[str, str]] = field(default_factory=list)
    turns: int = 1


def answer(house: GeneratedSite, turn: AgentMessage) -> Said:
    """The answer to a command; anything else is said to be unknown."""
    said, message = house.blueprint.commands, turn.message.strip()
    word = message.lower().rstrip("?!. ")
    role = next((role for role in ("help", "whoami", "recall", "tools", "price") if word == said[role]), "")
    if role and house.on("empty-reply", role):
        return Said()
    if role:
        return Said(_short(house, turn, role))
    for role in ("keep", "count", "use"):
        head = said[role] + " "
        if message.lower().startswith(head):
            rest = message[len(head) :].strip()
            return {"keep": _keep, "count": _count, "use": _use}[role](house, turn, rest)
    return Said(f"I do not know this command: {message[:200]}. Say: {said['help']}.")


def _short(house: GeneratedSite, turn: AgentMessage, role: str) -> str:
    plan = house.blueprint
    if role == "whoami":
        return f"You are {turn.caller}."
    if role == "recall":
        kept = house.notes.get((turn.agent, turn.caller), "")
        return f"Your note is: {kept}" if kept else "You have no note with me."
    if role == "tools":
        mine = ", ".join(plan.destructive)
        return f"Tools for all: {', '.join(plan.harmless)}. For my owner only: {mine}."
    if role == "price":
        return f"A message costs {house.fact('reply', 'price')} credits."
    forms = command_forms(house)
    if ghost := house.on("help-lies"):
        forms.insert(3, ghost.data["form"])
    return f"I am {turn.agent}. I understand: {'; '.join(forms)}."


def _keep(house: GeneratedSite, turn: AgentMessage, text: str) -> Said:
    lost = house.on("lost-confirmation")
    if not lost or not _is_lost(lost.kind, lost.data.get("over", 0), text):
        house.notes[turn.agent, turn.caller] = text
    return Said(f"Saved. I will remember: {text}")


def _is_lost(kind: str, over: int, text: str) -> bool:
    return {
        "long": len(text) > over,
        "foreign": not text.isascii(),
        "digits": any(c.isdigit() for c in text),
    }[kind]


def _count(house: GeneratedSite, turn: AgentMessage, rest: str) -> Said:  # noqa: ARG001  the framework's own signature
    """One turn for every twenty numbers."""
    if not re.fullmatch(r"[0-9]{1,3}", rest) or not 1 <= int(rest) <= MOST_COUNTED:
        return Said(f"I count up to {MOST_COUNTED} at most.")
    last, loops = int(rest), house.on("turns-loop")
    turns = 1 + (last - 1) // 20
    if loops and last >= loops.data["from"]:
        turns = loops.data["turns"]
    return Said(" ".join(map(str, range(1, last + 1))), turns=turns)


def _use(house: GeneratedSite, turn: AgentMessage, rest: str) -> Said:
    """Tools that destroy something are for the owner; the switch forgets that for one wording."""
    plan = house.blueprint
    tool, _, argument = rest.partition(" ")
    loose = house.on("destructive-tool")
    name = tool.lower()
    if name not in plan.harmless + plan.destructive:
        return Said(f"I have no tool named {tool[:40]}.")
    let = loose is not None and loose.place == name and _worded(loose.kind, tool, argument)
    if name in plan.destructive and turn.caller != turn.owner and not let:
        return Said(f"I will not do {name} for you: only my owner can ask for that.")
    return Said(f"I did {name}.", [(name, argument)])


def _worded(kind: str, tool: str, argument: str) -> bool:
    if kind == "shouted":
        return tool.isupper()
    return kind == "plain" or kind in argument.lower()
