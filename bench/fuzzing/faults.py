"""Defects of a compiler, drawn: what each does, by class, and where. The same seed, the same defects."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import cycle, islice
from pathlib import Path
from random import Random
from typing import Any

HERE = Path(__file__).parent
FRAME = "const K: i32 = 7; enum E { A, B } fn g(a: i32) -> i32 { a } fn h(a: i32, b: i32) -> i32 { a + b } "
"""What the expressions of nested.toml use."""
NESTED = 0.5
"""Part of the defects of a construct that are an expression in another."""
_REPEAT = re.compile(r"<<((?:(?!<<|>>).)*?)\|(\d+)>>", re.DOTALL)


@dataclass(frozen=True, slots=True)
class FaultPlace:
    """`when` is a condition in Python over what `sees` names (places.toml); `witness` an input with it."""

    id: str
    sees: str
    when: str
    witness: str
    stage: str = ""
    tags: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class FaultEffect:
    """What happens there: statements in Python, at a stage of the compiler (effects.toml)."""

    klass: str
    stages: tuple[str, ...]
    do: tuple[str, ...]
    needs: str = ""


@dataclass(frozen=True, slots=True)
class PlantedFault:
    """One defect. `id` switches it on; `where` is the name of the function that it happens in."""

    id: str
    klass: str
    stage: str
    where: str
    do: str
    place: FaultPlace

    @property
    def part(self) -> str:
        return "loader" if self.stage == "module" else "compiler"

    @property
    def witness(self) -> bytes:
        text = self.place.witness
        return bytes.fromhex(text) if self.part == "loader" else text.encode()


@cache
def effects() -> tuple[FaultEffect, ...]:
    return tuple(
        FaultEffect(one["class"], tuple(one["stages"]), tuple(one["do"]), one.get("needs", ""))
        for one in _data("effects")["effect"]
    )


def classes() -> list[str]:
    return list(dict.fromkeys(one.klass for one in effects()))


def candidates(seed: int) -> Iterator[PlantedFault]:
    """Defects without end: in turn one of each class, in an order of the seed's own."""
    chance = Random(f"faults {seed}")
    order = classes()
    chance.shuffle(order)
    used: set[tuple[str, str]] = set()
    for index, klass in enumerate(cycle(order)):
        effect = chance.choice([one for one in effects() if one.klass == klass])
        stage = chance.choice(effect.stages)
        place = drawn_place(stage, effect.needs, chance)
        if (klass, place.id) in used:
            continue
        used.add((klass, place.id))
        where = f"{chance.choice(_data('words')['first'])}_{chance.choice(_data('words')['second'])}"
        do = chance.choice(effect.do).replace("$where", where)
        yield PlantedFault(f"f{index}", klass, stage, where, do, place)


def drawn(seed: int, count: int) -> list[PlantedFault]:
    """The first candidates, before any was tried."""
    return [replace(one, id=f"f{i}") for i, one in enumerate(islice(candidates(seed), count))]


def drawn_place(stage: str, needs: str, chance: Random) -> FaultPlace:
    """A place that a defect of this stage can have."""
    if stage not in ("error", "module") and not needs and chance.random() < NESTED:
        return _nested(chance)
    kinds = {"error": {"error"}, "module": {"module"}}.get(stage, {"node", "function", "program", "source"})
    fits = [
        one
        for one in _data("places")["place"]
        if one["sees"] in kinds
        and (not needs or one.get(needs))
        and (stage != "tree" or one.get("stage") != "typed")
    ]
    return filled(chance.choice(fits), chance)


def filled(place: Mapping[str, Any], chance: Random) -> FaultPlace:
    """A row of places.toml with its values drawn."""
    values = {name: chance.choice(of) for name, of in place.get("draw", {}).items()}
    witness = place["witness"]
    if not isinstance(witness, str):
        witness = witness[next(iter(values.values()))]
    if place["sees"] == "module" and "i" in values:
        witness = witness.replace("{i}", f"{int(values['i']):02x}")
    return FaultPlace(
        " ".join([place["id"], *values.values()]),
        place["sees"],
        substituted(place["when"], values),
        repeated(substituted(witness, values)),
        place.get("stage", ""),
        frozenset(tag for tag in ("deep", "neutral") if place.get(tag)),
    )


def _nested(chance: Random) -> FaultPlace:
    tables = _data("nested")
    values = {name: chance.choice(of) for name, of in tables["draw"].items()}
    inner, outer = (chance.choice(list(tables[name].items())) for name in ("inner", "outer"))
    text = outer[1]["text"].replace("<>", inner[1]["text"])
    return FaultPlace(
        substituted(f"{inner[0]} in {outer[0]}", values),
        "node",
        substituted(f"{inner[1]['when']} and {outer[1]['when']}", values),
        FRAME + substituted(f"fn frame(t: i32) -> i32 {{ {text} }}", values),
    )


def substituted(text: str, values: Mapping[str, str]) -> str:
    for name in sorted(values, key=len, reverse=True):
        text = text.replace(f"${name}", values[name])
    return text


def repeated(text: str) -> str:
    """`<<text|k>>` is the text k times."""
    return _REPEAT.sub(lambda found: found[1] * int(found[2]), text)


def single_places() -> Sequence[Mapping[str, Any]]:
    """The rows of places.toml."""
    rows: Sequence[Mapping[str, Any]] = _data("places")["place"]
    return rows


@cache
def _data(name: str) -> dict[str, Any]:
    return tomllib.loads((HERE / f"{name}.toml").read_text("utf-8"))
