"""All that is wrong with a persona file is said at once, the cause first, each with line and column."""

from __future__ import annotations

from pathlib import Path

import pytest

from fleet.app.persona_sets import roster
from fleet.drivers.expect_check import check
from fleet.errors import PersonaError
from fleet.personas.check import Surroundings
from fleet.personas.load import load_persona
from fleet.personas.placeholders import mistaken
from fleet.runs.call.guest_protocol import bad_args
from sandbox.tools import TOOLS

AROUND = Surroundings(
    frozenset({"guide", "page"}), lambda url: url.startswith("http://here.test/"), "here.test"
)
HEAD = """+++
name = "qa-x"
surface = "ux"
tools = ["qa_fetch", "qa_compile"]

"""
PROBE = """[[probe]]
id = "one"
severity = "low"
steps = [{ tool = "qa_fetch", args = { url = "{site}/" } }]
expect = "result.status == 200"
finding = "the page is missing"
"""
Place = tuple[int, int, str, str]


def refused(folder: Path, text: str, around: Surroundings | None = AROUND) -> list[Place]:
    path = folder / "qa-x.md"
    path.write_text(HEAD + text + "+++\nBody.\n", "utf-8")
    return complaints(path, around)


def complaints(path: Path, around: Surroundings | None) -> list[Place]:
    """Line, column, key and message of every error."""
    with pytest.raises(PersonaError) as caught:
        load_persona(
            path,
            tools=frozenset(TOOLS),
            bad_args=lambda tool, args: bad_args(TOOLS[tool], args),
            bad_expectation=check,
            around=around,
        )
    found = (caught.value, *caught.value.others)
    assert all(one.remedy for one in found)
    return [(one.line, one.column, one.key, one.reason) for one in found]


def test_a_wrong_name_and_wrong_arguments_hide_nothing_else(tmp_path: Path) -> None:
    wrong = '{ url = "{sight}/", repet = 2 }'
    text = PROBE.replace('{ url = "{site}/" }', wrong).replace(".status", ".statu")
    path = tmp_path / "x.md"
    path.write_text(HEAD.replace("qa-x", "x") + text + "+++\nBody.\n", "utf-8")
    assert [(line, column, key, why[:62]) for line, column, key, why in complaints(path, AROUND)] == [
        (2, 0, "name", "'x' is not a valid name"),
        (9, 0, "probe[0].steps[0].args", "not valid for qa_fetch: /repet: unknown argument; did you mean"),
        (9, 47, "probe[0].steps[0].args", "no placeholder {sight}"),
        (10, 18, "probe[0].expect", "the result of qa_fetch has no field 'statu'; did you mean 'sta"),
    ]


def test_every_wrong_argument_of_a_call_is_named() -> None:
    assert bad_args(TOOLS["qa_fetch"], {"url": "{site}/", "repet": 2, "rate": "x"}) == (
        "/rate: Input should be a valid number, unable to parse string as a number; "
        "/repet: unknown argument; did you mean 'repeat'?"
    )
    assert bad_args(TOOLS["qa_fetch"], {"url": "{site}/", "repeat": 2}) is None


def test_one_file_says_all_that_is_wrong_with_it(tmp_path: Path) -> None:
    text = PROBE.replace("severity", "severty") + PROBE.replace('"one"', '"two"').replace("200", '\\"ok\\"')
    text = text.replace("{site}/", "{site}/1", 1)
    text += PROBE.replace('"one"', '"three"').replace('"low"', '"lo"').replace("{site}/", "{site}/3")
    text += PROBE.replace('"one"', '"four"').replace("{site}/", "{site}/4").replace(".status", ".statu")
    found = refused(tmp_path, text)
    assert [(line, column, key) for line, column, key, _ in found] == [
        (8, 0, "probe[0].severty"),
        (20, 0, "probe[2].severity"),
        (16, 11, "probe[1].expect"),
        (28, 18, "probe[3].expect"),
    ]
    assert found[0][3] == "unknown key; did you mean 'severity'?"


def test_a_misspelt_key_has_no_second_complaint_as_a_missing_one(tmp_path: Path) -> None:
    assert refused(tmp_path, PROBE.replace("expect", "expct")) == [
        (10, 0, "probe[0].expct", "unknown key; did you mean 'expect'?")
    ]


