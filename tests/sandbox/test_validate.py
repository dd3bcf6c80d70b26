"""Arguments: strictly typed, every mistake with its JSON pointer, nothing raised but Mistake."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.programs.program import Program
from sandbox.spec import Context, Mistake
from sandbox.tools import TOOLS
from sandbox.validate import build


@dataclass(frozen=True)
class Args:
    name: str
    count: int = 0
    share: float = 0.0
    deep: bool = False
    many: tuple[str, ...] = ()
    loose: tuple[Any, ...] = ()
    labels: dict[str, int] = field(default_factory=dict)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "/: expected an object"),
        ({}, "/name: required"),
        ({"name": 1}, "/name: expected a string"),
        ({"name": None}, "/name: expected a string"),
        ({"name": "\ud800"}, "/name: not valid Unicode"),
        ({"name": "a", "count": True}, "/count: expected an integer"),
        ({"name": "a", "count": 1.0}, "/count: expected an integer"),
        ({"name": "a", "count": "1"}, "/count: expected an integer"),
        ({"name": "a", "share": "1"}, "/share: expected a number"),
        ({"name": "a", "share": float("nan")}, "/share: expected a finite number"),
        ({"name": "a", "share": 10**400}, "/share: expected a finite number"),
        ({"name": "a", "deep": 0}, "/deep: expected true or false"),
        ({"name": "a", "many": "abc"}, "/many: expected an array"),
        ({"name": "a", "many": ["x", 1]}, "/many/1: expected a string"),
        ({"name": "a", "labels": {"x/~y": "1"}}, "/labels/x~1~0y: expected an integer"),
        ({"name": "a", "loose": [[["\udfff"]]]}, "/loose/0/0/0: not valid Unicode"),
    ],
)
def test_mistakes_point_at_the_place(data: object, message: str) -> None:
    with pytest.raises(Mistake) as caught:
        build(Args, data)
    assert str(caught.value) == message


def test_an_unknown_argument_names_the_known() -> None:
    with pytest.raises(Mistake, match=r"^/args/nmae: unknown argument; valid here: count, deep, labels,"):
        build(Args, {"name": "x", "nmae": 1}, "/args")


def test_what_fits_is_taken() -> None:
    built = build(
        Args, {"name": "a", "share": 1, "many": ["x"], "loose": [1, [None, {"k": 2}]], "labels": {"l": 3}}
    )
    assert built == Args("a", 0, 1.0, False, ("x",), (1, (None, {"k": 2})), {"l": 3})
    assert isinstance(built.share, float)


def test_depth_is_bounded() -> None:
    nested: Any = 1
    for _ in range(40):
        nested = [nested]
    with pytest.raises(Mistake, match="nested too deeply"):
        build(Args, {"name": "a", "loose": nested})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=16,
)


@given(
    st.sampled_from(sorted(TOOLS)),
    JSON | st.dictionaries(st.sampled_from(["name", "source", "url", "args", "function"]), JSON),
)
def test_any_json_is_built_or_a_mistake(tool: str, data: Any) -> None:
    try:
        built: object = build(TOOLS[tool].args, data, "/args")
    except Mistake as mistake:
        built = str(mistake)
    assert built.startswith("/") if isinstance(built, str) else isinstance(built, TOOLS[tool].args)


def test_a_context_survives_the_wire() -> None:
    context = Context(
        run="r",
        prefix="qa-r-",
        keys={"caller": "0x1"},
        program=Program(command=("{python}", "-c")),
        gas={"small": 1},
    )
    assert build(Context, json.loads(json.dumps(asdict(context))), "/ctx") == context


def test_every_tool_has_defaults_for_a_failure() -> None:
    for spec in TOOLS.values():
        failed = spec.result(ok=False, error="x", error_class="internal")
        assert (failed.ok, failed.error_class, failed.hint) == (False, "internal", "")
