"""What a run saw that a person should know, and is no finding: orders to machines, asking out of scope."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from statistics import median
from typing import Any

from anyio import to_thread

from fleet.broker.egress_read import OUT_OF_SCOPE, refused
from fleet.broker.egress_record import EgressRecord
from fleet.clock import iso
from fleet.config.escalation import Trigger
from fleet.config.notify import SightingKind
from fleet.events.model import InstructionSeen
from fleet.files import write_atomic
from fleet.findings.disclosure import draft
from fleet.findings.instructions import in_result, texts_of
from fleet.findings.personal import HELD, laws, personal
from fleet.findings.redact import mask
from fleet.findings.traces import DO, traces
from fleet.gate.impact import FILE, shape_of
from fleet.runs.call.targets import first_page, path_of, target_of
from fleet.runs.context import FleetContext
from fleet.text import line
from sandbox.tools import TOOLS

DRAFTS, CONFIDENTIAL = "drafts", "confidential"
SIGHTED = "sighted:"
"""Prefix of the journal's facts, by platform, kind of notice and place: each is reported once."""
SLOW_MS = 100.0
"""Longest judgement of one request's scope that is not told."""
STRANGERS = frozenset({"page", "view", "reply", "mcp"})
"""What answers are judged as that are another's words alone: those of accounts have our own sessions."""
_MASKED = re.compile(r"\[redacted:([a-z-]+)\]")
_NO_SECRETS = ("not-public", "too-deep", "unknown-type")
"""Masks of what is left out by its shape, whatever it holds."""
SLOW_ANSWERS = 3
"""Answers of one host that did not end in time, after which it may be a trap."""
_ENDLESS = frozenset({"bytes", "too-large"})
_WIDGET = (
    r"g-recaptcha|h-captcha|cf-turnstile|cf-chl-|/challenge-platform/|px-captcha|captcha-delivery\.com"
    r"|_Incapsula_Resource|awswaf|friendlycaptcha|frc-captcha"
)
_FORM = re.compile(_WIDGET, re.IGNORECASE)
_WALL = re.compile(
    _WIDGET + r"|captcha|(?:verify|prove|confirm) (?:that )?you(?:'re| are) (?:a )?human|are you a robot"
    r"|automated (?:access|requests|queries|traffic)|unusual traffic|checking your browser"
    r"|enable javascript and cookies|bot (?:detected|detection|traffic)|(?:un)?supported browser",
    re.IGNORECASE,
)
"""What shows a form's challenge, and on a page that refuses a visitor why it does."""
_CHALLENGED = 20_000
"""Characters of an answer in which a challenge is looked for."""
_REFUSES = frozenset({403, 406})
_SAYS_SO = ("cf-mitigated", "x-amzn-waf-action")
_BLOCKED = frozenset({401, 403, 405, 429, 503})
MOST = 20
"""Places of one kind that a run keeps: a hostile page can name any number of them."""
LATEST, COMPARED = 500, 20
"""Latest runs of all personas that are looked at, and of one persona those that are compared."""
FEWEST, TIMES, LEAST = 5, 3.0, 10_000
"""Unusual use of a model: beside so many earlier runs, so many times their median and so many tokens more."""
TOO_MANY = 429
FENCES = frozenset({"scope", "never"})
"""Rules of the gate that a call breaks only by asking for what is not in scope."""


async def _model_use(world: FleetContext, run: str) -> str:
    """Why a run's use of a model is unusual; "" without one, or where it is as usual."""
    if not (tokens := (await world.journal.spent(run)).get("tokens", 0)):
        return ""
    mine = (await world.journal.run(run)).persona
    rows = await world.journal.runs(LATEST)
    before = [row.run_id for row in rows if row.persona == mine and row.run_id != run]
    spent = await world.journal.spent_by(before[:COMPARED])
    return unusual(tokens, [some for one in spent.values() if (some := one.get("tokens", 0))])


def unusual(tokens: int, earlier: Sequence[int]) -> str:
    """Why the use of a model in one run is unusual beside earlier runs of its persona; "" where it is not."""
    usual = median(earlier) if len(earlier) >= FEWEST else 0.0
    if not usual or tokens <= max(TIMES * usual, usual + LEAST):
        return ""
    return (
        f"a run used {tokens} tokens of the model, {tokens / usual:.1f} times as many as usual ({usual:.0f})"
    )


