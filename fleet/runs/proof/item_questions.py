"""The questions by which an item is asked again: recorded in the journal, or found from what the log says.

An item of which only the log is left has the calls of its repro. They suffice for an oracle's finding: the
oracles judge whatever is asked. What a probe expected is not on the log: that probe is looked for among the
personas, by its calls. An item whose question is not known is never called fixed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, get_args

from fleet.errors import FleetError
from fleet.findings.evidence import load
from fleet.findings.fingerprint import fingerprint, normalise_repro
from fleet.findings.outage import WORD, is_titled
from fleet.findings.repro import ReproCall, ReproError, parse_repro
from fleet.findings.sighting import WORD_CHARS, lead, spelled
from fleet.oracles.model import Facts
from fleet.personas.model import Probe, Step, Surface
from fleet.runs.call.guest_protocol import bad_args
from fleet.runs.context import FleetContext
from fleet.runs.proof.attempt import Attempt
from fleet.runs.proof.candidates import NEW, Candidate, candidates, showing
from fleet.runs.proof.claims import kept
from fleet.severity import SEVERITIES, Severity
from fleet.store.rows import FindingRow, ItemRow
from fleet.text import clean, line
from sandbox.errors import CLASSES
from sandbox.spec import Effect
from sandbox.tools import TOOLS

SEVERAL = 4
"""Questions of one item at most: of a merged one, each recorded name's own."""
BUNDLES = 1000
"""Evidence files that are searched for a repro at most, the newest first."""
UNKNOWN = "its question is not known here"
STRANGER = "only strangers report it, and a stranger's repro never runs by itself"
NO_PAST = "it compares with earlier runs, and what they measured is not known here"
_RUN_NAME = re.compile(r"\bqa-[a-z2-7]{8}-[0-9]{1,4}\b")
_CLASSES = "|".join(filter(None, CLASSES))
_STATE = re.compile(rf"\d{{1,3}}(?:[,;]|$)|(?:{_CLASSES}|{_CLASSES.replace('_', ' ')}) ")
_MASKED = "[redacted"


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemQuestion:
    """One question of an item. `unsure`: why an answer without the defect does not tell that it is gone."""

    item: ItemRow
    probe: Probe
    row: FindingRow | None = None
    unsure: str = ""

    def shown(self, seen: Attempt, facts: Facts) -> Candidate | None:
        """The observation of this item in an attempt's answers; None if it is not there."""
        if self.row is not None and (same := showing(self.row, self.probe, seen, facts)):
            return same
        surface: Any = self.item.surface
        old = _by_calls(self.item, [ReproCall(one["tool"], dict(one["args"])) for one in seen.asked])
        for one in candidates(self.probe, seen, surface, facts):
            if {self.item.fingerprint, *self.item.names}.intersection(one.names) or (
                old and _by_calls(self.item, one.calls)
            ):
                return one
        return None


@dataclass(frozen=True, slots=True)
class KnownItem:
    """An item, and the journal's findings under any of its names, newest last."""

    item: ItemRow
    rows: tuple[FindingRow, ...] = ()


async def known_items(world: FleetContext) -> list[KnownItem]:
    """Every item of this platform, see `known_of`."""
    journal, platform = world.journal, world.platform.name
    rows = await journal.findings(states=["posted", "repeated"])
    rows = [row for row in rows if row.data.get("platform", platform) == platform]
    return known_of(await journal.items(platform), rows)


def known_of(items: Iterable[ItemRow], posted: Iterable[FindingRow]) -> list[KnownItem]:
    """Items as triage left them, and what the journal has `posted` since (newest last); no outages."""
    rows = {row.fingerprint: row for row in posted if row.probe != WORD}
    found = []
    for item in items:
        names = dict.fromkeys((item.fingerprint, *item.names))
        own = tuple(rows.pop(name) for name in names if name in rows)
        if not is_titled(item.title):
            found.append(KnownItem(item, own))
    for row in rows.values():
        unlisted = ItemRow(
            fingerprint=row.fingerprint,
            state="confirmed",
            severity=row.severity,
            surface=row.surface,
            title=row.title,
            persona=row.persona,
            repro=row.repro,
            names=(row.fingerprint,),
            trusted=True,
        )
        found.append(KnownItem(unlisted, (row,)))
    return found


def questions(
    known: KnownItem, world: FleetContext, bundled: Mapping[str, str] = MappingProxyType({})
) -> tuple[ItemQuestion, ...] | str:
    """How to ask for an item again, or why that is not possible here; `bundled`: see `bundled_repros`."""
    found: dict[str, ItemQuestion] = {}
    for row in reversed(known.rows):
        if (probe := kept(row)) is not None:
            found.setdefault(repr(probe.steps), ItemQuestion(item=known.item, probe=probe, row=row))
    if found:
        return tuple(found.values())[:SEVERAL]
    one = _from_log(known.item, world, bundled)
    return one if isinstance(one, str) else (one,)


def _from_log(item: ItemRow, world: FleetContext, bundled: Mapping[str, str]) -> ItemQuestion | str:
    if not item.trusted:
        return STRANGER
    names = {item.fingerprint, *item.names}
    for learned in world.learned.all():
        if learned.fingerprint in names:
            return ItemQuestion(item=item, probe=learned.probe, unsure=_without_past(item))
    repro = item.repro or next((bundled[name] for name in sorted(names) if name in bundled), "")
    if not repro:
        return "it has no repro that can be run, and its evidence is not here"
    try:
        calls = _minted(parse_repro(repro))
    except ReproError as error:
        return f"its repro: {error}"
    if isinstance(calls, str):
        return calls
    if probe := _asked_by(calls, names, world):
        return ItemQuestion(item=item, probe=probe, unsure=_without_past(item))
    return by_repro(item, calls)


