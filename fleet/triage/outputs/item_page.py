"""What a person needs to know of one item, once, for all outputs. Pure.

What is wrong · where · expected and observed · why it matters · how to reproduce · how it is usually fixed ·
how it was proven · pictures. The item's life and links are fields of the item itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal
from urllib.parse import urlsplit

from fleet.clock import span
from fleet.findings import expected
from fleet.findings.kinds import kind_of, kind_titled, kinds, link
from fleet.findings.repro import ReproCall, ReproError, parse_repro
from fleet.findings.sighting import lead, spelled
from fleet.store.rows import FindingRow
from fleet.text import clean, counted, line
from fleet.triage.items.worklist import WorklistItem
from fleet.triage.outputs.repro_shell import ShellPlace, script
from sandbox.spec import Points
from sandbox.tools import TOOLS

SHOWN = 2_000
"""Characters of a whole request, and of a whole answer."""
PAGES = 3
"""Pages that are named of those which accounts were asked for."""
_SINCE = re.compile(r" since \d{4}-\d\d-\d\dT[0-9:]+Z")
_SILENT: tuple[object, ...] = ("", None, [], {}, 0, False, "[redacted:not-public]")
"""Values of a field that a whole answer is shown without."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecidingField:
    """One field of the answer that decides: what a healthy platform answers, what this one did, and what it
    is compared with, such as a control; "" for what is not known."""

    name: str
    expected: str = ""
    observed: str = ""
    compared: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownExchange:
    """One call and its answer, masked when they were kept, cut here."""

    call: str
    request: str
    response: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A screenshot of the page, or a plot of what was measured. `data` is base64."""

    name: str
    type: Literal["image/png", "image/svg+xml"]
    data: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemPage:
    """The page. `kind` is an id of `fleet items kinds`, "" for a finding in a probe's own words."""

    kind: str = ""
    wrong: str = ""
    where: tuple[str, ...] = ()
    expected: str = ""
    observed: str = ""
    fields: tuple[DecidingField, ...] = ()
    why: str = ""
    fix: str = ""
    references: tuple[tuple[str, str], ...] = ()
    """Each with its page, where it has one."""
    script: str = ""
    """For bash; it shows the defect by itself."""
    exchanges: tuple[ShownExchange, ...] = ()
    proof: tuple[str, ...] = ()
    pictures: tuple[Picture, ...] = field(default=(), repr=False)


NO_PAGES: Mapping[str, ItemPage] = MappingProxyType({})


def item_page(
    title: str,
    repro: str,
    place: ShellPlace,
    *,
    row: FindingRow | None = None,
    bundle: Mapping[str, Any] | None = None,
    pictures: tuple[Picture, ...] = (),
) -> ItemPage:
    """The page of an item with this title and repro. `row` is a finding of this machine with its evidence
    `bundle`; without them it says what kind and repro say."""
    data: Mapping[str, Any] = row.data if row else {}
    probe: Mapping[str, Any] = data.get("probe") or {}
    named = kinds().get(str(probe.get("kind", "")))
    kind = kind_of(str(data.get("oracle", ""))) or named or kind_titled(title)
    expectation = "" if data.get("oracle") else str(probe.get("expect", ""))
    steps: Sequence[Mapping[str, Any]] = bundle.get("steps", ()) if bundle else ()
    seen = spelled(str(data.get("seen", ""))) or title.partition(": ")[2] or title
    healthy = kind.healthy if kind else _healthy(str(probe.get("finding", "")))
    notes = [line(title, 300), *([line(f"expected: {healthy}", 300)] if healthy else [])]
    notes.append(line(f"observed: {seen}", 300))
    try:
        calls = parse_repro(repro) if repro else ()
    except ReproError:
        calls = ()
    # without a profile the evidence still has the addresses as they were
    asked = calls if place.site or not steps else [ReproCall(one["tool"], one["args"]) for one in steps]
    return ItemPage(
        kind=kind.id if kind else "",
        wrong=kind.wrong if kind else line(str(probe.get("finding", "")), 300),
        where=tuple(dict.fromkeys(one for call in asked for one in _where(call, place))),
        expected=healthy,
        observed=line(seen, 500),
        fields=tuple(_fields(expectation, kind.expected if kind else {}, data.get("fields", ()), steps)),
        why=kind.why if kind else "",
        fix=kind.fix if kind else "",
        references=tuple((one, link(one)) for one in kind.references) if kind else (),
        script=script(repro, place, notes),
        exchanges=tuple(_exchange(step) for step in steps),
        proof=tuple(_proof(row, probe, bundle)),
        pictures=pictures,
    )