def confidential(args: Mapping[str, Any], result: Mapping[str, Any]) -> str:
    """What makes the text of an answer one that only the vault keeps: it is a file that is not for visitors,
    or says so itself; "" for any other."""
    text = str(result.get("text") or "")
    if not text or not result.get("ok"):
        return ""
    marks = sorted(personal(text).keys() - HELD)
    return "file" if shape_of(args) == FILE else next(iter(marks), "")


def without_text(args: Mapping[str, Any], result: Mapping[str, Any]) -> Mapping[str, Any]:
    """A result as a record may have it where its text is confidential."""
    return {**result, "text": mask(CONFIDENTIAL)} if confidential(args, result) else result


def _page(args: Mapping[str, Any]) -> str:
    return str(args.get("url", "")).rstrip("/")


def challenge(result: Mapping[str, Any]) -> tuple[str, bool]:
    """What an answer asks of a visitor to prove that it is a person, "" for nothing; and whether the visitor
    is kept out by it, as opposed to one form that asks."""
    blocked, sent = result.get("status") in _BLOCKED, result.get("headers")
    shape = _WALL if blocked else _FORM
    found = shape.search(str(result.get("text") or "")[:_CHALLENGED])
    said = [str(sent[name]) for name in _SAYS_SO if sent.get(name)] if isinstance(sent, Mapping) else []
    return (said or [found[0] if found else ""])[0], bool(said) or (blocked and found is not None)


