"""Oracles of A2A: whose a task is, how it ends, what a card declares. Pure.

Who may see a task is judged only where a call without a token is refused first: an agent that takes anybody
tells no callers apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from fleet.oracles.agent.card_signatures import FORGED, KEYS, SIGNED, refuted
from fleet.oracles.agent.dialogue import agent, answered, number, served, told_apart
from fleet.oracles.model import Exchange, Facts, Observation, Oracle, observed
from fleet.oracles.web.injections import told_listener
from fleet.severity import Severity
from sandbox.agents.wires.a2a import TERMINAL

UNSUPPORTED = (-32601, -32004)
NO_PUSH = -32003
NEW = "a2a-1.0"

oracle = partial(Oracle, judges=("reply",), surface="security")


def _call(args: dict[str, object], **result: object) -> Exchange:
    answer = {"ok": True, "status": 200, "reply": "x", "wire": NEW, "state": "completed"}
    return Exchange("qa_call", {"target": "a", "message": "hello"} | args, answer | result)


_CLOSED = _call({"token": "none"}, ok=False, status=401, state="")
_GET: dict[str, object] = {"then": "get", "then_as": "other"}
_LIST: dict[str, object] = {"then": "list", "then_as": "other"}
_CANCEL: dict[str, object] = {"then": "cancel", "then_as": "other", "running": True}


def _foreign(seen: Sequence[Exchange], what: str) -> tuple[Exchange, str] | None:
    """The call whose task somebody else asked about, and who; None where callers are not told apart."""
    last = seen[-1]
    who, made = str(last.args.get("then_as") or ""), answered(last) or last.args.get("running")
    if not (who and told_apart(seen) and made and last.result.get("state")) or last.args.get("then") != what:
        return None
    return last, "without a token" if who == "nobody" else "to another caller"


@oracle(
    id="task-read",
    says="a task is read by the caller who made it, and by nobody else",
    severity=Severity.HIGH,
    example=(_CLOSED, _call(_GET, then_ok=True, then_state="completed", unknown_code=-32001)),
    control=(_CLOSED, _call(_GET, then_ok=False, then_code=-32001, unknown_code=-32001)),
)
def task_read(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """[a call without a token that is refused, a call whose task another one reads]."""
    if (found := _foreign(seen, "get")) and found[0].result.get("then_ok"):
        title = f"{agent(found[0])} shows a task {found[1]}"
        yield observed(
            title, f"task-read {found[1]}", "then_ok", "then_state", led=tuple(told_apart(seen)[:1])
        )


@oracle(
    id="task-listed",
    says="a list of tasks holds those of the caller who asks for it",
    severity=Severity.HIGH,
    example=(_CLOSED, _call(_LIST, then_ok=True)),
    control=(_CLOSED, _call(_LIST, then_ok=False)),
)
def task_listed(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """[a call without a token that is refused, a call whose task stands in another one's list]."""
    if (found := _foreign(seen, "list")) and found[0].result.get("then_ok"):
        title = f"{agent(found[0])} lists a task {found[1]}"
        yield observed(title, f"task-listed {found[1]}", "then_ok", led=tuple(told_apart(seen)[:1]))


@oracle(
    id="task-cancelled",
    says="a task is cancelled by the caller who made it, and by nobody else",
    severity=Severity.HIGH,
    example=(_CLOSED, _call(_CANCEL, state="working", then_ok=True, state_after="canceled")),
    control=(_CLOSED, _call(_CANCEL, state="working", then_code=-32001, state_after="working")),
)
def task_cancelled(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """[a call without a token that is refused, a call whose running task another one cancels]: its own caller
    is told so afterwards."""
    if not (found := _foreign(seen, "cancel")):
        return
    last, whom = found
    ended = last.result.get("state_after") == "canceled" and last.result.get("state") not in TERMINAL
    if last.result.get("then_ok") and ended:
        title = f"{agent(last)} cancels a task {whom.replace('to another', 'for another')}"
        yield observed(
            title, f"task-cancelled {whom}", "then_ok", "state_after", led=tuple(told_apart(seen)[:1])
        )


@oracle(
    id="task-revealed",
    says="a foreign task is answered like one that does not exist",
    severity=Severity.LOW,
    example=(_CLOSED, _call(_GET, then_code=403, unknown_code=-32001)),
    control=(_CLOSED, _call(_GET, then_code=-32001, unknown_code=-32001)),
)
def task_revealed(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """A2A 1.0, 7.5: whether a task exists is not told to who may not see it. For `other` alone: a caller
    without a token is refused before anything is looked for, or should be."""
    for what in ("get", "cancel"):
        if (found := _foreign(seen, what)) is None or found[0].args.get("then_as") != "other":
            continue
        theirs, nothing = (number(found[0], name) for name in ("then_code", "unknown_code"))
        if theirs and nothing and theirs != nothing and not found[0].result.get("then_ok"):
            title = f"{agent(found[0])} answers {theirs} for a foreign task, {nothing} for none"
            yield observed(
                title, f"task-revealed {what}", "then_code", "unknown_code", led=tuple(told_apart(seen)[:1])
            )


@oracle(
    id="task-reopened",
    says="a task that has ended stays as it ended",
    severity=Severity.MEDIUM,
    surface="ux",
    example=(_call({"then": "cancel"}, then_ok=True, then_state="canceled", state_after="canceled"),),
    control=(_call({"then": "cancel"}, then_code=-32002, state_after="completed"),),
)
def task_reopened(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    last = seen[-1]
    before, after = (str(last.result.get(name) or "") for name in ("state", "state_after"))
    if (
        answered(last)
        and last.args.get("then") == "cancel"
        and before in TERMINAL
        and after not in ("", before)
    ):
        title = f"{agent(last)} makes {after} what was {before}"
        yield observed(title, f"task-reopened {before}", "state", "state_after")


_PUSH: dict[str, object] = {"push_to": "{listener}/qah0123456789ab"}


@oracle(
    id="push-inward",
    says="an agent sends nothing to an address of its own machine or network that its caller names",
    severity=Severity.HIGH,
    example=(_call({}), _call(_PUSH, heard=["qah0123456789ab"])),
    control=(_call({}), _call(_PUSH, heard=[])),
)
def push_inward(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """[a call, one whose changes are to be sent to the fleet's own listener]."""
    last = seen[-1]
    if told_listener(str(last.args.get("push_to") or ""), last.result):
        title = f"{agent(last)} sends to an inner address that a caller names"
        where = {"route": agent(last), "parameter": "push notification URL"}
        yield observed(
            title, "push-inward", "heard", led=(len(seen) - 2,) if len(seen) > 1 else (), where=where
        )


_CARD: dict[str, object] = {"card": True}
_EXTENDED: dict[str, object] = {"card": True, "then": "extended", "then_as": "nobody"}


@oracle(
    id="card-extended-open",
    says="the extended card is for callers who are known",
    severity=Severity.MEDIUM,
    example=(_CLOSED, _call(_EXTENDED, then_ok=True, declares=["extendedAgentCard"])),
    control=(_CLOSED, _call(_EXTENDED, then_ok=False, then_code=401, declares=["extendedAgentCard"])),
)
def card_extended_open(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """[a call without a token that is refused, one after which nobody asks for the extended card]: A2A 1.0,
    3.1.11, "requires authentication"."""
    last, apart = seen[-1], told_apart(seen)
    asked = last.args.get("then") == "extended" and last.args.get("then_as") == "nobody"
    if asked and apart and last.result.get("then_ok") is True:
        title = f"{agent(last)} shows its extended card without a token"
        yield observed(title, "card-extended-open", "then_ok", led=(apart[0],))


@oracle(
    id="card-signature",
    says="a signature of a card is one of the card",
    severity=Severity.MEDIUM,
    example=(_call(_CARD, card_status=200, card_text=FORGED, card_keys=KEYS),),
    control=(_call(_CARD, card_status=200, card_text=SIGNED, card_keys=KEYS),),
)
def card_signature(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """A key that cannot be had says nothing."""
    last = seen[-1]
    card, keys = str(last.result.get("card_text") or ""), str(last.result.get("card_keys") or "")
    if last.args.get("card") and refuted(card, keys):
        title = f"{agent(last)} has a card that its signature does not fit"
        yield observed(title, "card-signature", "card_text", "card_keys")


@oracle(
    id="card-declared",
    says="an agent does what its card declares, and takes no push address that it does not declare",
    severity=Severity.MEDIUM,
    surface="ux",
    example=(
        _call(_CARD | {"stream": True}, ok=False, code=-32004, card_status=200, declares=["streaming"]),
    ),
    control=(_call(_CARD | {"stream": True}, ok=False, code=-32004, card_status=200, declares=[]),),
)
def card_declared(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    last = seen[-1]
    if not last.args.get("card") or last.result.get("card_status") != 200:
        return
    declares, then = last.result.get("declares") or (), last.args.get("then")
    if last.args.get("stream") and "streaming" in declares and last.result.get("code") in UNSUPPORTED:
        title = f"{agent(last)} declares streaming and refuses it ({last.result.get('code')})"
        yield observed(title, "card-declared streaming", "code", "declares")
    if then != "push" or not last.result.get("state"):
        return
    declared, refused = "pushNotifications" in declares, number(last, "then_code")
    if declared and refused in (NO_PUSH, *UNSUPPORTED):
        title = f"{agent(last)} declares push notifications and refuses them ({refused})"
        yield observed(title, "card-declared push", "then_code", "declares")
    elif not declared and last.result.get("then_ok") is True:
        title = f"{agent(last)} takes a push address, and its card declares none"
        yield observed(title, "card-declared no push", "then_ok", "declares")


@oracle(
    id="version-ignored",
    says="a version of the protocol that does not exist is refused",
    severity=Severity.LOW,
    surface="ux",
    example=(_call({}), _call({"version": "99.0"})),
    control=(_call({}), _call({"version": "99.0"}, ok=False, code=-32009)),
)
def version_ignored(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """[a call, the same with version 99.0]: A2A 1.0, 3.6.2; 0.3 has no such rule."""
    last = seen[-1]
    asked = str(last.args.get("version") or "")
    plain = [at for at, one in enumerate(seen[:-1]) if answered(one) and not one.args.get("version")]
    if asked == "99.0" and plain and served(last) and last.result.get("wire") == NEW:
        title = f"{agent(last)} serves version {asked} of the protocol"
        yield observed(title, "version-ignored", "ok", led=(plain[0],))
