"""The reference of the tools, derived from their specs: types, and the text under each field."""

from __future__ import annotations

import ast
import inspect
import json
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from itertools import pairwise
from textwrap import dedent
from typing import Any, Literal, get_args, get_type_hints

from fleet.config.escalation import GRAVEST, EscalationSection
from fleet.config.scope import Criticality
from fleet.drivers.expect import FUNCTIONS, MACROS
from fleet.drivers.expect_shapes import one_of, shape_of
from fleet.gate.impact import REVIEWED, Technique, technique_of, techniques
from fleet.gate.rules import LOWEST
from fleet.personas.placeholders import PLACEHOLDERS
from sandbox.chain.contract import VIEWS
from sandbox.spec import Effect, Points, ToolSpec
from sandbox.tools import TOOLS

NAMES: Mapping[str, str] = {
    "result": "the last step's result",
    "results": "every step's result, in order: `results[0]` is the first",
    "history": "figures that earlier runs kept by `note`, doubles: `history.NAME`",
    "facts": "what the platform's profile promises: `facts.NAME`",
}


@dataclass(frozen=True, slots=True)
class Scenario:
    """One technique as people name it, by a call at a host."""

    name: str
    phase: Literal["reconnaissance", "exploitation", "post-exploitation", "data handling"]
    tool: str
    method: str
    host: Criticality

    @property
    def effect(self) -> Effect:
        spec = TOOLS[self.tool]
        return (spec.effect_of({"method": self.method} if self.method else {})) or spec.effect

    def classified(self) -> Technique:
        """Its class, by the scores of the tool and what hangs on the host."""
        found = technique_of(self.tool, self.effect, {"method": self.method} if self.method else {})
        assert found is not None
        return found.at(self.host, self.effect)

    def asked(self) -> str:
        """Who permits it before it is made."""
        level = self.classified().level
        if self.effect is Effect.ACT and self.host == "critical":
            return "not made: nothing is changed on a critical host"
        said = []
        if self.host == "critical" or (self.effect is Effect.ACT and self.host != "non-production"):
            said.append("the host's `approved` in the signed profile")
        if self.effect is Effect.ACT and EscalationSection(impact="high").asks(level):
            said.append("two approvers" if level == GRAVEST else "an approver, within 15 minutes")
        return ", then ".join(said) or "nobody: the dial permits it"


SCENARIOS = (
    Scenario("read what a visitor reads", "reconnaissance", "qa_fetch", "GET", "production"),
    Scenario("look for pages that nothing links to", "reconnaissance", "qa_fetch", "HEAD", "unknown"),
    Scenario("read a contract's views", "reconnaissance", "qa_chain", "", "critical"),
    Scenario("directory traversal", "exploitation", "qa_fetch", "GET", "critical"),
    Scenario("script injection by a link", "exploitation", "qa_browse", "", "non-production"),
    Scenario("SQL injection by a form", "exploitation", "qa_fetch", "POST", "production"),
    Scenario("password spraying, a few default passwords", "exploitation", "qa_account", "", "production"),
    Scenario("buffer overflow in a compiler", "exploitation", "qa_fuzz", "", "non-production"),
    Scenario("read another account's record", "data handling", "qa_account", "", "non-production"),
    Scenario("exfiltration of what an agent remembers", "data handling", "qa_call", "", "production"),
    Scenario("overwrite a record that was opened", "post-exploitation", "qa_fetch", "PUT", "production"),
    Scenario("remove what a test made", "post-exploitation", "qa_fetch", "DELETE", "critical"),
    Scenario("leave a program under a name of ours", "post-exploitation", "qa_publish", "", "non-production"),
)
"""Worked examples of the classes of impact."""


def reference(spec: ToolSpec) -> dict[str, Any]:
    """One tool as JSON: its arguments, result fields, effect, cost, rung and an example."""
    return {
        "name": spec.name,
        "summary": spec.summary,
        "effect": str(spec.effect),
        "effect_varies": spec.effect_by is not None,
        "rung": str(LOWEST[spec.effect]),
        "cost": {"calls": spec.cost.calls, "writes": spec.cost.writes},
        "needs": [*spec.needs, *(need for mode in spec.modes for need in mode.needs)],
        "args": _arguments(spec),
        "result": _fields(spec.result),
        "example": example(spec),
    }


def example(spec: ToolSpec) -> str:
    """A probe's step and its expectation, as a persona file has them."""
    args = ", ".join(f"{key} = {json.dumps(value)}" for key, value in spec.example.items())
    steps = f'steps = [{{ tool = "{spec.name}", args = {{ {args} }} }}]'
    return f"{steps}\nexpect = {json.dumps(spec.expects)}"


def _arguments(spec: ToolSpec) -> list[dict[str, Any]]:
    rows, views = _fields(spec.args, given=True), tuple(VIEWS)
    for row in rows:
        if (spec.points_at or {}).get(row["name"]) is Points.VIEW_OR_NONE:
            row |= {"values": list(views), "says": f"{row['says']} O{one_of(views)[1:]}."}
    return rows


