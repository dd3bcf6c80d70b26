"""The port of a wire: how agents are called, and how their answers are read. One file beside this for each.

An adapter writes requests and reads documents; what is asked, and what a result says, is qa_call's own and
the same for all. What a wire has no place for is in its `LACKS`, with the reason: it is not asked there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from sandbox.http import HttpReply, HttpRequest
from sandbox.spec import Context, Mistake

MAX_TOOLS = 32
INVENTED = "qa-invented-token-0000000000"
ACCOUNTS: Mapping[str, str] = {"caller": "one", "other": "other"}
"""The account of the profile that each caller of a run is, where an agent knows its callers by a secret."""
CHARGES, TOOLS, TURNS, OWNER, SIGNATURES, TASKS, LISTS, OTHER, CONVERSATIONS, GIVEN = (
    *("charges", "tools", "turns", "owners", "signed tokens", "tasks", "lists of tasks"),
    *("a second caller", "memory without a conversation", "texts beside a message"),
)
"""What a wire may lack."""
_HALF = re.compile("[\ud800-\udfff]")
Json = dict[str, Any]


@dataclass(slots=True)
class ReplyParts:
    """The parts of an answer that were there; everything else keeps its empty value."""

    text: str = ""
    tools: list[str] = field(default_factory=list)
    """Tools that ran."""
    finish: str = ""
    caller: str = ""
    turns: int = 0
    shaped: bool = False
    """Whether it is an answer of an agent."""
    more: bool = False
    """Whether it holds something that is no text."""
    refused: str = ""
    """The error that stands in place of an answer."""
    code: int = 0
    """Its number in JSON-RPC."""
    task: str = ""
    """The task that the agent made of the message."""
    state: str = ""
    """State of that task."""

    @property
    def halves(self) -> bool:
        """Whether half of a character stands alone."""
        return _HALF.search(self.text) is not None


@dataclass(frozen=True, slots=True)
class Spoken:
    """One request in no wire's words; the fields are those of qa_call."""

    target: str
    message: str
    caller: str
    token: str = "good"
    stream: bool = False
    claimed: str = ""
    claim_fields: tuple[str, ...] = ()
    claim_headers: tuple[str, ...] = ()
    raw: str = ""
    running: bool = False
    version: str = ""
    push_to: str = ""
    given: str = ""
    refers: str = ""
    """The task in which `given` was handed in, where the wire has tasks."""


class AgentWire(Protocol):
    """How one agent is called."""

    LACKS: ClassVar[Mapping[str, str]]
    """What the wire has no place for, and why."""
    TOKENS: ClassVar[tuple[str, ...]]
    """Tokens that can be sent, as call_request.TOKENS names them."""
    header: str
    """The header that carries the caller's token."""

    def request(self, spoken: Spoken) -> HttpRequest:
        """The request as it is sent; Mistake for what cannot be."""

    def check(self, reply: HttpReply) -> None:
        """Failure where a refusal is our own fault."""

    def read(self, documents: Sequence[object]) -> ReplyParts:
        """Fold one document, or a stream's events in order. Unknown shapes add nothing and never raise."""

    def follow(self, said: ReplyParts, spoken: Spoken) -> HttpRequest | None:
        """The request that asks for the rest of an answer that is not complete; None for any other."""

    def identity(self, caller: str) -> str:
        """Who a caller is to the platform; "" for nobody."""

    def sender(self, claim: str, target: str) -> str:
        """A false sender in the platform's words."""

    def credit(self, caller: str) -> int:
        """[wei] What the platform says that a caller has; 0 where it keeps no account."""

    def fund(self, caller: str) -> bool:
        """Claim what a caller may claim for nothing; whether there was anything to claim."""

    def hide(self, text: str) -> str:
        """A text without our own secrets, should the platform echo them."""


class KeyedWire:
    """What wires share on which a secret shows who asks: the adapter adds `request` and `read`."""

    TOKENS: ClassVar[tuple[str, ...]] = ("good", "none", "garbage", "truncated")

    def __init__(self, agent: Mapping[str, str], ctx: Context) -> None:
        self._agent, self._accounts = agent, ctx.accounts
        way = agent.get("carried", "").split()
        _, self.header, self._word = (*way, "", "")[:3] if way else ("", "authorization", "Bearer")

    def headers(self, spoken: Spoken) -> dict[str, str]:
        """What every request carries: the token of its caller, and the false sender."""
        secret = self._secret(spoken.caller)
        if spoken.caller != "caller" and not secret:
            raise Mistake("/args/caller: this agent knows callers by accounts, and the profile names none")
        token = {"none": "", "garbage": INVENTED, "truncated": secret[: len(secret) // 2]}.get(
            spoken.token, secret
        )
        if spoken.token not in self.TOKENS:
            raise Mistake(f"/args/token: this wire has {', '.join(self.TOKENS)}")
        sent = {"content-type": "application/json"}
        sent |= {self.header.lower(): f"{self._word} {token}".strip()} if token else {}
        return sent | (dict.fromkeys(spoken.claim_headers, spoken.claimed) if spoken.claimed else {})

    def check(self, reply: HttpReply) -> None:
        """A secret has no age that could be off."""

    def follow(self, said: ReplyParts, spoken: Spoken) -> HttpRequest | None:  # noqa: ARG002  the port has them
        return None

    def identity(self, caller: str) -> str:
        return self._accounts.get(ACCOUNTS[caller], {}).get("user", "")

    def sender(self, claim: str, target: str) -> str:  # noqa: ARG002  the port has it
        if claim == "owner":
            raise Mistake("/args/claim_from: this agent has no owner that is known")
        return self.identity(claim) or claim if claim in ACCOUNTS else claim

    def credit(self, caller: str) -> int:  # noqa: ARG002  the port has it
        return 0

    def fund(self, caller: str) -> bool:  # noqa: ARG002  the port has it
        return False

    def hide(self, text: str) -> str:
        for label in ACCOUNTS.values():
            secret = self._accounts.get(label, {}).get("secret", "")
            text = text.replace(secret, "[token]") if secret else text
        return text

    def _secret(self, caller: str) -> str:
        return self._accounts.get(ACCOUNTS[caller], {}).get("secret", "")


def objects(value: object) -> list[Json]:
    """The objects of a list; none of anything else."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def word(value: object) -> str:
    """A text; "" for anything else."""
    return value if isinstance(value, str) else ""