class Sightings:
    """Of one run, by kind and place, in words; the first at each place counts. `permitted` are kinds of other
    people's data that the tests may see."""

    def __init__(self, permitted: Collection[str] = ()) -> None:
        self._permitted = frozenset(permitted)
        self.found: dict[tuple[SightingKind, str], str] = {}
        self.kinds: dict[tuple[SightingKind, str], tuple[str, ...]] = {}
        """Of what is sensitive, what it looks like."""
        self.grave: list[tuple[Trigger, str, str]] = []
        """What a person may have to decide on now: why, where, and in words."""
        self.walled: dict[str, str] = {}
        """Pages that keep machines out, and hosts whose first page does: nothing more is asked there."""
        self._unended: Counter[str] = Counter()

    def wall(self, tool: str, args: Mapping[str, Any]) -> str:
        """Why a page is not asked again, or its whole host; "" where it may be.

        A page that refuses one attack says nothing of the others: the first one speaks for its host."""
        return self.walled.get(target_of(tool, args)) or self.walled.get(path_of(tool, args), "")

    def answered(
        self, call: int, tool: str, args: Mapping[str, Any], result: Mapping[str, Any]
    ) -> InstructionSeen | None:
        """The event of an answer that speaks to a machine, where that place has not spoken before."""
        place = target_of(tool, args)
        first = first_page(tool, args).removesuffix("/") == _page(args)
        page = place if first else path_of(tool, args)
        asks, wall = ("", False) if self.wall(tool, args) else challenge(result)
        if wall:
            self.walled[page] = f"{page} keeps machines out ({line(asks, 80)}): not asked again in this run"
            self.note("challenge", place, self.walled[page], "challenge")
        elif asks:
            self.note("challenge", place, f"has a challenge to machines ({line(asks, 80)}), never answered")
        elif result.get("status") in _REFUSES and first:
            self.note("challenge", place, "refuses its first page: it may admit browsers only")
        if ("instruction", place) in self.found or (sighting := in_result(result)) is None:
            return None
        signs = ", ".join(sighting.signs)
        quote = line(sighting.quote, 160)
        if not self.note(
            "instruction", place, f"reads like an order to a machine ({signs}): {quote}", "instruction"
        ):
            return None
        return InstructionSeen(call=call, tool=tool, place=place, signs=sighting.signs, quote=quote)

    def shown(self, tool: str, args: Mapping[str, Any], result: object, masked: object) -> bool:
        """What an answer shows that looks like a credential (a leak, or a bait: masked, and never used), or
        like other people's data; whether something of it was masked."""
        spec, place = TOOLS.get(tool), target_of(tool, args)
        kinds = Counter[str]()
        if result != masked:
            kinds = Counter(_MASKED.findall(json.dumps(masked))) - Counter(
                _MASKED.findall(json.dumps(result))
            )
        for shape in _NO_SECRETS:
            del kinds[shape]
        masks = bool(kinds)
        kinds = Counter({kind: count for kind, count in kinds.items() if kind not in HELD})
        if spec is None or STRANGERS.isdisjoint(spec.judged_as):
            return masks
        text = "\n".join(texts_of(result, 8))
        if signs := [] if ("break-in", place) in self.found else traces(text):
            what = f"shows traces of a break-in or a crime ({', '.join(signs)}); {DO}"
            self.note("break-in", place, what, "break-in")
        known = ("sensitive-data", place) in self.found
        people = {} if known else {k: n for k, n in personal(text).items() if k not in self._permitted}
        if people:
            seen = ", ".join(f"{kind} ({count})" for kind, count in sorted(people.items()))
            what = (
                f"shows what looks like other people's data: {seen}; may fall under {', '.join(laws(people))}"
            )
            self.note("sensitive-data", place, what, "sensitive-data")
            self.kinds["sensitive-data", line(place, 120)] = tuple(people)
        if kinds:
            what = f"shows what looks like a credential ({', '.join(sorted(kinds))}): masked, and never used"
            self.note("credential", place, what, "credential")
            self.kinds["credential", line(place, 120)] = tuple(kinds)
        return masks

    def refused(self, rule: str, place: str, why: str) -> None:
        """A call that the gate refused."""
        if rule in FENCES:
            self.note("fence", f"{rule} {place}", why, "scope")

    def requested(self, record: EgressRecord) -> None:
        """A request that the broker refused, that took long to judge, or that met a critical host."""
        if record.rule in OUT_OF_SCOPE:
            said = f"a request of a jail to {record.host}"
            self.note("fence", f"{record.rule} {record.host}", said, "scope")
        if record.status == TOO_MANY and (not record.rule or record.rule == "busy"):
            said = "answered 429" if not record.rule else "no turn in time: more was asked than it may be"
            self.note("strain", f"rate {record.host}", said)
        if record.moved:
            self.note("drift", record.moved, "nobody has confirmed that it is the same system", "drift")
        if record.rule == "timeout" and record.received:
            self._unended[record.host] += 1
            if self._unended[record.host] >= SLOW_ANSWERS:
                said = f"{SLOW_ANSWERS} answers did not end in time; {record.received} bytes of the last came"
                self.note("trap", f"slow {record.host}", f"{said} in {record.ms / 1000:.0f} s", "trap")
        if record.rule in _ENDLESS:
            said = f"answers without an end: cut after {record.received} bytes"
            self.note("trap", f"endless {record.host}", said, "trap")
        if record.judged_ms > SLOW_MS:
            slow = f"whether it is in scope took {record.judged_ms:.0f} ms to judge, more than {SLOW_MS:.0f}"
            self.note("fence", f"slow {record.host}", slow)
        if record.criticality == "critical" and not refused(record.rule):
            self.note("fence", f"critical {record.host}", "a critical host is tested, as its profile permits")

    def note(self, kind: SightingKind, place: str, what: str, trigger: Trigger | None = None) -> bool:
        """Keep one, unless it is known or there are too many; a person may have to decide on a `trigger`."""
        if (kind, place) in self.found or sum(one == kind for one, _ in self.found) >= MOST:
            return False
        self.found[kind, line(place, 120)] = what
        if trigger:
            self.grave.append((trigger, place, what))
        return True

    async def keep(self, world: FleetContext, run: str) -> None:
        """Write what is new on this platform into the journal, for the notices; and whether this run used a
        model more than the earlier ones of its persona."""
        if why := await _model_use(world, run):
            self.note("model-use", f"run {run}", why)
        for (kind, place), what in self.found.items():
            key = f"{SIGHTED}{world.platform.name}:{kind}:{world.redactor.text(place)}"
            if not world.trial and await world.journal.get(key) is None:
                told = {"run": run, "at": iso(world.clock.now()), "what": world.redactor.text(what)}
                await world.journal.put(key, json.dumps(told), run=run)
                await to_thread.run_sync(self._draft, world, run, (kind, place))

    def _draft(self, world: FleetContext, run: str, seen: tuple[SightingKind, str]) -> None:
        """What those who ordered the tests are told of sensitive data, for a person to send."""
        if seen not in self.kinds:
            return
        shown, at = world.redactor.text, iso(world.clock.now())
        text = draft(world.platform.name, run, shown(seen[1]), shown(self.found[seen]), self.kinds[seen], at)
        folder = world.folder(run) / DRAFTS
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_atomic(folder / f"{seen[0]}-{len(list(folder.iterdir())) + 1}.md", text.encode())
