"""What people read of a finding: its kind, its place and one observation, in words and units of their own.

`fleet items kinds` has the kinds; the observations are those of the oracles' own examples.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from fleet.files import ROOT
from fleet.findings.field_words import FIELD_WORDS, in_words
from fleet.findings.kinds import kind_of, kinds
from fleet.findings.sighting import mentioned, of_probe, titled
from fleet.oracles.chain.fourbyte import spoken
from fleet.oracles.model import Exchange, Oracle
from fleet.oracles.table import ORACLES
from fleet.personas.load import LoadedPersona, load_all
from fleet.personas.model import BudgetSection, Persona, Probe, Step
from fleet.runs.proof.candidates import answered
from sandbox.tools import TOOLS

PERSONA = LoadedPersona(
    persona=Persona.model_construct(
        name="qa-ux",
        surface="ux",
        tools=(),
        probe=(),
        driver="auto",
        budget=BudgetSection(calls=5),
        triggers=(),
    ),
    body="",
    sha256="0" * 64,
    path=Path("qa-ux.md"),
)
FIELDS = sorted({field.name for spec in TOOLS.values() for field in fields(spec.result)})
PYTHON = re.compile(r"\['|'\]|\bTrue\b|\bFalse\b|\bNone\b|\{'|\bb'|', '")
PLACEHOLDER = re.compile(r"\{(?:site|proxy|name|value|face\b[^}]*|hex|n|one-[a-z]+)\}")
CUT_SHORT = frozenset({"held-by-another"})
"""Of these the longest words are cut even in the example."""
BY_A_DOCUMENT = frozenset({"reserved-open", "stated-range", "stated-views"})
"""Their functions have a name in a document alone."""
LONG = "{site}/handbook/of/the/garden/with/beds/and/trees/and/walls/entries/"


def asked(oracle: Oracle, site: str) -> list[Exchange]:
    """The question of an example, to an agent with a name of several letters, at pages below `site`."""
    if oracle.given.past:
        return list(oracle.example)

    def written(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {key: written(inner) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [written(inner) for inner in value]
        return value.replace("{site}/", site) if isinstance(value, str) else value

    named = [
        {**written(one.args), **({"target": "claude"} if "target" in one.args else {})}
        for one in oracle.example
    ]
    return [replace(one, args=args) for one, args in zip(oracle.example, named, strict=True)]


def titles(oracle: Oracle, seen: Sequence[Exchange]) -> list[str]:
    """The titles that an oracle gives to a question, by the way that they take to the worklist."""
    steps = [Step(tool=one.tool, args=dict(one.args)) for one in seen]
    found = answered(steps, [one.result for one in seen], oracle.given)
    return [one.row("run1", PERSONA).title for one in found if one.oracle == oracle.id]


def places(seen: Sequence[Exchange]) -> Iterator[str]:
    """What names the place in a question: a page's path, an agent, a function, the program."""
    for one in seen:
        yield from ("compiler", "loader") if "program" in one.kinds else ()
        yield from ("publish",) if "publication" in one.kinds else ()
        yield str(one.args.get("url", "")).removeprefix("{site}").partition("?")[0]
        yield str(one.args.get("target", ""))
        yield f"agent {one.args.get('agent', '')}"
        yield from (str(step[2]).partition("?")[0] for step in one.args.get("steps", ()))
        called = " ".join(map(str, (*one.args.get("watch", ()), one.args.get("simulate", ""))))
        for selector in re.findall(r"0x[0-9a-f]{8}\b|[A-Za-z]\w+(?=\()", called):
            yield spoken(selector).partition("(")[0]


@pytest.mark.parametrize("oracle", ORACLES, ids=lambda one: one.id)
def test_a_title_names_its_kind_its_place_and_what_was_seen(oracle: Oracle) -> None:
    kind, seen = kind_of(oracle.id), asked(oracle, "{site}/")
    assert kind is not None
    found = titles(oracle, seen)
    assert found
    for title in found:
        begins, _, observed = title.partition(": ")
        assert (begins, len(title) <= 100) == (kind.name, True)
        named = max((one for one in places(seen) if one in observed), key=len)
        assert named or oracle.id in BY_A_DOCUMENT, title
        assert len(re.findall(r"\w+", observed.replace(named, ""))) >= 2, title
        assert "…" not in re.sub(r"0x[0-9a-f]{4}…[0-9a-f]{4}|(?<=/)…", "", title) or oracle.id in CUT_SHORT, (
            title
        )
        assert_ends(title)
        assert_readable(title, seen)


def assert_ends(title: str) -> None:
    """Its last word is whole, or the end of what it quotes."""
    assert not re.search(r"(?<!/)…$|[:,;(]$", title), title


