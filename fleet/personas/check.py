"""Rules for a persona beyond its types; each violation names its key."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit

from fleet.findings.fingerprint import fingerprint
from fleet.findings.kinds import kinds
from fleet.findings.proof import TRIES
from fleet.findings.repro import ReproCall
from fleet.personas import cron
from fleet.personas.duration import FORM, MAX_WALL_S, parse_duration
from fleet.personas.frontmatter import Loc
from fleet.personas.model import EVENTS, Persona, PolicySection, Probe, Step, Trigger
from fleet.personas.needs import FORM as FORM_OF_NEEDS
from fleet.personas.needs import bad_need, strings
from fleet.personas.placeholders import FACE, TARGET, mistaken
from fleet.personas.placeholders import FORM as FORM_OF_PLACES
from fleet.text import suggestion
from sandbox.chain.contract import VIEWS
from sandbox.spec import URLS, Effect, Points
from sandbox.tools import TOOLS

DURATION = f"write {FORM}"
WHYS = ("every", "cron", "continuous", "on")
_PATH = re.compile(r"[^\x00-\x1f\x7f]{1,400}")
_HOOK = re.compile(r"[a-z0-9][a-z0-9-]{0,47}")

BadArgs = Callable[[str, Mapping[str, Any]], str | None]
"""`(tool, args)` to why they are invalid for the tool, or None. Strings may hold placeholders."""
Wants = Literal["bool", "number"]
"""What an expectation must be: true or false, or a figure to keep."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Why an expectation cannot be decided; `at` is an offset in its text."""

    message: str
    remedy: str
    at: int = 0


BadExpectation = Callable[[str, Sequence[str], Wants], Sequence[Fault]]
"""`(CEL, the tools of the probe's steps, what is wanted)` to its faults."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What is checked for an author only, and not when a persona is loaded for a run: what the platforms at
    hand name, the roles of `{target:ROLE}` and whether a URL is the platform's, where there is one."""

    roles: Collection[str] | None = None
    has_url: Callable[[str], bool] | None = None
    hosts: str = ""
    """The platform's hosts, for a person."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The context of the checks."""

    tools: Collection[str]
    bad_args: BadArgs
    bad_expectation: BadExpectation
    around: Surroundings | None = None


@dataclass(frozen=True, slots=True)
class Complaint:
    """One violated rule: where, what, and the remedy."""

    loc: Loc
    message: str
    remedy: str = ""
    missing: bool = False  # the key is absent: its table is shown
    text: Loc = ()
    """The string that `at` is an offset in."""
    at: int = 0


def complaints(persona: Persona, stem: str, rules: Rules) -> Iterator[Complaint]:
    """Every violated rule of one persona, in the order of its keys."""
    if persona.name != stem:
        remedy = "a persona is named after its file: rename one of them"
        yield Complaint(("name",), f"{persona.name!r} is in a file called {stem}.md", remedy)
    for index, tool in enumerate(persona.tools):
        if tool not in rules.tools:
            message = f"no tool named {tool!r}{suggestion(tool, rules.tools)}"
            yield Complaint(("tools",), message, f"tools: {', '.join(sorted(rules.tools))}")
        elif tool in persona.tools[:index]:
            yield Complaint(("tools",), f"{tool!r} is granted twice", "name each tool once")
    for index, trigger in enumerate(persona.triggers):
        yield from _trigger(trigger, ("triggers", index))
    yield from _budget(persona)
    if rules.around:
        yield from _idle(persona)
        yield from _too_small(persona)
    yield from _policy(persona.policy)
    for key in ("probe", "explore") if persona.driver in ("retest", "fix") else ():
        if getattr(persona, key):
            yield Complaint((key,), f"the driver {persona.driver} asks no questions of its own", "remove it")
    seen: set[str] = set()
    for index, probe in enumerate(persona.probe):
        if probe.id in seen:
            yield Complaint(
                ("probe", index, "id"), f"{probe.id!r} is used twice", "give each probe its own id"
            )
        seen.add(probe.id)
        if probe.kind and probe.kind not in kinds():
            message = f"no kind of finding named {probe.kind!r}{suggestion(probe.kind, kinds())}"
            yield Complaint(("probe", index, "kind"), message, "`fleet items kinds` lists them")
        yield from _probe(probe, ("probe", index), persona.tools, rules)
    yield from _twins(persona)


