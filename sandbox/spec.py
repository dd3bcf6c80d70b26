"""The definition of a tool: the contract shared by both sides of the fence.

Standard library only: this module is imported in every jail before a request arrives.
The trusted side builds strict validators from the `args` and `result` dataclasses; what a
jail prints is a claim until it has passed them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

PROTOCOL = 1
"""Version of the request and result lines."""

BROKER = "http://127.0.0.1:3128"
"""Where a jail finds its only way out: the listener it handed to the broker (jail.md section 6)."""


class Effect(StrEnum):
    """What a call may change; the dial maps each class to the lowest rung that permits it."""

    LOOK = "look"  # reads: observe
    COMPUTE = "compute"  # runs hostile input inside the jail only: observe
    ACT = "act"  # changes something this run minted, or spends: exercise
    REPORT = "report"  # one submitFeedback under the fleet's own identity: observe, trusted side


@dataclass(frozen=True, slots=True)
class Cost:
    """Upper bound of what one call may use; charged before the call, writes again at the signer."""

    calls: int = 1
    writes: int = 0


@dataclass(frozen=True, slots=True)
class Context:
    """The public facts a guest needs. Nothing here is secret: a jail may be read by what runs in it."""

    run: str
    prefix: str  # "qa-<run>-": the only names this run may act on
    chain_id: int = 0
    diamond: str = ""
    token: str = ""  # ERC-20 that registration is paid in; "" when it is free
    site: str = ""
    proxy: str = ""
    model: str = ""
    auth_scope: str = ""  # first part of the signed call token, e.g. "localharness-proxy"
    keys: dict[str, str] = field(default_factory=dict)  # label -> address; "caller" and one per minted name
    compiler: tuple[str, ...] = ()  # argv inside the jail; source on stdin, wasm on stdout
    loader: tuple[str, ...] = ()  # argv inside the jail; module on stdin, entry name on stdout
    gas: dict[str, int] = field(default_factory=dict)  # publish_base, publish_per_byte, register, ...
    publish_cap: int = 16_384  # bytes (platform-facts 1.10)
    deadline_s: float = 30.0
    lacks: tuple[str, ...] = ()  # functions of contract.py that this diamond is known not to offer
    sample: str = ""  # a source that the compiler is known to accept: the control of a hang


class Mistake(Exception):
    """The caller's mistake: goes back to the caller as `error_class="bad_request"`, ends nothing."""


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """One tool: a name, typed arguments, a typed result, an effect class, a cost and the code.

    `run(args, ctx)` is called inside the jail; it is None for tools of the trusted side.
    """

    name: str
    args: type
    result: type
    effect: Effect
    cost: Cost
    summary: str
    run: Callable[[Any, Context], Any] | None = None
    needs: tuple[str, ...] = ()
    """What every call presupposes of a platform, in the words of a probe's `needs`."""