@pytest.mark.parametrize(
    ("wrong", "key", "message"),
    [
        ('finding = "short"', "finding", "String should have at least 8 characters"),
        ("", "finding", "is required"),
        ('surface = "uxx"\nfinding = "the page is missing"', "surface", "did you mean 'ux'?"),
        ("control = 1\nfinding = 'the page is missing'", "control", "Input should be a valid string"),
        ("needs = [1]\nfinding = 'the page is missing'", "needs[0]", "Input should be a valid string"),
    ],
)
def test_a_wrong_value_of_a_probe_hides_nothing_in_its_expectation(
    tmp_path: Path, wrong: str, key: str, message: str
) -> None:
    text = PROBE.replace('finding = "the page is missing"', wrong).replace(".status", ".statu")
    value, expectation = refused(tmp_path, text)
    assert value[2] == f"probe[0].{key}"
    assert message in value[3]
    assert expectation[2] == "probe[0].expect"


def test_an_unknown_key_of_a_trigger_is_one_complaint(tmp_path: Path) -> None:
    found = refused(tmp_path, 'triggers = [{ interval = "1h" }, {}]\n' + PROBE)
    assert [(key, why[:24]) for _, _, key, why in found] == [
        ("triggers[0].interval", "unknown key"),
        ("triggers[1]", "exactly one of every, cr"),
    ]


@pytest.mark.parametrize(
    ("url", "column", "message"),
    [
        ("{sit}/", 47, "no placeholder {sit}; did you mean 'site'?"),
        ("{site}/a?{Run}", 56, "no placeholder {Run}"),
        ("{target:giude}", 47, "no profile names a target 'giude'; did you mean 'guide'?"),
        ("{target:Guide}", 47, "{target:Guide} names no role: a role is a-z, 0-9 and -"),
        ("{tagret:guide}", 47, "no placeholder {tagret:guide}; did you mean 'target'?"),
        ("{face:a_b}", 47, "{face:a_b} names no face: a name is a-z, 0-9 and -"),
        ("http://there.test/", 47, "'there.test' is not a host of the platform"),
        ("{site}llms.txt", 47, "a slash is missing between {site} and 'llms.txt'"),
        ("{proxy}v1/models", 47, "a slash is missing between {proxy} and 'v1/models'"),
        ("{site}{run}", 47, "a slash is missing between {site} and '{run}'"),
    ],
)
def test_an_argument_that_points_nowhere(tmp_path: Path, url: str, column: int, message: str) -> None:
    (found,) = refused(tmp_path, PROBE.replace("{site}/", url))
    assert (found[0], found[1], found[2]) == (9, column, "probe[0].steps[0].args")
    assert found[3].startswith(message)


def test_a_view_that_is_not_in_the_table(tmp_path: Path) -> None:
    step = 'qa_chain", args = { function = "feedbackCuont"'
    text = PROBE.replace('qa_fetch", args = { url = "{site}/"', step).replace(".status == 200", ".ok")
    path = tmp_path / "qa-x.md"
    path.write_text(HEAD.replace("qa_compile", "qa_chain") + text + "+++\nBody.\n", "utf-8")
    (found,) = complaints(path, AROUND)
    assert found[2:] == (
        "probe[0].steps[0].args",
        "no view named 'feedbackCuont'; did you mean 'feedbackCount'?",
    )


@pytest.mark.parametrize("url", ["{site}", "{site}?a=1", "{proxy}/{run}", "{site}#top"])
def test_a_base_url_may_be_followed_by_what_begins_a_path_or_a_query(tmp_path: Path, url: str) -> None:
    text = PROBE.replace("{site}/", url).replace("result.status", "result.statu")
    assert [place[2] for place in refused(tmp_path, text)] == ["probe[0].expect"]


IDLE = "has no probe, no explorer and no trigger: it can never do anything"


@pytest.mark.parametrize(
    ("more", "idle"),
    [
        ("", True),
        ('driver = "playbook"\n', True),
        ("budget = { calls = 9 }\n", True),
        ('explore = ["web"]\nbudget = { calls = 9 }\n', False),
        ('triggers = [{ every = "1h" }]\n', False),
        ("outages = true\n", False),
        ("budget = { calls = 9, tokens = 1000 }\n", False),
        ('driver = "model"\n', False),
        (PROBE, False),
    ],
)
def test_a_persona_that_can_never_do_anything(tmp_path: Path, more: str, idle: bool) -> None:
    path = tmp_path / "qa-x.md"
    path.write_text(HEAD + more + "+++\nBody.\n", "utf-8")
    if idle:
        assert [place[2:] for place in complaints(path, AROUND)] == [("probe", IDLE)]
        assert [place[2:] for place in complaints(path, Surroundings())] == [("probe", IDLE)]
    assert list(roster(path, around=AROUND)[0]) == ([] if idle else ["qa-x"])
    assert list(roster(path)[0]) == ["qa-x"]  # a run does not ask for it