def _twins(persona: Persona) -> Iterator[Complaint]:
    """Two probes with the same steps would be one finding: the first one seen hides the other."""
    first: dict[str, str] = {}
    for index, probe in enumerate(persona.probe):
        if any(_not_json(step.args) for step in probe.steps):
            continue  # reported on its own
        calls = [ReproCall(step.tool, step.args) for step in probe.steps]
        name = fingerprint(probe.surface or persona.surface, calls, "")
        if name in first:
            message = f"{probe.id!r} takes the same steps as {first[name]!r}"
            yield Complaint(("probe", index, "steps"), message, "change the steps, or join the expectations")
        first.setdefault(name, probe.id)


def _trigger(trigger: Trigger, loc: Loc) -> Iterator[Complaint]:
    given = [why for why in WHYS if getattr(trigger, why) is not None]
    if len(given) != 1:
        found = " and ".join(given) or "none of them"
        yield Complaint(
            loc, f"exactly one of {', '.join(WHYS)} is needed, found {found}", "split the trigger"
        )
        return
    for key in ("every", "continuous", "backoff"):
        text = getattr(trigger, key)
        if text is not None and _seconds(text) is None:
            yield Complaint((*loc, key), f"{text!r} is not a duration", DURATION)
    if trigger.backoff is not None and trigger.continuous is None:
        yield Complaint((*loc, "backoff"), "only a continuous trigger backs off", "remove it")
    elif trigger.backoff is not None:
        longest, pause = _seconds(trigger.backoff), _seconds(trigger.continuous or "")
        if longest is not None and pause is not None and longest < pause:
            yield Complaint((*loc, "backoff"), "is shorter than continuous", "it is the longest pause")
    if trigger.cron is not None:
        try:
            cron.parse_cron(trigger.cron)
        except ValueError as error:
            yield Complaint((*loc, "cron"), str(error), cron.FORM)
    if trigger.on is not None and (why := _not_event(trigger.on)):
        yield Complaint((*loc, "on"), why, f"events: {', '.join(EVENTS)}, file:<path>, hook:<name>")


def _not_event(text: str) -> str | None:
    if text in EVENTS:
        return None
    kind, colon, rest = text.partition(":")
    if kind == "file" and colon:
        return None if _PATH.fullmatch(rest) else f"{rest!r} is not a path"
    if kind == "hook" and colon:
        return None if _HOOK.fullmatch(rest) else f"{rest!r} is not a name of a hook"
    return f"no event named {text!r}{suggestion(text, EVENTS)}" if text.strip() else "names no event"


def _budget(persona: Persona) -> Iterator[Complaint]:
    acting = [tool for tool in persona.tools if tool in TOOLS and TOOLS[tool].effect is Effect.ACT]
    steps = [step for probe in persona.probe for step in probe.steps if step.tool in TOOLS]
    acting += [step.tool for step in steps if TOOLS[step.tool].effect_of(step.args) is Effect.ACT]
    if persona.budget is None:
        if acting:
            remedy = "add budget = { calls = 50, writes = 5 }"
            yield Complaint(("tools",), f"{acting[0]} acts on the platform and needs a budget", remedy)
        return
    seconds = _seconds(persona.budget.wall)
    if seconds is None or seconds > MAX_WALL_S:
        message = f"{persona.budget.wall!r} is not a duration of at most a day"
        yield Complaint(("budget", "wall"), message, DURATION)


def _idle(persona: Persona) -> Iterator[Complaint]:
    """A persona that no trigger starts, and that has nothing to ask if a person does."""
    asks = persona.probe or persona.explore or persona.outages or (persona.budget and persona.budget.tokens)
    if not (asks or persona.triggers) and persona.driver in ("auto", "playbook"):
        message = "has no probe, no explorer and no trigger: it can never do anything"
        yield Complaint(("probe",), message, 'add a [[probe]], or explore = ["web"]', missing=True)


def _too_small(persona: Persona) -> Iterator[Complaint]:
    """A budget that does not pay for every step of every probe once, and `TRIES` times more for a proof."""
    steps = [step for probe in persona.probe for step in probe.steps if step.tool in TOOLS]
    acting = [TOOLS[step.tool] for step in steps if TOOLS[step.tool].effect_of(step.args) is Effect.ACT]
    looks = 1 + TRIES
    needed = {"calls": len(steps) * looks, "writes": sum(max(1, one.cost.writes) for one in acting) * looks}
    for unit, least in needed.items() if persona.budget else ():
        if (given := getattr(persona.budget, unit)) < least:
            message = f"{given} {unit} do not cover its probes: one look and {TRIES} proofs take {least}"
            remedy = f"write {unit} = {least} or more, or remove probes"
            yield Complaint(("budget", unit), message, remedy, missing=not given)


