"""One run's path to a signature: the broker asks the wallet, the signer decides."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from fleet.chain.keys import Secret, auth_token, fresh
from fleet.chain.ports import Payer, PaymentQuote, PaymentRequest, Receipt, Role, RunScope, TxRequest
from fleet.chain.run_keys import RunKeys
from fleet.chain.signing.payment import carried
from fleet.chain.signing.policy import paused
from fleet.clock import Clock
from fleet.drivers.session import RunOver
from fleet.errors import BudgetExceeded, Refused
from fleet.gate.gate import STOPPED, rung_now
from fleet.gate.model import Rung
from fleet.runs.context import FleetContext, until_stopped
from sandbox.tools import TOOLS

STAND_INS = 80
"""Further throwaway keys of one label and run at most, each with a daily credit of its own."""
FRESH = 8
"""Calls that a new identity is taken to pay while no charge is known."""
SPREAD_S = 45
"""Seconds, far below any freshness of a token, by which one may be dated back to differ from the others."""
IDENTITIES = frozenset(
    label for spec in TOOLS.values() if spec.needs_key for label in (spec.needs_key, *spec.lends.values())
)
"""Labels under which a run calls agents."""
QUESTION = 4
"""Calls of one question, as most have them."""


class Wallet:
    """The throwaway keys of one run. Implements the broker's TxPort; keys never leave it.

    `spent` is set when a budget refused a signature, `stopped` when STOP did or ended the wait for a receipt:
    the call ends the driver. `acts` counts call tokens issued and signatures begun. Without a `payer` it can
    only clean up. `deadline` is on the clock's `monotonic()`.
    """

    def __init__(
        self,
        world: FleetContext,
        run: str,
        payer: Payer | None = None,
        *,
        clock: Clock | None = None,
        deadline: float = math.inf,
    ) -> None:
        self._world, self._run = world, run
        self._clock, self._deadline = clock or world.clock, deadline
        self.keys = RunKeys(world.folder(run))
        self.scope = RunScope(run=run, prefix=f"qa-{run}-", keys=self.keys, payer=payer)
        self.spent: str = ""
        self.stopped: str = ""
        self.acts = 0
        self._addresses: dict[str, str] | None = None
        self._stand_ins: dict[str, int] = {}
        self._worn: set[str] = set()
        self._stamps: dict[str, dict[int, int]] = {}
        self._full = FRESH
        self.affords = FRESH
        """Calls that the credit of the caller still pays, as far as is known."""

    async def ready(self, tool: str, args: Mapping[str, Any]) -> None:
        """Create the key that a call needs; its intent is recorded first."""
        spec = TOOLS[tool]
        if spec.mints:
            await self._key(str(args[spec.mints]), minting=True)
        if spec.needs_key:
            await self._key(self._actual(spec.needs_key), minting=False)
        for given in {value for value in args.values() if isinstance(value, str)} & spec.lends.keys():
            await self._key(self._actual(spec.lends[given]), minting=False)

    async def _key(self, label: str, *, minting: bool) -> None:
        if label in self.keys.labels():
            return
        key = fresh()
        copy = {"key": key.reveal().hex()} if self._world.journal.shared else {}
        await self._world.journal.intend(self._run, "key", label, copy)
        known = self._known()
        known[label] = address = self.keys.keep(label, key)
        if minting:
            await self._world.journal.intend(self._run, "name", label, {"owner": address})

    def wear(self, label: str) -> None:
        """Note that the credit of this key is spent."""
        self._worn.add(label)

    def retire(self) -> None:
        """Note that the identities that have called are not to call again: platforms remember them."""
        self._worn |= {one for one in IDENTITIES if self._actual(one) in self.keys.labels()}

    def pays(self, credit: int, charged: int) -> None:
        """Note the caller's credit before a call, and what was charged for it."""
        self._full, self.affords = max(self._full, credit // charged), (credit - charged) // charged

    def renew(self, label: str = "", calls: int = QUESTION) -> None:
        """Put a new throwaway key in the place of each worn one, and of this one if its credit does not pay
        this number of calls; never within a question."""
        if label and self.affords < calls <= self._full:
            self._worn.add(label)
        for worn in self._worn:
            self._stand_ins[worn] = min(self._stand_ins.get(worn, 0) + 1, STAND_INS)
            if worn == label:
                self.affords = self._full
        self._worn.clear()

    def _actual(self, label: str) -> str:
        """The key that stands for a label now."""
        number = self._stand_ins.get(label, 0)
        return f"{label}-{number}" if number else label

    def addresses(self) -> dict[str, str]:
        """Label to address of every key, and of the one that stands for it."""
        known = self._known()
        return known | {
            one: known[self._actual(one)] for one in self._stand_ins if self._actual(one) in known
        }

    def _known(self) -> dict[str, str]:
        """Label to address by file. Cached, so that calls do not read the key files again."""
        if self._addresses is None:
            self._addresses = self.keys.addresses()
        return self._addresses

    async def inherit(self) -> None:
        """Adopt the keys of a dead peer: a shared journal has copies while they are needed."""
        for effect in await self._world.journal.effects(self._run, ["key"], ["open", "done"]):
            if effect.data.get("key") and effect.ref not in self.keys.labels():
                self.keys.keep(effect.ref, Secret(bytes.fromhex(effect.data["key"])))

    async def submit(self, key: str, to: str, data: bytes, value: int, gas: int) -> dict[str, Any]:
        """Send a throwaway key's transaction, paid by the sponsor; raises Refused, TxFailed, Unreachable.

        STOP ends the wait for a receipt too: the effect stays open, and is settled after the resume.
        """
        self._ask("a transaction")
        if value:
            raise Refused("a tool may not send value", rule="value")
        key = self._actual(key)
        if key not in self.keys.labels():
            raise Refused(f"this run has no key {key!r}", rule="key")
        request = TxRequest(
            role=Role.THROWAWAY,
            to=to,
            data=data,
            gas=gas,
            charge="writes",
            run=self._run,
            key=key,
            purpose=f"tool {key}",
        )
        await self._world.chain.signer.check(request)  # before it is paid: a refused act costs nothing
        self.acts += 1

        async def paid() -> Receipt:
            return await self._world.chain.sponsor.act(self.scope, request, check=False)

        try:
            receipt = await until_stopped(self._world.state, paid)
        except BudgetExceeded as error:
            self.spent = str(error)
            raise
        except RunOver as over:
            self.stopped = over.detail
            raise paused() from None
        return {
            "tx": receipt.tx,
            "status": receipt.status,
            "gas_used": receipt.gas_used,
            "block": receipt.block,
            "reverted": receipt.reason or receipt.failure,
        }

    def over(self) -> tuple[str, str] | None:
        """Rule and reason once the run may do nothing more."""
        if self.spent:
            return "budget", self.spent
        in_time = self._clock.monotonic() < self._deadline
        return None if in_time else ("deadline", "the run's time is over")

    def _ask(self, act: str) -> None:
        """Refused unless the run may sign at this moment."""
        rung = rung_now(self._world.state)
        if rung == STOPPED:
            self.stopped = "STOP is set"
            raise paused()
        if over := self.over():
            raise Refused(over[1], rule=over[0])
        if Rung(rung).height < Rung.EXERCISE.height:
            raise Refused(f"the dial is at {rung}: {act} is not signed", rule="dial")

    def _stamp(self, key: str, now: int) -> int:
        """The latest second that no token of this key has, else the one given longest ago: a platform may
        take two calls that are equal to the last byte for one, sent twice."""
        given = self._stamps.setdefault(key, {})
        stamp = min(range(now, now - SPREAD_S, -1), key=lambda at: given.get(at, 0))
        given[stamp] = max(given.values(), default=0) + 1
        self._stamps[key] = {at: turn for at, turn in given.items() if at > now - SPREAD_S}
        return stamp

    async def token(self, key: str, route: str, age: int = 0) -> dict[str, Any]:
        """A call token of a throwaway key, dated `age` seconds back; valid only on this platform.

        Raises Refused, as each signature does.
        """
        self._ask("a call token")
        self.acts += 1
        key = self._actual(key)
        now = int(self._world.clock.now().timestamp())
        stamp = now - age if age else self._stamp(key, now)
        token = auth_token(self._world.platform.web.auth_scope, self.keys.get(key), stamp, route)
        return {"token": token, "address": self.keys.addresses()[key]}

    async def pay(self, quote: PaymentQuote, value: int, seconds: int, *, own: bool) -> dict[str, Any]:
        """The authorisation of a payment by the purse, as x402 writes it; raises Refused, as each signature
        does."""
        self._ask("a payment")
        self.acts += 1
        asked = PaymentRequest(run=self._run, quote=quote, value=value, seconds=seconds, own=own)
        try:
            made, signature = await self._world.chain.signer.pay(asked)
        except BudgetExceeded as error:
            self.spent = str(error)
            raise
        return carried(made, signature)
