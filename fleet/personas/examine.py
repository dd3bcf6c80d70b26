"""All that is wrong with a persona's values: the types first, then the rules for what is left of it.

A misspelt key is read as the key that was meant, and a wrong value is left out, so that one mistake is one
complaint and hides no other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from fleet.personas.check import Complaint, Rules, complaints
from fleet.personas.frontmatter import Loc
from fleet.personas.model import Persona
from fleet.text import suggestion

_FORMS = {
    "name": "qa- and small letters, digits and hyphens, such as qa-links",
    "id": "small letters, digits and hyphens, such as dead-link",
}
"""What a name looks like, in words."""
_INSTEAD = {"severity": "low", "expect": "true", "finding": "not named yet"}
"""Values of a probe in the place of wrong ones: what else it says is checked."""


def examined(data: dict[str, Any], stem: str, rules: Rules) -> tuple[Persona | None, list[Complaint]]:
    """The persona, if its types are right, and every complaint, the likely cause of others first."""
    data, found = deepcopy(data), []
    for error in _errors(data):
        if error["type"] == "extra_forbidden":
            found.append(_renamed(data, tuple(error["loc"])))
    wrong = [_explained(error) for error in _errors(data)]
    left, kept = _left(data, wrong, rules)
    try:
        persona = Persona.model_validate(left)
    except ValidationError:
        return None, found + wrong
    found += wrong

    def in_file(loc: Loc) -> Loc:
        if len(loc) > 1 and loc[0] == "probe" and isinstance(loc[1], int):
            return ("probe", kept[loc[1]], *loc[2:])
        return loc

    rest = []
    for one in complaints(persona, stem, rules):
        # of a place that has a complaint already, or of a trigger with one inside it, the first is enough
        depth, loc = len(one.loc) if one.loc[:1] == ("triggers",) else None, in_file(one.loc)
        if not any(loc == other.loc[:depth] for other in found):
            rest.append(replace(one, loc=loc, text=in_file(one.text)))
    return (None if found else persona), found + rest


def _errors(data: Mapping[str, Any]) -> list[Any]:
    try:
        Persona.model_validate(data)
    except ValidationError as error:
        return list(error.errors(include_url=False, include_context=False))
    return []


def _renamed(data: dict[str, Any], loc: Loc) -> Complaint:
    """The complaint about an unknown key; in `data` it becomes the key that was meant, or goes."""
    table: Any = data
    model: type[BaseModel] = Persona
    for part in loc[:-1]:
        table = table[part]
        if isinstance(part, str):
            model = next(_models(model.model_fields[part].annotation), model)
    valid = sorted(model.model_fields)
    value, close = table.pop(loc[-1]), suggestion(str(loc[-1]), valid)
    meant = next((key for key in valid if close == suggestion(key, [key])), "")
    if meant and meant not in table:
        table[meant] = value
    return Complaint(loc, f"unknown key{close}", f"valid keys here: {', '.join(valid)}")


def _explained(error: Mapping[str, Any]) -> Complaint:
    """A pydantic error as a complaint about this file."""
    loc: Loc = tuple(error["loc"])
    if error["type"] == "missing":
        return Complaint(loc, "is required", "add it", missing=True)
    form = _FORMS.get(str(loc[-1])) if error["type"] == "string_pattern_mismatch" else None
    if form:
        return Complaint(loc, f"{error['input']!r} is not a valid {loc[-1]}", f"write {form}")
    choices = re.findall(r"'([^']+)'", error["msg"]) if error["type"] == "literal_error" else ()
    return Complaint(loc, f"{error['msg']}{suggestion(str(error['input']), choices)}", "correct the value")


def _left(data: Mapping[str, Any], wrong: list[Complaint], rules: Rules) -> tuple[dict[str, Any], list[int]]:
    """The values without the wrong ones, and the place of each probe that is left in the file."""
    instead = {"name": "qa-unnamed", "surface": "ux", "budget": {"calls": 1}, "tools": sorted(rules.tools)}
    left = deepcopy(dict(data))
    bad: set[int | str] = set()
    for one in wrong:
        match one.loc:
            case ("probe", int(index), "id"):
                left["probe"][index]["id"] = f"unnamed-{index}"
            case ("probe", int(index), "severity" | "expect" | "finding" as key):
                left["probe"][index][key] = _INSTEAD[key]
            case ("probe", int(index), "surface" | "needs" | "control" | "note" as key, *_):
                left["probe"][index].pop(key, None)
            case ("probe", index, *_):
                bad.add(index)
            case (str(key), *_) if key in instead:
                left[key] = instead[key]
            case (key, *_):
                left.pop(str(key), None)
    probes = left.get("probe", [])
    kept = [index for index in range(len(probes)) if index not in bad]
    if bad:
        left["probe"] = [probes[index] for index in kept]
    return left, kept


def _models(annotation: object) -> Iterator[type[BaseModel]]:
    """The models inside an annotation such as `tuple[Probe, ...]` or `BudgetSection | None`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models(part)