def _policy(policy: PolicySection) -> Iterator[Complaint]:
    """fharness's three rules of a run policy, in its words, and a deadline that can be read."""
    features = policy.max_features_per_run
    if policy.max_turns_per_run < 1:
        message = "run policy requires max_turns_per_run >= 1"
        yield Complaint(("policy", "max_turns_per_run"), message, "a run without turns does nothing")
    if policy.mode == "strict_incremental" and features not in (None, 1):
        message = "run policy strict mode requires max_features_per_run = 1"
        yield Complaint(("policy", "max_features_per_run"), message, "leave it out, or choose bounded_batch")
    if policy.mode == "bounded_batch" and (features is None or features < 1):
        message = "run policy bounded-batch mode requires max_features_per_run >= 1"
        loc = ("policy", "mode" if features is None else "max_features_per_run")
        yield Complaint(loc, message, "say how many, or choose unlimited_batch")
    if policy.retry_budget < 0:
        yield Complaint(("policy", "retry_budget"), "a budget below 0", "0 means no second look")
    seconds = _seconds(policy.turn_timeout)
    if seconds is None or seconds > MAX_WALL_S:
        message = f"{policy.turn_timeout!r} is not a duration of at most a day"
        yield Complaint(("policy", "turn_timeout"), message, DURATION)


def _probe(probe: Probe, loc: Loc, granted: Collection[str], rules: Rules) -> Iterator[Complaint]:
    for index, step in enumerate(probe.steps):
        here = (*loc, "steps", index)
        if step.tool not in granted:
            message = f"{step.tool!r} is not granted{suggestion(step.tool, granted)}"
            yield Complaint((*here, "tool"), message, f"granted: {', '.join(granted) or 'nothing'}")
            continue
        why = _not_json(step.args) or rules.bad_args(step.tool, step.args)
        if why:
            yield Complaint(
                (*here, "args"), f"not valid for {step.tool}: {why}", f"fleet personas tools {step.tool}"
            )
        yield from _misplaced(step, (*here, "args"), rules.around)
    for need in probe.needs:
        if why := bad_need(need):
            yield Complaint((*loc, "needs"), why, f"needs: {FORM_OF_NEEDS}")
    tools = [step.tool for step in probe.steps]
    expressions: list[tuple[str, Wants, Loc]] = [(probe.expect, "bool", ("expect",))]
    expressions += [(probe.control, "bool", ("control",))] if probe.control else []
    expressions += [(text, "number", ("note", metric)) for metric, text in probe.note.items()]
    for text, wants, key in expressions:
        for fault in rules.bad_expectation(text, tools, wants):
            where = (*loc, *key)
            yield Complaint((*loc, key[0]), fault.message, fault.remedy, text=where, at=fault.at)


def _misplaced(step: Step, loc: Loc, around: Surroundings | None) -> Iterator[Complaint]:
    """Placeholders, targets and hosts in a call's arguments that do not exist."""
    spec = TOOLS[step.tool]
    points = spec.points_at or {}
    for name, value in step.args.items():
        pointing = name in points or name in (spec.acts_on, spec.mints)
        for text in strings(value):
            direct = (*loc, name) if text is value else ()
            roles = around.roles if around else None
            for at, why in mistaken(text, points=pointing, roles=roles):
                yield Complaint(loc, why, FORM_OF_PLACES, text=direct, at=at)
        if around and points.get(name) is Points.VIEW_OR_NONE and value and value not in VIEWS:
            message = f"no view named {value!r}{suggestion(str(value), VIEWS)}"
            yield Complaint(loc, message, f"views: {', '.join(VIEWS)}", text=(*loc, name))
        is_page = points.get(name) in URLS
        if not (around and around.has_url and is_page and value) or value.startswith("{"):
            continue
        filled = FACE.sub("x", TARGET.sub("x", value.replace("{name}", "x").replace("{run}", "x")))
        if not around.has_url(filled):
            host = urlsplit(value).netloc or value
            remedy = f"write {{site}} or another placeholder; hosts: {around.hosts}"
            yield Complaint(loc, f"{host!r} is not a host of the platform", remedy, text=(*loc, name))


def _seconds(text: str) -> float | None:
    try:
        return parse_duration(text)
    except ValueError:
        return None


def _not_json(args: Mapping[str, Any]) -> str | None:
    """TOML knows dates and infinities; a request line does not."""
    try:
        json.dumps(args, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return "only strings, finite numbers, booleans, arrays and tables can be sent to a tool"
    return None
