"""Oracles of a stranger's call: what is not the caller's stays as it is. Pure.

A stranger is an address without names, roles, tokens or credit. A count that grows, an entry that is
appended, a gift to another, and the caller's own things are healthy; so are a price and a fund that a call
moves by itself, as long as no argument of the caller's becomes their value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fleet.chain.signing.never import NEVER, RELEASE
from fleet.findings.field_words import shown
from fleet.oracles.chain import fourbyte
from fleet.oracles.chain.simulated import NARROW, STRANGER, ZERO, Simulated, WatchReading, account, number, of
from fleet.oracles.model import Exchange, Facts, Observation, observed, oracle
from fleet.severity import Severity
from fleet.text import line

OWNERS = frozenset(NEVER) - {RELEASE}
"""Functions that only the diamond's owner may call (platform-facts 1.3)."""
HUGE = 1 << 64
"""From here up an amount is ours: no price, gift or faucet gives it by chance."""
_THINGS = frozenset({"nameOfId", "idOfName", "isMain", "tokenURI", "feedbackAt", "mainNameOf"})
_HELD = frozenset({"ownerOfId", "ownerOf", "ownerOfName"})
_SUMS = frozenset({"creditOf", "balanceOf", "sessionExpiryOf", "credits", "creditsOf"})


def _foreign(call: Simulated, one: WatchReading) -> bool:
    """Whether a view is of another's existing thing."""
    if one.name in _HELD:
        return account(one.before) not in ("", ZERO, call.by)
    if one.name in _THINGS:
        return not _mine(call, one) and one.before not in ("", 0, "0", False, "0x")
    if one.name == "mainOf":
        return not _mine(call, one) and number(one.before) != 0
    if one.name == "metadata":
        owner = next((item for item in call.readings if item.spelled == f"ownerOfId({one.keys[0]})"), None)
        return owner is not None and account(owner.before) not in ("", ZERO, call.by)
    return False


def _mine(call: Simulated, one: WatchReading) -> bool:
    return bool({STRANGER, call.by} & {key.lower() for key in one.keys})


def _given(call: Simulated, value: object) -> bool:
    """Whether an argument of the call became this value, or, for an address, the caller."""
    numbers = {number(one) for one in call.args} - {None}
    accounts = {call.by if one == STRANGER else account(one) for one in call.args} - {""}
    return number(value) in numbers or account(value) in accounts | {call.by}


def _offence(call: Simulated, one: WatchReading) -> tuple[Severity, str] | None:
    """What is wrong with one change, or None: how grave, and in words."""
    moved = f"changes {one.shown} from {_show(one.before)} to {_show(one.after)}"
    was, now = number(one.before), number(one.after)
    if _foreign(call, one):
        return Severity.CRITICAL if one.name in _HELD else Severity.HIGH, moved
    if one.name in _SUMS and was is not None and now is not None:
        if now < was and not _mine(call, one):
            return Severity.HIGH, moved
        if now - was >= HUGE and _mine(call, one) and now - was in {number(arg) for arg in call.args}:
            return Severity.HIGH, f"gives its caller {shown(now - was)} of {one.name} for nothing"
    if one.keys or one.after is None:
        return None
    if fourbyte.ROLE.fullmatch(one.name) and account(one.before):
        taken = account(one.after) == ZERO or _given(call, one.after)
        return (Severity.CRITICAL, moved) if taken else None
    if one.name in ("paused", "isPaused"):
        return Severity.HIGH, moved
    if was is None or now is None:
        return None
    if (fourbyte.SETTING.fullmatch(one.name) or not one.name) and _given(call, one.after):
        sets = bool(one.name) or (now >= HUGE and fourbyte.SETTER.fullmatch(call.name) is not None)
        return (Severity.HIGH if one.name else Severity.MEDIUM, moved) if sets else None
    if now < was and fourbyte.FUNDS.fullmatch(one.name) and (not now or _given(call, was - now)):
        return Severity.CRITICAL, moved
    return (Severity.HIGH, moved) if now < was and fourbyte.COUNT.fullmatch(one.name) else None


def _show(value: object) -> str:
    if value is None:
        return "a revert"
    found = "" if value == "0x" + "0" * 64 else account(value)
    plain = found or (number(value) if isinstance(value, str) and len(value) == 66 else value)
    if isinstance(plain, str) and not plain.startswith("0x"):
        return f'"{line(plain, 60)}"'
    return "nothing" if plain == "0x" else shown(plain)


def _simulated(selector: str, given: Sequence[Any], watch: str, *values: object) -> tuple[Exchange, ...]:
    args: Mapping[str, Any] = {"simulate": selector, "args": list(given), "watch": [watch]}
    before, after = ([value] for value in values)
    answer = {"ok": True, "by": "0x" + "57" * 20, "succeeded": True, "before": before, "after": after}
    return (Exchange("qa_chain", args, answer),)


@oracle(
    id="open-to-strangers",
    says="a stranger's call changes nothing that is not the stranger's",
    severity=Severity.HIGH,
    surface="security",
    judges=("chain",),
    example=_simulated("0x637e9d5c", ["7"], "registrationCost", 5, 7),
    control=_simulated("0xe341a623", ["a note"], "feedbackCount", 5, 6),
)
def open_to_strangers(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    call = of(seen[-1])
    if call is None or not call.plain or call.sender != STRANGER or not call.succeeded:
        return
    if len(call.readings) > NARROW:
        return
    offences = [found for one in call.changed if (found := _offence(call, one))]
    if not offences and call.name in OWNERS and call.events:
        offences = [(Severity.HIGH, "takes effect: the contract logs it")]
    if not offences:
        return
    severity, words = max(offences, key=lambda one: one[0].weight)
    title = f"{call.spoken} {words}"
    fields = frozenset({"succeeded", "before", "after", "events"})
    yield observed(title, f"stranger {call.selector}", *fields, severity=severity)
