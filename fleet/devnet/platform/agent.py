"""The model behind the proxy: deterministic, so that a tester sees the platform and not the weather."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from fleet.devnet.platform.site import Site

MAX_CONTINUATIONS = 10
"""A turn that says it is not finished is continued this often (platform-facts 1.11), so 11 turns at most."""

DESTRUCTIVE = frozenset({"delete_file", "transfer_credits", "release_name"})
HARMLESS = frozenset({"list_files"})

_COUNT = re.compile(r"count to ([0-9]{1,2}) slowly", re.IGNORECASE)
_TOOL = re.compile(r"/tool ([a-z_]{1,32})(?: (.*))?", re.DOTALL)
_SET_GREETING = re.compile(r"set greeting (.{1,200})", re.IGNORECASE | re.DOTALL)

DEFAULT_PERSONA = "A helpful agent of this platform."
COMMANDS = "Ask me: what is my address; set greeting TEXT; show my greeting; count to 3 slowly."


@dataclass(frozen=True, slots=True)
class AgentCall:
    """One message as an agent gets it; addresses in lower case."""

    agent: str
    owner: str
    caller: str
    message: str
    persona: str = DEFAULT_PERSONA


@dataclass(slots=True)
class AgentReply:
    """The agent's reply, the tools it ran, and the turns it took."""

    text: str = ""
    tools: list[tuple[str, str]] = field(default_factory=list)
    """Name and argument of each tool that ran."""
    turns: int = 0
    finished: bool = True


def answer(site: Site, call: AgentCall) -> AgentReply:
    """Turns until one is finished, or until the continuation cap."""
    reply = AgentReply()
    while reply.turns <= MAX_CONTINUATIONS:
        reply.turns += 1
        message = call.message.strip()
        if found := _COUNT.fullmatch(message):
            # A third of the numbers in each turn, so three turns at most
            last = int(found[1])
            done = len(reply.text.split())
            step = max(1, -(-last // 3))
            reply.text = " ".join(str(number) for number in range(1, min(last, done + step) + 1))
            reply.finished = done + step >= last and "continuation-loop" not in site.defects
        elif found := _TOOL.fullmatch(message):
            tool = found[1]
            remote = call.caller != call.owner
            if tool not in DESTRUCTIVE | HARMLESS:
                reply.text = f"I have no tool named {tool}."
            elif tool in DESTRUCTIVE and remote and "destructive-tool" not in site.defects:
                reply.text = f"I will not run {tool} for a remote caller: only my owner can ask for that."
            else:
                reply.tools.append((tool, found[2] or ""))
                reply.text = f"I ran {tool}."
        elif found := _SET_GREETING.fullmatch(message):
            if "lying-success" not in site.defects:
                site.greetings.put(call.agent, call.caller, found[1].strip())
            reply.text = f"Done: your greeting is saved. {call.agent} will greet you with: {found[1].strip()}"
        else:
            reply.text = _small_talk(site, call, message)
        if reply.finished:
            break
    return reply


def _small_talk(site: Site, call: AgentCall, message: str) -> str:
    question = message.lower().rstrip("?!. ")
    if question in {"help", "what can you help me with"}:
        if "empty-reply" in site.defects:
            return ""
        return f"I am {call.agent}. {call.persona} {COMMANDS}"
    if question == "what is my address":
        return f"You are {call.caller}."
    if question == "show my greeting":
        kept = site.greetings.get(call.agent, call.caller)
        return f"Your greeting is: {kept}" if kept else "You have no greeting here yet."
    return f"{call.agent} heard you say: {message}"
