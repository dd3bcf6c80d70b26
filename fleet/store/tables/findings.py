"""Findings and the outbox: one row per defect and run, moved only along `FINDING_MOVES`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import asdict
from typing import Any

from sqlalchemy import Text, and_, cast, func, literal, or_, select, update

from fleet.errors import UsageError
from fleet.store.rows import FINDING_MOVES, MOVING, TRIAL, FindingRow, FindingState
from fleet.store.sql.database import Connection
from fleet.store.sql.schema import FINDINGS, RUNS
from fleet.store.tables.base import TableGroup, plain, row_of

_SETTABLE = frozenset(
    {
        *("state", "confirmed", "tries", "envelope", "evidence"),
        *("tx", "index", "title", "repro", "severity", "data"),
    }
)


_TRIALS = select(RUNS.c.run_id).where(RUNS.c.trigger == TRIAL)
_COUNTED = FINDINGS.c.run_id.not_in(_TRIALS)


class Findings(TableGroup):
    async def add_finding(self, finding: FindingRow) -> bool:
        """Record a finding when it is found; False if this run has it already (`times` grows)."""
        row = asdict(finding) | {"at": finding.at or self._now()}
        made = self._db.insert(FINDINGS).values(row).on_conflict_do_nothing().returning(FINDINGS.c.finding_id)
        again = update(FINDINGS).where(*_is(finding.run_id, finding.fingerprint))

        async def work(c: Connection) -> bool:
            await self._fence(c, finding.run_id)
            if await c.scalar(made) is not None:
                return True
            await c.execute(again.values(times=FINDINGS.c.times + finding.times))
            return False

        return await self._db.write("finding.add", work)

    async def set_finding(self, run_id: str, fingerprint: str, **changes: object) -> None:
        """Change fields of one finding: state, confirmed, tries, envelope, evidence, tx, index, data, …

        ValueError for a field that cannot change or a state it cannot reach, UsageError when there is
        no such finding, LostRun when a peer owns its run.
        """
        if unknown := set(changes) - _SETTABLE:
            raise ValueError(f"not a field that changes: {', '.join(sorted(unknown))}")
        where = _is(run_id, fingerprint)

        async def work(c: Connection) -> None:
            await self._fence(c, run_id)
            before: FindingState | None = await c.scalar(select(FINDINGS.c.state).where(*where))
            if before is None:
                raise UsageError(f"no finding {plain(fingerprint)} in run {plain(run_id)}")
            after = changes.get("state", before)
            if after != before and after not in FINDING_MOVES[before]:
                raise ValueError(f"finding {fingerprint} is {before}: it cannot become {after}")
            if changes:
                await c.execute(update(FINDINGS).where(*where).values(changes))

        await self._db.write("finding.set", work)

    async def claim_posting(self, run_id: str, fingerprint: str) -> bool:
        """Move a confirmed finding into the outbox, unless another run has the same one there now.

        After True check `posted`: an earlier one may have been posted in between. LostRun when a
        peer owns the run.
        """
        mine, other = FINDINGS, FINDINGS.alias()
        busy = select(other.c.finding_id).where(
            other.c.fingerprint == fingerprint, other.c.state == "posting", other.c.run_id != run_id
        )
        statement = (
            update(mine)
            .where(*_is(run_id, fingerprint), mine.c.state == "confirmed", ~busy.exists())
            .values(state="posting")
            .returning(mine.c.finding_id)
        )

        async def work(c: Connection) -> bool:
            await self._fence(c, run_id)
            return await c.scalar(statement) is not None

        return await self._db.write("finding.claim", work)

    async def move_entry(self, run_id: str, fingerprint: str, index: int) -> None:
        """A reorganisation moved the entry of a posted finding: a fact of the chain, not fenced."""
        statement = (
            update(FINDINGS)
            .where(*_is(run_id, fingerprint), FINDINGS.c.state == "posted")
            .values(index=index)
        )
        await self._db.write("finding.move", lambda c: c.execute(statement))

    async def states_of(self, runs: Collection[str] | None = None) -> dict[str, Counter[str]]:
        """How many findings each of these runs has, by state; "" is all runs but trials, without `runs`."""
        run = FINDINGS.c.run_id if runs is not None else literal("")
        statement = select(run.label("of"), FINDINGS.c.state, func.count()).group_by("of", FINDINGS.c.state)
        statement = statement.where(FINDINGS.c.run_id.in_(runs) if runs is not None else _COUNTED)
        found: dict[str, Counter[str]] = {one: Counter() for one in (runs if runs is not None else ("",))}
        for of, state, count in await self._db.rows(statement):
            found[of][state] = count
        return found

    async def on_their_way(self, since: str) -> list[FindingRow]:
        """Findings with a fingerprint that has one which is neither posted nor dropped, or one since then
        (ISO); in the order they were found, trials left out."""
        other = FINDINGS.alias()
        moving = select(other.c.fingerprint).where(
            or_(other.c.state.in_(MOVING), other.c.at >= plain(since)), other.c.run_id.not_in(_TRIALS)
        )
        statement = select(FINDINGS).where(_COUNTED, FINDINGS.c.fingerprint.in_(moving))
        return await self._all(FindingRow, statement.order_by(FINDINGS.c.finding_id))

    async def findings_named(self, names: Collection[str]) -> list[FindingRow]:
        """Findings of all runs but trials that have one of these names, in the order they were found."""
        known = cast(FINDINGS.c.data, Text)
        like = [known.contains(f'"{plain(name)}"', autoescape=True) for name in names]  # `known_as` is there
        statement = select(FINDINGS).where(_COUNTED, or_(FINDINGS.c.fingerprint.in_(names), *like))
        rows = await self._all(FindingRow, statement.order_by(FINDINGS.c.finding_id))
        return [row for row in rows if not set(names).isdisjoint(row.names)]

    async def findings(
        self, run_id: str | None = None, states: Collection[FindingState] = ()
    ) -> list[FindingRow]:
        """Findings of one run, or of all but trials, in the order they were found."""
        statement = select(FINDINGS).order_by(FINDINGS.c.finding_id)
        statement = statement.where(FINDINGS.c.run_id == run_id if run_id is not None else _COUNTED)
        if states:
            statement = statement.where(FINDINGS.c.state.in_(states))
        return await self._all(FindingRow, statement)

    async def unsettled(self, persona: str, tries: int) -> list[FindingRow]:
        """What this persona's ended runs saw and neither completed the proof of nor posted, as no run since
        did: the last row of each fingerprint. A proof with so many `tries` is complete."""
        later, run = FINDINGS.alias(), RUNS
        statement = (
            select(FINDINGS)
            .join(run, run.c.run_id == FINDINGS.c.run_id)
            .where(
                FINDINGS.c.persona == persona,
                or_(
                    FINDINGS.c.state == "confirmed",
                    and_(FINDINGS.c.state == "unverified", FINDINGS.c.tries < tries),
                ),
                run.c.state == "ended",
                _COUNTED,
                ~select(later.c.finding_id)
                .where(
                    later.c.fingerprint == FINDINGS.c.fingerprint,
                    later.c.finding_id > FINDINGS.c.finding_id,
                    later.c.run_id.not_in(_TRIALS),
                )
                .exists(),
            )
            .order_by(FINDINGS.c.finding_id)
        )
        return await self._all(FindingRow, statement)

    async def posted(self, fingerprint: str) -> FindingRow | None:
        """The latest finding of any run with this fingerprint that is on the log."""
        statement = (
            select(FINDINGS)
            .where(FINDINGS.c.fingerprint == fingerprint, FINDINGS.c.state == "posted")
            .order_by(FINDINGS.c.finding_id.desc())
            .limit(1)
        )
        rows = await self._db.rows(statement)
        return row_of(FindingRow, rows[0]) if rows else None


def _is(run_id: str, fingerprint: str) -> tuple[Any, Any]:
    return FINDINGS.c.run_id == run_id, FINDINGS.c.fingerprint == fingerprint
