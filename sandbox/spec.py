"""The definition of a tool: the contract shared by both sides of the fence.

Standard library only: this module is imported in every jail before a request arrives.
The trusted side builds strict validators from the `args` and `result` dataclasses; a jail's output
is a claim until it has passed them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from sandbox.programs.program import Program

PROTOCOL = 1
"""Version of the request and result lines."""

BROKER = "http://127.0.0.1:3128"
"""A jail's only way out: the listener that it passed to the broker (jail.md section 6)."""


SAFE = ("GET", "HEAD", "OPTIONS")
"""Methods of HTTP that change nothing by their definition (RFC 9110, 9.2.1)."""
UNSAFE = ("POST", "PUT", "PATCH", "DELETE")
OVERRIDES = frozenset(
    ("x-http-method-override", "x-http-method", "x-method-override", "x-original-url", "x-rewrite-url")
)
"""Headers by which a server may take another method or path than the request's: never sent."""


class Effect(StrEnum):
    """What a call may change; the dial maps each class to the lowest rung that permits it."""

    LOOK = "look"  # reads: observe
    COMPUTE = "compute"  # runs hostile input inside the jail only: observe
    ACT = "act"  # changes something this run minted, or spends: exercise
    REPORT = "report"  # one submitFeedback under the fleet's own identity: observe, trusted side


@dataclass(frozen=True, slots=True)
class Cost:
    """Upper bound of one call's usage, charged before the call; the signer charges writes again."""

    calls: int = 1
    writes: int = 0


@dataclass(frozen=True, slots=True)
class Context:
    """The public facts a guest needs: code in a jail can read all of it.

    Only `accounts` holds secrets, of test accounts, and is there for the tools that sign in with them.
    """

    run: str
    prefix: str  # "qa-<run>-": the only names this run may act on
    chain_id: int = 0
    diamond: str = ""
    token: str = ""  # ERC-20 that pays for registration; "" when it is free
    site: str = ""
    proxy: str = ""
    call_url: str = ""  # where a call is posted
    stream_url: str = ""  # where a call with an event-stream answer is posted
    token_header: str = ""
    route: str = ""  # last part of a call token's message
    metadata: dict[str, str] = field(default_factory=dict)  # key by role and by name, 0x hex
    face_app: str = "app"  # value of the metadata key `face` for a name that shows its app
    codes: dict[str, str] = field(default_factory=dict)  # the platform's words for no_entry and too_large
    keys: dict[str, str] = field(default_factory=dict)  # label -> address; "caller" and one per minted name
    program: Program = field(default_factory=Program)  # the platform's compiler and loader
    gas: dict[str, int] = field(default_factory=dict)  # publish_base, publish_per_byte, register, ...
    publish_cap: int = 16_384  # bytes (platform-facts 1.10)
    deadline_s: float = 30.0
    lacks: tuple[str, ...] = ()  # functions of contract.py that this diamond is known not to offer
    accounts: dict[str, dict[str, str]] = field(
        default_factory=dict
    )  # user and secret by label, for tools that sign in
    agents: dict[str, dict[str, str]] = field(
        default_factory=dict
    )  # agents that are not called through the proxy: wire, url, model, carried by name
    network: str = ""  # the chain, as x402 version 1 names it
    asset: str = ""  # the token that payments are made in
    registry: str = ""  # the ERC-8004 Identity registry of `agent`
    validation: str = ""  # its Validation registry; "" for none
    agent: int = 0
    kept: dict[str, Any] = field(default_factory=dict)
    """In the guest: what the calls of one batch leave to each other. It comes empty and never leaves."""


@dataclass(frozen=True, slots=True)
class OneOf:
    """Every value of a text of a result, in the field's annotation: `Annotated[str, OneOf(("", "x"))]`.

    An expectation about any other value is refused before a run.
    """

    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LowerCase:
    """The keys of a map of a result are in lower case: an expectation with another spelling is refused."""

    named: str
    """What the keys are, for a person."""


ABSENT: Mapping[str, bool] = MappingProxyType({"absent": True})
"""Metadata of a field of a result that is absent, not null, where it is None: that can be asked for."""


def as_record(result: Any) -> dict[str, Any]:  # noqa: ANN401  any result dataclass
    """A result as plain data, without its absent fields."""
    gone = {one.name for one in fields(result) if one.metadata.get("absent")}
    return {name: value for name, value in asdict(result).items() if not (name in gone and value is None)}


class Points(StrEnum):
    """What a tool's argument may point at; the gate refuses a call that points elsewhere."""

    AGENT = "agent"  # an agent that the profile lists, or a name of this run
    PAGE = "page"  # a URL of the platform
    MCP = "mcp"  # an MCP endpoint that the profile names
    PAID = "paid"  # a URL of what the profile says is paid for
    PAGE_OR_NONE = "page or none"  # a URL of the platform, or ""
    VIEW_OR_NONE = "view or none"  # a view of contract.py, or ""


URLS = frozenset((Points.PAGE, Points.PAGE_OR_NONE, Points.MCP, Points.PAID))
"""What is a URL of the platform."""


@dataclass(frozen=True, slots=True)
class Mode:
    """One function of a tool, selected by calls with the argument `given` (of this `value`, if it has one);
    without `given`, by every other call."""

    label: str
    given: str = ""
    value: str = ""
    needs: tuple[str, ...] = ()
    asks: str = ""

    def selected_by(self, args: Mapping[str, Any]) -> bool:
        """Whether a call with these arguments is one of this mode, the modes before it aside."""
        if not self.given:
            return True
        return args.get(self.given) == self.value if self.value else bool(args.get(self.given))