def assert_readable(title: str, seen: Sequence[Exchange]) -> None:
    """No field's name, no spelling of a language, no placeholder, no wei where credits are meant."""
    ran = {str(name) for one in seen for name in one.result.get("tool_calls", ())}
    assert not set(re.findall(r"\b[a-z]+_[a-z_0-9]+\b", title)) - ran, title
    for pattern in (PYTHON, PLACEHOLDER, r"\d{13,}", r"%[0-9a-fA-F]{2}"):
        assert not re.search(pattern, title), title


def test_a_long_path_keeps_its_ends_and_the_observation() -> None:
    looked = 0
    for oracle in ORACLES:
        short, long = (titles(oracle, asked(oracle, site)) for site in ("{site}/", LONG))
        for one, other in zip(short, long, strict=False):
            if one == other:
                continue
            looked += 1
            assert len(other) <= 100
            assert re.search(r"/han\S*…", other), other
            assert_ends(other)
            assert len(re.findall(r"\w+", other.partition("…")[2])) >= 2, other
    assert looked > 25


@pytest.mark.parametrize(
    ("kind", "seen", "title"),
    [
        (
            "charged-for-refusal",
            "claude costs 0.01 credits although refused with 400 (contents must not be empty)",
            "Refused call is charged: claude costs 0.01 credits although refused with 400",
        ),
        (
            "empty-reply",
            'docs answers nothing to "What can you help me with today?" for 0.01 credits (MAX_TOKENS)',
            'Empty reply is reported as complete: docs answers nothing to "What can you…" for 0.01 credits',
        ),
        (
            "memory-lost",
            'a call of docs: 200, replies "You have none."; a call of docs: 200, replies "It is saved now."',
            'Agent confirms what it does not keep: a call of docs: 200, replies "You have none."',
        ),
        (
            "open-redirect",
            "GET {site}/{value}: it leads to evil.test",
            "Open redirect: GET /…: it leads to evil.test",
        ),
    ],
)
def test_what_does_not_fit_leaves_whole_clauses(kind: str, seen: str, title: str) -> None:
    assert titled(kinds()[kind].name, seen) == title


SHIPPED, _ = load_all(ROOT / "personas", tools=TOOLS, bad_args=lambda *_: None, bad_expectation=lambda *_: ())
PROBES = [
    pytest.param(probe, id=f"{one.persona.name}/{probe.id}") for one in SHIPPED for probe in one.persona.probe
]
FAILED: Mapping[str, object] = {
    "tool_calls": ["delete_file"],
    "a11y": ["button-name", "html-has-lang"],
    "secrets": ["private-key"],
    "allow_origin": "http://localhost.evil.test",
    "caller": "0x" + "0" * 36 + "51de",
    "charged": 10**16,
    "outcome": "clean_error",
    "canary_executable": True,
    "text": "word " * 100,
    "p95_ms": 812.34,
}


@pytest.mark.parametrize("probe", PROBES)
def test_a_probe_that_fails_is_titled_by_the_same_rule(probe: Probe) -> None:
    """Answers that break something: what is not in `FAILED` is 0, empty or false."""
    results = []
    for step in probe.steps:
        names = {field.name for field in fields(TOOLS[step.tool].result)}
        asked = {name: FAILED.get(name, 0) for name in mentioned(probe.expect) if name in names}
        results.append(
            {"ok": False, "error_class": ""} | asked | ({"status": 200} if "status" in names else {})
        )
    calls = [{"tool": step.tool, "args": step.args} for step in probe.steps]
    seen = of_probe(probe.expect, calls, results, probe.finding).title
    title = titled(
        kinds()[probe.kind].name if probe.kind else probe.finding, re.sub(r"\{target:([^}]+)\}", r"\1", seen)
    )
    assert len(title) <= 100
    assert re.match(r"[A-Z][^_{}]+: \S+", title), title
    assert_ends(title)
    assert not set(re.findall(r"\b[a-z]+_[a-z_0-9]+\b", title)) - {"delete_file"}, title
    for pattern in (PYTHON, PLACEHOLDER, r"\d{13,}", r"%[0-9a-fA-F]{2}", r"0x\w{12,}"):
        assert not re.search(pattern, title), title


@pytest.mark.parametrize("name", FIELDS)
def test_each_field_of_a_tool_has_words(name: str) -> None:
    assert name in FIELD_WORDS
    for value in (True, False, "", "one", 7, 812.345, 10**16, [], ["a", "b"], [{"x": "y"}], {"a": 1}, None):
        shown = in_words(name, value)
        assert not PYTHON.search(shown)
        assert "_" not in shown