def also_seen(item: WorklistItem) -> tuple[str, ...]:
    """Where else an item was met, how often, first and last."""
    more = (f"{counted(item.more, 'more place')}",) if item.more else ()
    return (*map(str, item.also), *more)


def life(
    item: WorklistItem, now: str = "", more: Iterable[tuple[str, str]] = ()
) -> tuple[tuple[str, str], ...]:
    """What happened to an item, in order: a time to the minute, which is said once, and words. `now` ends the
    last stage; `more` are other times (ISO) with their words."""
    ends = (*(one.at for one in item.stages[1:]), now)
    happened = []
    for one, end in zip(item.stages, ends, strict=False):
        lasted = f" for {span(one.at, end)}" if end else ""
        happened.append((one.at, f"{one.state}{lasted}{f' by {one.by}' if one.by else ''}"))
    happened += more
    known = {at[:16] for at, _ in happened}
    for at, words in (
        (item.first_seen, "first seen"),
        (item.since, item.state),
        (item.last_seen, "last seen"),
    ):
        if at and at[:16] not in known:
            known.add(at[:16])
            happened.append((at, words))
    happened.sort(key=lambda one: one[0])
    before = ("", *(at[:16] for at, _ in happened))
    return tuple(
        ("" if at[:16] == last else at[:16].replace("T", " "), words)
        for (at, words), last in zip(happened, before, strict=False)
    )


def waits(item: WorklistItem) -> str:
    """What an item waits for; its life says since when."""
    return _SINCE.sub("", item.stuck)


def _healthy(finding: str) -> str:
    """What a probe's own sentence says was expected, after its last `;` or `,`."""
    _, sign, words = finding.replace(",", ";").rpartition(";")
    if not sign or "expected" not in words:
        return ""
    words = re.sub(r"\s+(?:was|were)\s+expected\b$|^expected\s+", "", words.strip(" ."))
    return line(f"{words[:1].upper()}{words[1:]}.", 300)


def _where(call: ReproCall, place: ShellPlace) -> Iterable[str]:
    """The places that a call looks at, in full: URLs, an agent and its address, a contract."""
    if rows := _rows(call.args):
        at = urlsplit(place.url(str(call.args.get("url", ""))))
        pages = dict.fromkeys(
            f"{how} {at.scheme}://{at.netloc}{_page({'url': path})}" for _, how, path, _ in rows
        )
        yield from (line(page, 500) for page in list(pages)[:PAGES])
        if len(pages) > PAGES:
            yield counted(len(pages) - PAGES, "more page")
    else:
        yield _place(call, place)


def _rows(args: Mapping[str, Any]) -> list[tuple[str, str, str, Any]]:
    """What accounts were asked one after another: who, method, path, body."""
    steps = args.get("steps")
    rows = steps if isinstance(steps, list | tuple) else ()
    return [
        (str(one[0]), str(one[1]), str(one[2]), one[3])
        for one in rows
        if isinstance(one, list | tuple) and len(one) == 4
    ]


def _place(call: ReproCall, place: ShellPlace) -> str:
    spec, args = TOOLS.get(call.tool), call.args
    if isinstance(url := args.get("url"), str):
        return line(f"{args.get('method', 'GET')} {place.url(url)}", 500)
    asked = line(lead(call.tool, args), 200)
    if spec is None:
        return asked
    agent = str(args.get(spec.argument(Points.AGENT), ""))
    if agent and (called := place.agents.get(agent, place.proxy)):
        return line(f"agent {agent} at {called}", 500)
    return f"{asked}, contract {place.diamond}" if spec.reaches == "node" and place.diamond else asked