class Mistake(Exception):
    """The caller's mistake: returned to it as `error_class="bad_request"`, and ends nothing."""


@dataclass(frozen=True, slots=True)
class Impact:
    """What a call may do to a platform at worst: what is left of each, from 10 (nothing is lost) to 0."""

    confidentiality: int
    integrity: int
    availability: int
    why: str
    undone: str = "nothing to undo"
    """How what it did is undone."""


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """The full definition of one tool; no other table is keyed by a tool's name.

    `run(args, ctx)` is called inside the jail; None for tools of the trusted side.
    """

    name: str
    args: type
    result: type
    effect: Effect
    cost: Cost
    summary: str
    run: Callable[[Any, Context], Any] | None = None
    needs: tuple[str, ...] = ()
    """What every call requires of a platform, in the words of a probe's `needs`."""
    group: str = ""
    """Tools that fail together are withdrawn together; "core" is never withdrawn."""
    modes: tuple[Mode, ...] = ()
    """For a tool with several functions; the one without `given` is last."""

    effect_by: Callable[[Mapping[str, Any]], Effect] | None = None
    """The effect of a call, where it depends on the arguments; else every call has `effect`."""
    acts_on: str | None = None
    """The argument with the run's own name that an act changes by transactions; "" if it changes none. If
    unset, the gate refuses every act of the tool."""
    acts_at: str = ""
    """The argument with the URL that an act changes, where `effect_by` makes a call an act: the profile must
    list its path."""
    impacts: Mapping[str, Impact] = field(default_factory=dict)
    """By how a call is made: its method, `look` or `act`, or "" where that makes no difference. The gate
    refuses a call without one."""
    points_at: Mapping[str, Points] | None = None
    """By argument; {} for a tool that points at nothing. If unset, the gate refuses every call."""
    reaches: str = ""
    """The part of the platform that every call goes to, `node` or `proxy`; for a page, its URL decides."""
    mints: str = ""
    """The argument with the name that a call mints; its throwaway key is created before the call."""
    needs_key: str = ""
    """Label of a throwaway key that is created before the first call."""
    signs_in: bool = False
    """Whether its guest gets the secrets of the profile's two accounts."""
    batches: bool = False
    """Whether an explorer's calls of it may share one jail."""
    lends: Mapping[str, str] = field(default_factory=dict)
    """By the value of an argument: the label of another throwaway key that such a call needs."""

    example: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of a probe's step, for the reference."""
    expects: str = ""
    """An expectation about the answer to `example`."""

    asks: tuple[str, ...] = ()
    """The request in a finding's words, with `{argument}`, or `{argument:words}` for one that is only set or
    not; a part after the first is left out if one of its arguments is empty."""
    ends_in: str = ""
    """The field of the result that holds the outcome; "": `ok`, or its error."""
    error_varies: bool = False
    """The error's text varies between looks at one defect, so it is not part of a signature."""
    judged_as: tuple[str, ...] = ()
    """How the oracles judge its answers, in the words of fleet/oracles/table.py."""

    in_build: str = ""
    """What of a build answers it, with no chain, signer or browser: `compiler`, `service`; "": nothing."""

    resources: str = ""
    """The class of limits of its jails, in the words of fleet/jail/model.py; "": the image's own."""
    wall_s: float = 0.0
    """Seconds that one call may take; 0: as every other."""
    attaches: str = ""
    """A field of the result with a file in base64: kept in the run's evidence by its hash, not in records."""

    public: frozenset[str] = frozenset()
    """Arguments and result fields that may be kept, with masked values; any other is left out."""
    on_chain: frozenset[str] = frozenset()
    """Result fields that hold what a public chain answered: a word of 32 bytes there is a key of no one's
    unless it is one of ours."""
    caps: Mapping[str, int] = field(default_factory=dict)
    """Most characters of a text, and members of a list, by the name of the result's field, at any depth; what
    is longer makes the whole result garbage."""
    volatile: frozenset[str] = frozenset()
    """Result fields that differ between two runs on a healthy platform: times, hashes, keys."""

    @property
    def defaults(self) -> dict[str, Any]:
        """The values of arguments that a call may leave out."""
        return {one.name: one.default for one in fields(self.args) if one.default is not MISSING}

    def effect_of(self, args: Mapping[str, Any]) -> Effect:
        """What a call with these arguments may change."""
        return self.effect_by(args) if self.effect_by else self.effect

    def mode(self, args: Mapping[str, Any]) -> Mode | None:
        """The mode that a call selects; None for a tool without modes."""
        return next((one for one in self.modes if one.selected_by(args)), None)

    def argument(self, what: Points) -> str:
        """The first argument that points at `what`; "" for none."""
        return next((name for name, points in (self.points_at or {}).items() if points is what), "")

    @property
    def page(self) -> str:
        """The argument with the URL that a call asks; "" for none."""
        return self.argument(Points.PAGE) or self.argument(Points.MCP) or self.argument(Points.PAID)

    @property
    def starts_programs(self) -> bool:
        """Whether it starts the platform's compiler or loader."""
        needs = (*self.needs, *(need for mode in self.modes for need in mode.needs))
        return any(need.partition(".")[0] == "compiler" for need in needs)
