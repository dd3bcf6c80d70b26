"""A question that shows a defect is cut to what still shows it, within a bound."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleet.personas.model import Probe, Step
from fleet.runs.proof.minimise import ACTS, cuts, minimise, retold

pytestmark = pytest.mark.anyio


def fetch(path: str, **more: Any) -> Step:
    return Step(tool="qa_fetch", args={"url": "{site}/" + path, **more})


def probe(*steps: Step) -> Probe:
    return Probe(id="x-1", severity="low", steps=steps, expect="true", finding="something is wrong")


def showing(
    holds: Callable[[tuple[Step, ...]], bool], seen: list[Probe]
) -> Callable[[Sequence[Probe]], Awaitable[Sequence[bool]]]:
    async def shows(some: Sequence[Probe]) -> Sequence[bool]:
        seen.extend(some)
        return [holds(one.steps) for one in some]

    return shows


async def test_calls_and_arguments_that_do_not_matter_are_left_out() -> None:
    seen: list[Probe] = []
    steps = (fetch("a"), fetch("b"), fetch("c"), fetch("d", origin="x", canary="y"))
    shows = showing(lambda s: {"{site}/b", "{site}/d"} <= {one.args["url"] for one in s}, seen)
    found = await minimise(probe(*steps), shows)
    assert found.probe.steps == (fetch("b"), fetch("d"))
    assert found.tries == len(seen) <= 16


async def test_parameters_of_a_query_that_do_not_matter_are_left_out() -> None:
    shows = showing(lambda s: "_sort=x" in s[0].args["url"], [])
    found = await minimise(probe(fetch("dogs.csv?_size=max&_sort=x&page=2")), shows)
    assert found.probe.steps == (fetch("dogs.csv?_sort=x"),)
    alone = await minimise(probe(fetch("dogs?page=2")), showing(lambda s: "dogs" in s[0].args["url"], []))
    assert alone.probe.steps == (fetch("dogs"),)


def test_a_title_keeps_the_urls_that_are_still_asked() -> None:
    title = "GET {site}/a?q=1&r=2 answers 500, GET {site}/a?q=9 does not"
    before = probe(fetch("a?q=9"), fetch("a?q=1&r=2"))
    assert retold(title, before, before) == title
    assert retold(title, before, probe(fetch("a?q=9"), fetch("a?q=1"))) == title.replace("&r=2", "")
    assert retold("GET {site}/b answers 500", before, probe(fetch("a"))) == "GET {site}/b answers 500"


async def test_parts_of_a_long_text_are_left_out() -> None:
    steps = (Step(tool="qa_compile", args={"source": "a" * 300 + "BAD" + "b" * 300}),)
    found = await minimise(probe(*steps), showing(lambda s: "BAD" in s[0].args.get("source", ""), []))
    assert "BAD" in found.probe.steps[0].args["source"]
    assert len(found.probe.steps[0].args["source"]) < 300


async def test_nothing_is_cut_when_nothing_smaller_shows_it_and_nothing_beyond_the_bound() -> None:
    whole = probe(fetch("a"), fetch("b", origin="x"))
    found = await minimise(whole, showing(lambda s: False, []))
    assert found.probe == whole
    seen: list[Probe] = []
    assert (await minimise(whole, showing(lambda s: False, seen), most=1)).tries == 1 == len(seen)
    assert (await minimise(whole, showing(lambda s: True, seen), most=0)).probe == whole


async def test_acts_for_cutting_a_question_are_bounded_together() -> None:
    call = {"url": "{site}/mcp", "method": "tools/call", "name": "find"}
    seen: list[Probe] = []
    whole = probe(*(Step(tool="qa_mcp", args={**call, "arguments": {"boat": f"{at}"}}) for at in range(5)))
    assert (await minimise(whole, showing(lambda s: False, seen))).tries == ACTS // 5 == len(seen)
    reading = probe(*(fetch(str(at), origin="x") for at in range(5)))
    assert (await minimise(reading, showing(lambda s: False, []))).tries > ACTS // 5


def test_every_cut_is_valid_for_its_tool() -> None:
    made = list(cuts((fetch("a" * 60, origin="o"),)))
    assert (fetch("a" * 60),) in made
    assert all("url" in one[0].args for one in made)


@settings(max_examples=30)
@given(kept=st.sets(st.integers(0, 6), min_size=1), count=st.integers(1, 7))
def test_what_it_returns_always_shows(kept: set[int], count: int) -> None:
    steps = tuple(fetch(str(at)) for at in range(count))
    wanted = {f"{{site}}/{at}" for at in kept if at < count}
    shows = showing(lambda s: wanted <= {one.args["url"] for one in s}, [])
    found = anyio.run(minimise, probe(*steps), shows)
    assert wanted <= {one.args["url"] for one in found.probe.steps}
    assert found.tries <= 16