def _fields(
    expectation: str,
    healthy: Mapping[str, str],
    deciding: Iterable[str],
    steps: Sequence[Mapping[str, Any]],
) -> Iterable[DecidingField]:
    """The fields that decide, as the last call that has them answered; before it a control may have.

    What is expected of each is the expectation's word, or what the kind says is `healthy`.
    """
    wanted = expected.expected(expectation)
    for name in dict.fromkeys((*wanted, *deciding)):
        having = [step for step in steps if name in step["result"]]
        if not having and name not in wanted:
            continue
        observed, other = "", None
        if having:
            last: Mapping[str, Any] = having[-1]["result"]
            earlier = [one["result"][name] for one in having[:-1] if _alike(one, having[-1])]
            other = last.get(f"control_{name}") or (earlier[0] if earlier else None)
            observed = expected.seen(name, last[name])
        yield DecidingField(
            name=expected.named(name),
            expected=wanted.get(name) or healthy.get(name, ""),
            observed=observed,
            compared="" if other is None else expected.seen(name, other),
        )


def _alike(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two calls ask the same of one place, so that their answers compare: a control does."""
    asked = ((step["tool"], step["args"].get("target"), _page(step["args"])) for step in (one, other))
    return len({*asked}) == 1


def _page(args: Mapping[str, Any]) -> str:
    return str(args.get("url", "")).partition("?")[0]


def _exchange(step: Mapping[str, Any]) -> ShownExchange:
    tool, args, result = str(step["tool"]), step["args"], step["result"]
    if rows := _rows(args):
        request = [f"{name}: {_plain(value)}" for name, value in args.items() if name != "steps"]
        request += [
            "",
            *(
                f"{who}: {how} {path} {_plain(body) if body else ''}".rstrip()
                for who, how, path, body in rows
            ),
        ]
    elif "url" in args:
        request = [f"{args.get('method', 'GET')} {args['url']}"]
        request += [f"origin: {args['origin']}"] if args.get("origin") else []
        request += [f"{name}: {value}" for name, value in _pairs(args.get("headers"))]
        request += ["", str(args.get("body") or args.get("fields") or "")]
    else:
        request = [tool, *(f"{name}: {_plain(value)}" for name, value in args.items())]
    response = [f"HTTP {result['status']}"] if result.get("status") else []
    if rows and isinstance(answers := result.get("answers"), list | tuple):
        response = [
            f"{who}: {how} {path} answers {_answer(got)}"
            for (who, how, path, _), got in zip(rows, answers, strict=False)
            if isinstance(got, Mapping)
        ]
    elif "headers" in result:  # a page: what the fleet measured of it is no part of its answer
        response += [f"{name}: {value}" for name, value in _pairs(result["headers"])]
        response += ["", str(result.get("text") or "")]
    else:
        response += [
            f"{name}: {_plain(value)}"
            for name, value in result.items()
            if name != "status" and value not in _SILENT
        ]
    return ShownExchange(
        call=line(lead(tool, args), 200),
        request=clean("\n".join(request), SHOWN, newlines=True).strip(),
        response=clean("\n".join(response), SHOWN, newlines=True).strip(),
    )


def _answer(got: Mapping[str, Any]) -> str:
    """The status of a row's answer, and what was noticed in it."""
    noticed = [
        f"{name} {_plain(value)}" for name, value in got.items() if name != "status" and value not in _SILENT
    ]
    return "; ".join([str(got.get("status", "nothing")), *noticed])


def _pairs(value: object) -> list[tuple[str, str]]:
    return [(str(name), str(one)) for name, one in value.items()] if isinstance(value, Mapping) else []


def _plain(value: object) -> str:
    return value if isinstance(value, str) else expected.seen("", value)


def _proof(
    row: FindingRow | None, probe: Mapping[str, Any], bundle: Mapping[str, Any] | None
) -> Iterable[str]:
    """How often it was shown, under which control, on what machine, and where the evidence is."""
    if row is None:
        return
    if row.tries:
        yield f"Shown in {row.confirmed} of {counted(row.tries, 'try', 'tries')}, each in a fresh jail."
    if probe.get("control"):
        yield f"Judged only while its control held: {line(str(probe['control']), 300)}"
    bundle = bundle or {}
    steps: Sequence[Mapping[str, Any]] = bundle.get("steps", ())
    if len(steps) > 1:
        others = ", ".join(dict.fromkeys(line(lead(one["tool"], one["args"]), 120) for one in steps[:-1]))
        yield f"The last call is judged with those before it: {others}."
    if load := str(bundle.get("load", "")):
        yield f"The machine then: {load}."
    if row.evidence:
        yield f"Evidence: sha256:{row.evidence}"