def _fields(model: type, *, given: bool = False) -> list[dict[str, Any]]:
    hints, said = get_type_hints(model, include_extras=True), _descriptions(model)
    rows = []
    for one in fields(model):
        unit, text = said.get(one.name, ("", ""))
        shape = shape_of(hints[one.name])
        row: dict[str, Any] = {"name": one.name, "type": str(shape), "unit": unit, "says": text}
        if words := shape.words or shape.members.words:
            row |= {"values": list(words), "says": f"{text} O{one_of(words)[1:]}."}
        if given and one.default is not MISSING:
            row["default"] = one.default
        row["required"] = given and one.default is MISSING and one.default_factory is MISSING
        for inner in get_args(hints[one.name]):  # the dataclass inside a type such as `tuple[Form, ...]`
            if isinstance(inner, type) and is_dataclass(inner):
                row["fields"] = _fields(inner)
        rows.append(row)
    return rows


@cache
def _descriptions(model: type) -> dict[str, tuple[str, str]]:
    """Unit and text of each field, from the string under it; a base's come first."""
    found: dict[str, tuple[str, str]] = {}
    for kind in reversed([one for one in model.__mro__ if is_dataclass(one)]):
        body = ast.parse(dedent(inspect.getsource(kind))).body[0].body  # type: ignore[attr-defined]
        for here, after in pairwise(body):
            if isinstance(here, ast.AnnAssign) and isinstance(after, ast.Expr):
                text = " ".join(ast.literal_eval(after.value).split())
                unit, _, rest = text[1:].partition("] ") if text.startswith("[") else ("", "", text)
                found[ast.unparse(here.target)] = (unit, rest)
    return found


def words() -> dict[str, Mapping[str, str]]:
    """What an argument and an expectation may hold besides literals."""
    return {"placeholders": PLACEHOLDERS, "variables": NAMES, "macros": MACROS, "functions": FUNCTIONS}


def markdown() -> str:
    """The whole reference, as docs/reference/tools.md has it."""
    lines = ["# Tools", "", "Generated by `fleet personas tools --markdown`; do not edit.", ""]
    lines += ["| tool | effect | rung | calls | writes | what it does |", "|---|---|---|---|---|---|"]
    all_of = [reference(spec) for spec in TOOLS.values()]
    for one in all_of:
        effect = f"{one['effect']}, or act by its arguments" if one["effect_varies"] else one["effect"]
        lines.append(
            f"| [{one['name']}](#{one['name']}) | {effect} | {one['rung']} | {one['cost']['calls']} "
            f"| {one['cost']['writes']} | {one['summary']} |"
        )
    for one in all_of:
        lines += ["", f"## {one['name']}", "", f"{one['summary'].capitalize()}.", ""]
        if one["needs"]:
            lines += ["Needs of a platform: " + ", ".join(f"`{need}`" for need in one["needs"]) + ".", ""]
        lines += ["```toml", one["example"], "```", "", *_table("argument", one["args"]), ""]
        lines += _table("result field", one["result"])
    lines += ["", *_impacts()]
    for title, rows in words().items():
        lines += ["", f"## {title.capitalize()}", ""]
        form = "`{{{}}}`" if title == "placeholders" else "`{}`"
        lines += [f"- {form.format(name)}: {text}" for name, text in rows.items()]
    return "\n".join([*lines, ""])


def _impacts() -> list[str]:
    """The classes of impact of everything that a call can be."""
    lines = [
        "## Impact",
        "",
        f"What each call may do at worst, as last reviewed on {REVIEWED}; a call without a row is refused."
        " What is left of confidentiality, integrity and availability: 10 is all, 0 nothing; the lowest"
        " decides the level, and a profile says from which level on a person is asked first"
        " (`[escalation] impact`). In production an act counts one less in each, on a critical host"
        " everything two less.",
        "",
        "| technique | level | C | I | A | mean | what it is | undone |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for one in techniques():
        scores = " | ".join(map(str, one.scores))
        lines.append(f"| `{one.name}` | {one.level} | {scores} | {one.weighted} | {one.why} | {one.undone} |")
    lines += [
        "",
        'Worked examples, by the same scores; who is asked where the profile has `impact = "high"`:',
        "",
        "| scenario | phase | call | host | C | I | A | level | who is asked |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for scenario in SCENARIOS:
        made = scenario.classified()
        cells = (scenario.name, scenario.phase, f"`{made.name}`", scenario.host, *made.scores, made.level)
        lines.append(f"| {' | '.join(map(str, cells))} | {scenario.asked()} |")
    return lines


def _table(head: str, rows: list[dict[str, Any]]) -> list[str]:
    lines = [f"| {head} | type | unit | |", "|---|---|---|---|"]
    for row in rows:
        says = ("Required. " if row["required"] else "") + str(row["says"]).replace("|", "\\|")
        if (default := row.get("default")) not in (None, "", (), 0, False):
            says += f" Default: `{json.dumps(default)}`."
        lines.append(f"| `{row['name']}` | {row['type']} | {row['unit']} | {says} |")
        for inner in row.get("fields", ()):
            name = f"{row['name']}[].{inner['name']}"
            lines.append(f"| `{name}` | {inner['type']} | {inner['unit']} | {inner['says']} |")
    return lines
