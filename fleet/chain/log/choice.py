"""Which log a platform has: on chain, or a file in the state directory; and one that is only read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from fleet.chain.log.feedback import FeedbackLog
from fleet.chain.log.file_log import FileLog
from fleet.chain.log.reputation_log import ReputationLog
from fleet.chain.node.codec import Entry
from fleet.chain.node.rpc import Rpc
from fleet.chain.ports import Charge, FeedbackPort, PostedEntry, SignerPort
from fleet.config import Platform
from fleet.errors import BudgetExceeded, FleetError, Refused
from fleet.findings.withheld import withheld


def log_of(profile: Platform, state: Path, rpc: Rpc, signer: SignerPort | None = None) -> FeedbackPort:
    """The log of a platform, behind its mask; without a signer it can only be read."""
    hides = withheld(profile)
    log = _bare(profile, state, rpc, signer)
    return log if signer is None or hides is str else FencedLog(log, hides)


def _bare(profile: Platform, state: Path, rpc: Rpc, signer: SignerPort | None) -> FeedbackPort:
    if file := profile.log_file(state):
        return FileLog(file, signer)
    chain, contract = profile.chain, profile.log_contract
    if agent := profile.agent:
        kept = state / "logs" / f"{contract.lower()}-{agent.agent}.events.json"
        return ReputationLog(rpc, contract, agent, chain, profile.gas, signer, kept=kept)
    return FeedbackLog(rpc, contract, profile.gas, signer, confirmations=chain.confirmations)


class _ReadThrough:
    """Reads a log as it is."""

    def __init__(self, log: FeedbackPort) -> None:
        self._log = log

    def seen(self, block: int) -> None:
        self._log.seen(block)

    async def head(self) -> int:
        return await self._log.head()

    async def count(self) -> int:
        return await self._log.count()

    async def range(self, start: int, count: int) -> list[Entry]:
        return await self._log.range(start, count)

    async def find(self, text: str, sender: str, *, since: int = 0) -> int | None:
        return await self._log.find(text, sender, since=since)


class FencedLog(_ReadThrough):
    """Implements FeedbackPort; refuses every text that names what `[post] mask` withholds.

    Who composes a text leaves it out: one that comes here with it was composed by a mistake.
    """

    def __init__(self, log: FeedbackPort, hides: Callable[[str], str]) -> None:
        super().__init__(log)
        self._hides = hides

    def _refused(self, text: str) -> Refused | None:
        if self._hides(text) == text:
            return None
        why = "this entry names what [post] mask withholds from a public log"
        return Refused(why, rule="post.mask", remedy="report this: it was to be left out before")

    async def post(self, text: str, *, run: str = "", charge: Charge = "reports") -> PostedEntry:
        if refused := self._refused(text):
            raise refused
        return await self._log.post(text, run=run, charge=charge)

    async def post_many(
        self, texts: Sequence[str], *, run: str = "", charge: Charge = "reports"
    ) -> list[PostedEntry | FleetError]:
        refused = [self._refused(text) for text in texts]
        kept = [text for text, no in zip(texts, refused, strict=True) if no is None]
        posted = iter(await self._log.post_many(kept, run=run, charge=charge) if kept else ())
        return [no or next(posted) for no in refused]


class MutedLog(_ReadThrough):
    """Implements FeedbackPort; every post is refused as if the budget of reports were spent."""

    async def post(
        self,
        text: str,  # noqa: ARG002  the port's
        *,
        run: str = "",  # noqa: ARG002
        charge: Charge = "reports",  # noqa: ARG002
    ) -> PostedEntry:
        raise BudgetExceeded("this run posts nothing", rule="no-post", remedy="run it without --no-post")

    async def post_many(
        self,
        texts: Sequence[str],
        *,
        run: str = "",  # noqa: ARG002  the port's
        charge: Charge = "reports",  # noqa: ARG002
    ) -> list[PostedEntry | FleetError]:
        return [BudgetExceeded("this run posts nothing", rule="no-post") for _ in texts]