def by_repro(item: ItemRow, calls: Sequence[ReproCall]) -> ItemQuestion | str:
    """The question that these calls are by themselves, judged by the oracles alone; or why there is none."""
    made = _made(item, calls)
    if isinstance(made, str):
        return made
    known = not (_by_calls(item, calls) or _expected(item.title, calls))
    return ItemQuestion(item=item, probe=made, unsure=_without_past(item) if known else UNKNOWN)


def _without_past(item: ItemRow) -> str:
    return NO_PAST if item.surface == "perf" else ""


def _minted(calls: Sequence[ReproCall]) -> tuple[ReproCall, ...] | str:
    """The calls with `{name}` for a disposable name of the run that wrote them."""
    spelled_out = normalise_repro(calls)
    names = {name for call in calls for name in _RUN_NAME.findall(str(call.args))}
    if _MASKED in spelled_out:
        return "its repro holds what was masked"
    if len(names) > 1:
        return "its repro names several disposable names"
    return tuple(ReproCall(call.tool, _renamed(call.args)) for call in calls)


def _renamed(value: object) -> Any:  # noqa: ANN401  any JSON
    if isinstance(value, str):
        return _RUN_NAME.sub("{name}", value)
    if isinstance(value, Mapping):
        return {key: _renamed(inner) for key, inner in value.items()}
    return [_renamed(inner) for inner in value] if isinstance(value, list | tuple) else value


def _made(item: ItemRow, calls: Sequence[ReproCall]) -> Probe | str:
    """A question of these calls, judged by the oracles alone."""
    for call in calls:
        spec = TOOLS.get(call.tool)
        if spec is None or spec.effect is Effect.REPORT:
            return f"its repro calls {line(call.tool, 48)!r}, which no question may call"
        if bad := bad_args(spec, call.args):
            return f"its repro does not fit {call.tool}: {line(bad, 120)}"
    if item.surface not in get_args(Surface):
        return f"its surface {item.surface!r} is not one of ours"
    surface: Any = item.surface
    return Probe(
        id=f"{NEW}{item.fingerprint}",
        severity=next((one for one in SEVERITIES if one == item.severity), Severity.LOW),
        surface=surface,
        steps=tuple(Step(tool=call.tool, args=dict(call.args)) for call in calls),
        expect="true",
        finding=line(item.title, 300).ljust(8, "."),
    )


def _asked_by(calls: Sequence[ReproCall], names: set[str], world: FleetContext) -> Probe | None:
    """The probe of a persona that makes these calls."""
    bindings, wanted = world.bindings("", ""), normalise_repro(calls)
    for persona in world.personas.values():
        for probe in persona.persona.probe:
            own = [ReproCall(step.tool, bindings.pointed(dict(step.args))) for step in probe.steps]
            surface = probe.surface or persona.persona.surface
            if normalise_repro(own) == wanted or fingerprint(surface, own, "") in names:
                return probe.model_copy(update={"surface": surface})
    return None


def _by_calls(item: ItemRow, calls: Sequence[ReproCall]) -> bool:
    """Whether the item is named by its calls alone, as older entries and those of people are."""
    return fingerprint(item.surface, calls, "") == item.fingerprint


def _expected(title: str, calls: Sequence[ReproCall]) -> bool:
    """Whether a title is of the form that a probe's expectation gives (findings/sighting.py): `call: state`,
    after what is wrong, or alone, as in older entries.

    An oracle's title of nearly this form counts as one too: then the item is not called fixed from here.
    """
    whole = title.rstrip("…. ")
    for call in calls:
        where = clean(lead(call.tool, call.args))
        if where.startswith(whole) or spelled(where).startswith(whole.partition(": ")[2] or whole):
            return True
        cut = "".join(_shortened(word) for word in re.split(r"( )", spelled(where)))
        for asked in (re.compile(f"^{re.escape(where)}: "), re.compile(f": {cut}: ")):
            if found := asked.search(title):
                ends_in = TOOLS[call.tool].ends_in if call.tool in TOOLS else ""
                return ends_in != "status" or _STATE.match(title, found.end()) is not None
    return False


def _shortened(word: str) -> str:
    """The pattern of a word that a title may have cut in its middle (`sighting.titled`)."""
    half = WORD_CHARS // 2 - 1
    if len(word) <= WORD_CHARS:
        return re.escape(word)
    return rf"(?:{re.escape(word)}|{re.escape(word[:half])}\S*…\S*{re.escape(word[-half:])})"


def bundled_repros(runs: Path) -> dict[str, str]:
    """Repros by fingerprint from the evidence of our runs: of items whose repro is too long for the log."""
    paths = sorted(runs.glob("*/evidence/*.json"), key=lambda one: one.stat().st_mtime, reverse=True)
    found: dict[str, str] = {}
    for path in paths[:BUNDLES]:
        try:
            record = load(path.parent, path.stem)
        except (FleetError, ValueError):
            continue
        found.setdefault(str(record.get("fingerprint")), str(record.get("repro", "")))
    return found
