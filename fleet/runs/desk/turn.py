"""One turn of a driver: its calls, their results, and when it accepts no more."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any, Protocol

import anyio

from fleet.drivers.desk import FAILURES, Reply
from fleet.events.model import (
    Event,
    MessageDelta,
    MessageDone,
    MessageSaid,
    MessageStarted,
    TurnEnded,
    TurnUsage,
)
from fleet.events.usage import total
from fleet.runs.call.replies import CUT, refusal
from fleet.runs.driver_choice import Price, unpriced
from fleet.text import line

MAX_CALLS = 32
"""Most calls in one turn; the rest is refused and counted at no cost."""
MAX_REJECTIONS = 3
"""Most invalid calls in one turn (unknown, malformed); one more fails the turn."""
_MESSAGES = (MessageStarted, MessageDelta, MessageDone, MessageSaid)


class Answers(Protocol):
    """Answers a call: the conductor. It reports rejections to the turn."""

    async def answer(
        self, turn: OpenTurn, call_id: str, tool: str, args: Mapping[str, Any] | str
    ) -> Reply: ...


@dataclass(slots=True)
class OpenTurn:
    """Implements the drivers' Turn port."""

    index: int
    desk: Answers
    emit: Callable[[Event], None]
    lock: anyio.Lock
    price: Price = unpriced
    is_open: bool = True
    failure: str = ""
    detail: str = ""
    asked: int = 0
    usage: TurnUsage | None = None
    proposed: list[str] = field(default_factory=list)
    rejections: list[dict[str, str]] = field(default_factory=list)
    rejected: int = 0
    _digest: Any = field(default_factory=hashlib.sha256)
    _replies: int = 0
    _bytes: int = 0
    _cut: int = 0

    async def ask(self, call_id: str, tool: str, args: Mapping[str, Any] | str) -> Reply:
        async with self.lock:
            if not self.is_open:
                raise RuntimeError("this turn is over")
            self.asked += 1
            if self.asked > MAX_CALLS:
                return refusal(call_id, tool, f"more than {MAX_CALLS} calls in one turn: ignored")
            self.proposed.append(line(call_id, 128))
            if self.failure == "invalid_action_exhausted":
                return refusal(call_id, tool, "too many invalid calls: the turn is over")
            reply = await self.desk.answer(self, call_id, tool, args)
            self._observe(reply)
            return reply

    def reject(self, tool: str, pointer: str, error: str) -> None:
        """Count an invalid call; one too many fails the turn."""
        self.rejected += 1
        self.rejections.append(
            {"tool": line(tool, 64), "pointer": line(pointer, 100), "error": line(error, 200)}
        )
        if self.rejected > MAX_REJECTIONS:
            self.failed("invalid_action_exhausted", error)

    def show(self, event: Event) -> None:
        if self.is_open and isinstance(event, _MESSAGES):
            self.emit(event)

    def used(self, usage: TurnUsage) -> None:
        if self.is_open:
            usage = checked(usage)
            if usage.cost_usd is None and (cost := self.price(usage)) is not None:
                usage = usage.model_copy(update={"cost_usd": str(cost)})
            self.usage = total((self.usage, usage))

    def failed(self, failure: str, detail: str = "") -> None:
        if failure not in FAILURES:
            raise ValueError(f"{failure!r} is not a reason for a failed turn")
        if self.is_open:
            self.failure, self.detail = failure, line(detail, 300)

    def record(self, executed: tuple[int, ...], seconds: float) -> TurnEnded:
        """The trajectory's record of the finished turn."""
        validation: dict[str, Any] = {"ok": not self.failure and not self.rejected}
        if self.rejected:
            validation |= {"retries": self.rejected, "rejections": self.rejections}
        if self.failure:
            validation |= {"reason": self.failure, "detail": self.detail}
        if self.asked > MAX_CALLS:
            validation |= {"ok": False, "over_the_cap": self.asked - MAX_CALLS}
        return TurnEnded(
            index=self.index,
            observation=self._observation(),
            proposed=tuple(self.proposed),
            validation=validation,
            executed=executed,
            usage=self.usage,
            failure=self.failure,
            seconds=round(seconds, 3),
        )

    def _observation(self) -> dict[str, Any]:
        if not self._replies:
            return {}
        seen = {"replies": self._replies, "bytes": self._bytes, "sha256": self._digest.hexdigest()}
        return seen | ({"cut": self._cut} if self._cut else {})

    def _observe(self, reply: Reply) -> None:
        text = json.dumps(reply.content, sort_keys=True, default=str)
        self._replies += 1
        self._bytes += len(text)
        self._cut += CUT in text
        self._digest.update(text.encode())


def checked(usage: TurnUsage) -> TurnUsage:
    """A usage with countable figures; an invalid one (negative, not a number) becomes unknown."""
    wrong = {
        name: None
        for name, value in usage.model_dump(exclude={"model", "cost_usd"}).items()
        if value is not None and not 0 <= value < 10**12
    }
    cost = dollars(usage.cost_usd)
    return usage.model_copy(
        update=wrong | {"cost_usd": None if cost is None else str(cost), "model": line(usage.model, 120)}
    )


def dollars(text: str | None) -> Decimal | None:
    """An amount of money as reported by a provider; None if invalid."""
    try:
        amount = Decimal(text) if text is not None and len(text) <= 40 else Decimal("NaN")
    except InvalidOperation:
        return None
    return amount if amount.is_finite() and 0 <= amount < 10**9 else None