TWO = '{ tool = "qa_fetch", args = { url = "{site}/a" } }, { tool = "qa_fetch", args = { url = "{site}/b" } }'


@pytest.mark.parametrize(
    ("calls", "steps", "needed"),
    [(3, "", 4), (4, "", 0), (7, TWO, 8), (8, TWO, 0), (1, TWO, 8)],
)
def test_a_budget_that_does_not_cover_the_calls_of_its_probes(
    tmp_path: Path, calls: int, steps: str, needed: int
) -> None:
    text = f"budget = {{ calls = {calls} }}\n" + PROBE
    if steps:
        text = text.replace('{ tool = "qa_fetch", args = { url = "{site}/" } }', steps)
    path = tmp_path / "qa-x.md"
    path.write_text(HEAD + text + "+++\nBody.\n", "utf-8")
    if needed:
        ((line, _, key, why),) = complaints(path, AROUND)
        assert (line, key) == (6, "budget.calls")
        assert why == f"{calls} calls do not cover its probes: one look and 3 proofs take {needed}"
    assert list(roster(path, around=AROUND)[0]) == ([] if needed else ["qa-x"])
    assert list(roster(path)[0]) == ["qa-x"]


@pytest.mark.parametrize(("writes", "needed"), [("", 8), (", writes = 7", 8), (", writes = 8", 0)])
def test_a_budget_that_does_not_cover_the_writes_of_its_probes(
    tmp_path: Path, writes: str, needed: int
) -> None:
    text = PROBE.replace('qa_fetch", args = { url = "{site}/"', 'qa_create", args = { name = "{name}"')
    text = f"budget = {{ calls = 9{writes} }}\n" + text.replace("result.status == 200", "result.ok")
    path = tmp_path / "qa-x.md"
    path.write_text(HEAD.replace("qa_compile", "qa_create") + text + "+++\nBody.\n", "utf-8")
    if needed:
        ((_, _, key, why),) = complaints(path, AROUND)
        assert (key, why.partition(" writes ")[2]) == (
            "budget.writes",
            "do not cover its probes: one look and 3 proofs take 8",
        )
    assert list(roster(path, around=AROUND)[0]) == ([] if needed else ["qa-x"])


@pytest.mark.parametrize("url", ["{face:{name}}?q={run}", "{face:{target:page}}a", "http://here.test/{run}"])
def test_placeholders_within_each_other_are_good(tmp_path: Path, url: str) -> None:
    text = PROBE.replace("{site}/", url).replace("result.status", "result.statu")
    assert [place[2] for place in refused(tmp_path, text)] == ["probe[0].expect"]


@pytest.mark.parametrize("source", ["fn f(t: i32) -> i32 {t}", "enum E{}", '{"agent": 1}', "{same:word}"])
def test_braces_of_a_source_are_its_own(source: str) -> None:
    assert not list(mistaken(source, points=False))
    assert list(mistaken("say {nmae}", points=False)) == [(4, "no placeholder {nmae}; did you mean 'name'?")]


def test_a_note_and_a_control_have_their_own_place(tmp_path: Path) -> None:
    text = PROBE + "control = 'result.p95 < 1.0'\nnote = { p95 = 'result.p95_ms', text = 'result.text' }\n"
    assert [place[:3] for place in refused(tmp_path, text)] == [
        (12, 19, "probe[0].control"),
        (13, 41, "probe[0].note"),
    ]


def test_a_text_over_lines_has_line_and_column(tmp_path: Path) -> None:
    text = PROBE.replace('"result.status == 200"', '"""\n  result.ok &&\n  \\"x\\" in result.secret"""')
    assert refused(tmp_path, text)[0][:2] == (12, 19)


def test_a_file_is_checked_like_a_folder(tmp_path: Path) -> None:
    path = tmp_path / "qa-x.md"
    path.write_text(HEAD + PROBE + "+++\nBody.\n", "utf-8")
    assert list(roster(path)[0]) == ["qa-x"]
    assert roster(path) == roster(tmp_path)
    path.write_text("nothing", "utf-8")
    assert [error.file for error in roster(path)[1]] == [str(path)]
