"""Oracles of a contract whose functions have no known name: by what its own code and calls show. Pure.

A name would say what a function is for. Without one, a question carries its own evidence: who holds a thing
is a view that gives an address, and that the holder has a say is a function that refuses a stranger and
accepts the holder. Only then is it judged whether a stranger's call moves what is the holder's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from fleet.oracles.chain import fourbyte
from fleet.oracles.chain.code_functions import TypedFunction, of_surface
from fleet.oracles.chain.limits import text_of
from fleet.oracles.chain.simulated import STRANGER, ZERO, Simulated, WatchReading, account, number, of
from fleet.oracles.model import Exchange, Facts, Observation, Oracle, observed
from fleet.severity import Severity
from sandbox.chain.simulation import NAMES

LEAST, MOST_TEXT, MOST_NUMBER = 8, 24_000, 10**12
"""Between these a constant is looked at as a limit, of bytes or of a number."""


def key_of(spelled: str) -> str:
    """The arguments of a view that is spelled by its selector: hex, "" for none."""
    return spelled[11:-1] if spelled[:2] == "0x" else ""


def unnamed(selector: str) -> bool:
    """Whether a function, or a view as it is spelled, has no name in the dictionary."""
    return selector.startswith("0x") and not fourbyte.signature_of(selector[:10])


def _holding(call: Simulated | None) -> WatchReading | None:
    """The view that gives the holder, if the call watches one first, and is a call for the same thing."""
    first = call.readings[0] if call is not None and call.plain and call.readings else None
    if call is None or first is None or not unnamed(first.spelled):
        return None
    key = key_of(first.spelled)
    given = number(call.args[0]) if call.args else None
    return first if not key or (len(key) == 64 and given == int(key, 16)) else None


def _guarded(seen: Sequence[Exchange], last: Simulated, held: WatchReading) -> tuple[int, int] | None:
    """Where a function for the same thing refuses a stranger, and accepts its holder with the same."""
    holder = account(held.before)
    for at, exchange in enumerate(seen):
        call, own = of(exchange), _holding(of(exchange))
        if call is None or own is None or own.spelled != held.spelled or call.selector == last.selector:
            continue
        if call.sender == STRANGER or not call.succeeded or account(call.by) != holder:
            continue
        for before, other in enumerate(seen[:at]):
            refused = of(other)
            same = refused is not None and (refused.selector, refused.args) == (call.selector, call.args)
            if refused and same and refused.sender == STRANGER and not refused.succeeded:
                return before, at
    return None


oracle = partial(Oracle, judges=("chain",))


def _word(value: int | str) -> str:
    return f"0x{value if isinstance(value, int) else int(value, 16):064x}"


_HOLDER, _BY = "0x" + "a1" * 20, "0x" + "57" * 20
_WHO, _WHAT = f"0x0000000a({7:064x})", f"0x0000000b({7:064x})"


def _called(selector: str, given: int, succeeded: bool, after: int, sender: str = STRANGER) -> Exchange:
    args = {"simulate": selector, "types": ["uint256"] * 2, "args": ["7", str(given)]}
    args |= {"sender": sender, "watch": [_WHO, _WHAT]}
    answer = {"ok": True, "how": "simulate", "by": _BY if sender == STRANGER else sender}
    answer |= {"succeeded": succeeded, "before": [_word(_HOLDER), _word(50)]}
    return Exchange("qa_chain", args, answer | {"after": [_word(_HOLDER), _word(after)]})


_RESERVED = (_called("0x0000000c", 9, False, 50), _called("0x0000000c", 9, True, 9, _HOLDER))
_NOTE = {"simulate": "0x0000000d", "types": ["string"]}
_TOP = {"arguments": "", "mutability": "pure", "reads": []}
_FOUND = Exchange("qa_chain", {"surface": True}, {"ok": True, "value": [{"functions": {"0x0000000e": _TOP}}]})


def _noted(times: int, succeeded: bool) -> Exchange:
    args = _NOTE | {"args": [{"repeat": "a", "times": times}], "watch": ["0x0000000e"]}
    answer = {"ok": True, "succeeded": succeeded, "before": [_word(64)], "after": [_word(64)]}
    return Exchange("qa_chain", args, answer)


@oracle(
    id="held-by-another",
    says="what only the holder of a thing may change by one function, a stranger may not by another",
    severity=Severity.HIGH,
    surface="security",
    yields_to=("open-to-strangers", "reserved-open"),
    example=(*_RESERVED, _called("0x00000011", 3, True, 3), _called("0x00000011", 99, True, 99)),
    control=(*_RESERVED, _called("0x00000011", 3, False, 50), _called("0x00000011", 99, True, 99)),
)
def held_by_another(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """[a function that refuses a stranger and accepts the holder, a stranger's call of another function]."""
    last = of(seen[-1])
    held = _holding(last)
    if last is None or held is None or last.sender != STRANGER or not last.succeeded:
        return
    if not unnamed(last.selector) or account(held.before) in ("", ZERO, last.by):
        return
    guard = _guarded(seen[:-1], last, held)
    if guard is None or _says_who(seen[-1]):
        return
    if held.after != held.before:
        taken = account(held.after)
        if taken in {account(one) for one in last.args} - {"", ZERO, last.by}:
            yield _seen(last, f"gives {_shown(held)} from {account(held.before)} to {taken}", guard)
        return
    for one in last.readings[1:]:
        rests = _overwritten(seen[:-1], last, one) if key_of(one.spelled) == key_of(held.spelled) else None
        part = _part_of_it(seen[:-1], guard[1], held, one)
        if rests is not None and part is not None:
            words = f"writes {_shown(one)}, held by {account(held.before)} in {_shown(held)}"
            yield _seen(last, words, (*guard, rests, part))
            return


def _overwritten(seen: Sequence[Exchange], last: Simulated, one: WatchReading) -> int | None:
    """Where the same call wrote another value: together one below and one above what was there, so that no
    order (a higher bid, a later time) is what lets the caller write."""
    was, now = number(one.before), number(one.after)
    if not was or now is None or was == now or now not in _values(last):
        return None
    for at, exchange in enumerate(seen):
        call = of(exchange)
        if call is None or not call.plain or call.selector != last.selector or call.sender != STRANGER:
            continue
        other = next((each for each in call.readings if each.spelled == one.spelled), None)
        wrote = number(other.after) if other is not None and call.succeeded else None
        if wrote is not None and wrote in _values(call) and min(wrote, now) < was < max(wrote, now):
            return None if _says_who(exchange) else at
    return None


def _values(call: Simulated) -> set[int]:
    """The values that a call was given, the key of its thing aside."""
    given = (account(one) for one in call.args)
    return {int(one, 16) for one in given if one} | {n for one in call.args if (n := number(one)) is not None}


def _part_of_it(seen: Sequence[Exchange], guard: int, held: WatchReading, one: WatchReading) -> int | None:
    """Where it shows that a view is of the thing: only its holder may set it by another function, or it comes
    into being with a new thing, for the one who makes that."""
    reserved = of(seen[guard])
    for each in reserved.changed if reserved is not None else ():
        if reserved is not None and each.spelled == one.spelled and number(each.after) in _values(reserved):
            return guard
    for at, exchange in enumerate(seen):
        made = of(exchange)
        if made is None or not made.plain or made.sender != STRANGER or len(made.readings) < 2:
            continue
        holder, *parts = made.readings
        if holder.spelled[:10] != held.spelled[:10] or holder.spelled == held.spelled:
            continue
        if account(holder.before) not in ("", ZERO) or account(holder.after) != made.by:
            continue
        for each in parts:
            if each.spelled[:10] == one.spelled[:10] and not number(each.before) and number(each.after):
                return at
    return None


def _says_who(exchange: Exchange) -> bool:
    """Whether an event or a view names the caller, as what anyone may write does; or nothing shows events."""
    call = of(exchange)
    if call is None or exchange.result.get("how") != "simulate":
        return True
    named = any(account(one.after) == call.by for one in call.readings)
    return named or any(one.endswith(NAMES) for one in call.events)


def _shown(one: WatchReading) -> str:
    key = key_of(one.spelled)
    return one.function + (f"({int(key, 16)})" if len(key) == 64 else "()")


def _seen(last: Simulated, words: str, led: Sequence[int]) -> Observation:
    title = f"{last.spoken} {words}"
    return observed(
        title, f"stranger {last.selector}", "succeeded", "before", "after", led=tuple(sorted(set(led)))
    )


@oracle(
    id="constant-exceeded",
    says="a function that stops just above a constant of its contract stops at it",
    severity=Severity.MEDIUM,
    surface="on-chain",
    example=(_FOUND, _noted(2, True), _noted(66, False), _noted(65, True)),
    control=(_FOUND, _noted(2, True), _noted(65, False), _noted(64, True)),
)
def constant_exceeded(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """[the surface; a small value is accepted, a constant and two refused, the constant and one accepted]."""
    last = of(seen[-1])
    if last is None or not last.plain or not last.succeeded or len(last.readings) != 1 or not last.args:
        return
    (stated,) = last.readings
    limit, size = number(stated.before), _size(last.args[-1])
    if limit is None or stated.after != stated.before or size != limit + 1 or not unnamed(stated.spelled):
        return
    surfaces = [(at, described(one).get(stated.spelled)) for at, one in enumerate(seen[:-1])]
    constant = [at for at, one in surfaces if one is not None and one.constant]
    small = refused = -1
    for at, exchange in enumerate(seen[:-1]):
        call = of(exchange)
        if call is None or not call.args:
            continue
        if (call.selector, call.sender, call.args[:-1]) != (last.selector, last.sender, last.args[:-1]):
            continue
        if call.succeeded and _size(call.args[-1]) <= limit // 2:
            small = at
        if not call.succeeded and _size(call.args[-1]) == limit + 2:
            refused = at
    numeric = str((seen[-1].args.get("types") or ("",))[-1]).startswith("uint")
    sized = LEAST <= limit <= (MOST_NUMBER if numeric else MOST_TEXT)
    if constant and small >= 0 and refused >= 0 and sized:
        accepted = str(size) if numeric else f"{size} bytes"
        title = f"{last.spoken} accepts {accepted}; {stated.function}() is {limit}"
        yield observed(
            title, f"range {last.selector} above", "succeeded", "before", led=(constant[0], small, refused)
        )


def _size(value: object) -> int:
    """A number, or the bytes of a text."""
    if isinstance(value, str) and value.isascii() and value.isdigit():
        return int(value)
    text = text_of(value)
    return len(text.encode()) if text is not None else -1


def described(exchange: Exchange) -> dict[str, TypedFunction]:
    """The functions of a contract by the answer to `surface`; empty for any other call."""
    asked = exchange.tool == "qa_chain" and exchange.args.get("surface") and exchange.result.get("ok")
    return of_surface(exchange.result.get("value")) if asked else {}
