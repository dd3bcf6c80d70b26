"""Persona files: good ones load, bad ones are refused alone, with file, line, key and remedy."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fleet.drivers.expect_check import check
from fleet.errors import PersonaError
from fleet.files import ROOT
from fleet.personas.load import LIMIT, LoadedPersona, load_all, load_persona
from fleet.runs.call.guest_protocol import bad_args
from sandbox.tools import TOOLS

GOOD = """\
+++
name = "qa-probe"
surface = "compiler"
tools = ["qa_compile", "qa_call"]
triggers = [{ continuous = "30s", backoff = "2h" }, { on = "facets-changed" }]
budget = { calls = 20, writes = 3, wall = "10m" }

[[probe]]
id = "first"
severity = "low"
steps = [
  { tool = "qa_compile", args = { source = "fn f() {} # [[probe]] severity = 1" } },
  { tool = "qa_call", args = { target = "{name}", message = "hi" } },
]
expect = "result.ok"
finding = "the first thing is wrong"

[[probe]]
id = "second"  # severity = "not this one"
severity = "high"
steps = [{ tool = "qa_compile" }]
expect = "result.ok && size(results) == 1"
finding = "the second thing is wrong"
+++
You are qa-probe.
+++
"""
SPOILT = (  # replace, by, line, key, part of the message, part of the remedy
    ('surface = "compiler"', 'surface = "moon"', 3, "surface", "Input should be", "correct"),
    ('surface = "compiler"\n', "", 0, "surface", "is required", "add it"),
    ('tools = ["qa', 'tols = ["qa', 4, "tols", "unknown key; did you mean 'tools'?", "budget, driver"),
    ('"qa_call"]', '"qa_cal"]', 4, "tools", "no tool named 'qa_cal'; did you mean 'qa_call'?", "qa_compile"),
    ('"qa_call"]', '"qa_call", "qa_call"]', 4, "tools", "granted twice", "once"),
    ('backoff = "2h"', 'backof = "2h"', 5, "triggers[0].backof", "did you mean 'backoff'?", "continuous"),
    ('backoff = "2h"', 'backoff = "2 h"', 5, "triggers[0].backoff", "'2 h' is not a duration", "30s"),
    (
        "budget = { c",
        'driver = "retest"\nbudget = { c',
        9,
        "probe",
        "asks no questions of its own",
        "remove it",
    ),
    ('continuous = "30s", b', "b", 5, "triggers[0]", "exactly one of every, cron", "split"),
    ('{ on = "f', '{ every = "1h", on = "f', 5, "triggers[1]", "found every and on", "split"),
    (
        '{ on = "facets-changed"',
        '{ every = "1h", backoff = "2h"',
        5,
        "triggers[1].backoff",
        "only a",
        "remove",
    ),
    ('{ on = "facets-changed"', '{ on = " "', 5, "triggers[1].on", "names no event", "facets-changed"),
    ('{ on = "facets-changed"', '{ on = "facet-changed"', 5, "triggers[1].on", "'facets-changed'?", "hook"),
    ('{ on = "facets-changed"', '{ on = "file:"', 5, "triggers[1].on", "'' is not a path", "file:<path>"),
    ('{ on = "facets-changed"', '{ on = "hook:A/b"', 5, "triggers[1].on", "'A/b' is not a name", "hook"),
    ('{ on = "facets-changed"', '{ cron = "* * *"', 5, "triggers[1].cron", "five fields", "minute"),
    ('{ on = "facets-changed"', '{ cron = "61 * * * *"', 5, "triggers[1].cron", "'61' is no", "minute"),
    ('backoff = "2h"', 'backoff = "29s"', 5, "triggers[0].backoff", "shorter than continuous", "longest"),
    ('wall = "10m"', 'wall = "10x"', 6, "budget.wall", "'10x' is not a duration", "30s"),
    ('wall = "10m"', 'wall = "25h"', 6, "budget.wall", "at most a day", "30s"),
    ("calls = 20", "calls = 0", 6, "budget.calls", "greater than", "correct"),
    ("calls = 20", "cals = 20", 6, "budget.cals", "unknown key; did you mean 'calls'?", "valid keys"),
    ('budget = { calls = 20, writes = 3, wall = "10m" }\n', "", 4, "tools", "needs a budget", "budget = {"),
    ('severity = "low"', 'severity = "hi"', 10, "probe[0].severity", "Input should be", "correct"),
    ('severity = "high"', 'severity = "hi"', 20, "probe[1].severity", "Input should be", "correct"),
    ('severity = "high"\n', "", 18, "probe[1].severity", "is required", "add it"),
    ('id = "second"', 'id = "first"', 19, "probe[1].id", "used twice", "own id"),
    (
        'tool = "qa_call"',
        'tool = "qa_chain"',
        13,
        "probe[0].steps[1].tool",
        "not granted",
        "qa_compile, qa_call",
    ),
    (
        'message = "hi"',
        'message = "hi", massage = ""',
        13,
        "probe[0].steps[1].args",
        "/massage: ",
        "fleet personas tools qa_call",
    ),
    ('message = "hi"', "message = 7", 13, "probe[0].steps[1].args", "/message: ", "fleet personas tools"),
    (
        'message = "hi"',
        'message = "hi", fund = inf',
        13,
        "probe[0].steps[1].args",
        "finite",
        "fleet personas tools",
    ),
    (
        'message = "hi"',
        "message = 2020-01-01",
        13,
        "probe[0].steps[1].args",
        "only strings",
        "fleet personas tools",
    ),
    ('{ tool = "qa_compile" }', '{ toll = "qa_compile" }', 21, "probe[1].steps[0].toll", "'tool'?", "args"),
    ("size(results) == 1", "size(results == 1", 22, "probe[1].expect", "not a CEL expression", "results"),
    (
        'finding = "the second',
        'note = { x = "1 +" }\nfinding = "the second',
        23,
        "probe[1].note",
        "CEL",
        "CEL",
    ),
    ('"qa-probe"', '"qa-other"', 2, "name", "'qa-other' is in a file called qa-probe.md", "rename"),
    ('"qa-probe"', '"probe"', 2, "name", "'probe' is not a valid name", "qa- and small letters"),
    ("calls = 20", "calls = = 20", 6, "", "not TOML: Invalid value", "syntax"),
    ('id = "second"', 'id = "x"\nid = "second"', 20, "", "not TOML: Cannot overwrite", "syntax"),
    ("calls = 20", "calls = " + "9" * 5000, 2, "", "not TOML", "syntax"),
    ("calls = 20", "calls = " + "[" * 5000, 2, "", "nested too deeply", "flatten"),
    ("+++\nname", "name", 1, "", "no front matter", "+++"),
    ("+++\nname", "\n+++\nname", 1, "", "no front matter", "+++"),
    ("\n+++\nYou are qa-probe.\n+++\n", "\n", 23, "", "has no end", "+++"),
)


def _bad_args(tool: str, args: Mapping[str, Any]) -> str | None:
    return bad_args(TOOLS[tool], args)


def load(path: Path) -> LoadedPersona:
    return load_persona(path, tools=frozenset(TOOLS), bad_args=_bad_args, bad_expectation=check)


def refused(path: Path) -> PersonaError:
    with pytest.raises(PersonaError) as caught:
        load(path)
    assert caught.value.file == str(path)
    assert caught.value.remedy
    return caught.value


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "qa-probe.md"
    path.write_text(GOOD, "utf-8")
    return path


def test_good_file_loads(file: Path) -> None:
    loaded = load(file)
    assert (loaded.persona.name, loaded.path) == ("qa-probe", file)
    assert [probe.id for probe in loaded.persona.probe] == ["first", "second"]
    assert loaded.body == "You are qa-probe.\n+++\n"
    assert loaded.sha256 == hashlib.sha256(GOOD.encode()).hexdigest()


def test_windows_line_ends_are_fine(file: Path) -> None:
    file.write_bytes(GOOD.replace("\n", "\r\n").encode())
    assert load(file).persona == load_text(file, GOOD).persona


def load_text(file: Path, text: str) -> LoadedPersona:
    file.write_text(text, "utf-8")
    return load(file)


@pytest.mark.parametrize(
    ("old", "new", "line", "key", "message", "remedy"), SPOILT, ids=[f"{s[3]}-{s[4]}"[:40] for s in SPOILT]
)
def test_bad_file_says_where_and_what_to_do(
    file: Path, old: str, new: str, line: int, key: str, message: str, remedy: str
) -> None:
    assert old in GOOD
    file.write_text(GOOD.replace(old, new, 1), "utf-8")
    error = refused(file)
    assert (error.line, error.key) == (line, key)
    assert message in error.reason
    assert remedy in error.remedy
    assert str(error).startswith(f"{file}:{line}:" if line else f"{file}: ")


def test_every_kind_of_trigger_is_taken(file: Path) -> None:
    triggers = (
        '{ every = "1s" }, { cron = "*/5 0-6 * * MON-fri" }, { continuous = "30s", backoff = "30s" }, '
        '{ on = "sponsor-low" }, { on = "file:/srv/release.txt" }, { on = "hook:deploy-1" }'
    )
    old = '{ continuous = "30s", backoff = "2h" }, { on = "facets-changed" }'
    assert len(load_text(file, GOOD.replace(old, triggers)).persona.triggers) == 6


def test_table_syntax_has_lines_too(file: Path) -> None:
    old = 'budget = { calls = 20, writes = 3, wall = "10m" }\n'
    file.write_text(GOOD.replace(old, "[budget]\ncalls = 20\n\nwall = '9q'\n"), "utf-8")
    assert (refused(file).line, refused(file).key) == (9, "budget.wall")


def test_looking_needs_no_budget_and_acting_does(file: Path) -> None:
    looks = GOOD.replace('"qa_call"]', '"qa_fetch"]').replace("qa_call", "qa_fetch")
    looks = looks.replace('target = "{name}", message = "hi"', 'url = "{site}/llms.txt"')
    budget = 'budget = { calls = 20, writes = 3, wall = "10m" }\n'
    assert load_text(file, looks.replace(budget, "")).persona.budget is None


def test_control_characters_do_not_reach_the_message(file: Path) -> None:
    file.write_text(GOOD.replace("tools = [", '"to\\u001b[31mols" = ['), "utf-8")
    assert "\x1b" not in str(refused(file)) + refused(file).remedy


def test_size_is_capped(file: Path) -> None:
    room = LIMIT - len(GOOD.encode())
    file.write_text(GOOD + "x" * room, "utf-8")
    assert len(load(file).body) > room
    file.write_text(GOOD + "x" * (room + 1), "utf-8")
    assert "larger than 65536 bytes" in refused(file).reason


def test_only_utf8_is_read(file: Path) -> None:
    file.write_bytes(GOOD.replace("hi", "h\xff").encode("latin-1"))
    assert (refused(file).reason, refused(file).line) == ("is not UTF-8", 13)


def test_only_regular_files_are_read(tmp_path: Path, file: Path) -> None:
    link, pipe, folder = (tmp_path / f"qa-{kind}.md" for kind in ("link", "pipe", "folder"))
    link.symlink_to(file)
    os.mkfifo(pipe)
    folder.mkdir()
    assert refused(link).reason == "cannot be read: is a symbolic link"
    assert refused(pipe).reason == "is not a regular file"
    assert refused(folder).reason == "cannot be read: Is a directory"
    assert refused(tmp_path / "qa-none.md").reason == "cannot be read: No such file or directory"
    with pytest.raises(PersonaError, match="bad path"):
        load(tmp_path / "qa-\0.md")


def test_a_bad_file_is_refused_alone(tmp_path: Path, file: Path) -> None:
    (tmp_path / "qa-bad.md").write_text("no front matter", "utf-8")
    (tmp_path / "qa-copy.md").write_text(GOOD, "utf-8")
    (tmp_path / "qa-loop.md").symlink_to("qa-loop.md")
    (tmp_path / "README.md").write_text("about", "utf-8")
    (tmp_path / "notes.txt").write_text("about", "utf-8")
    good, bad = load_all(tmp_path, tools=frozenset(TOOLS), bad_args=_bad_args, bad_expectation=check)
    assert [loaded.path for loaded in good] == [file]
    assert [(Path(error.file).name, error.key) for error in bad] == [
        ("qa-bad.md", ""),
        ("qa-copy.md", "name"),
        ("qa-loop.md", ""),
    ]
    assert "'qa-probe' is in a file called qa-copy.md" in bad[1].reason


def test_missing_folder_is_one_error(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    good, bad = load_all(gone, tools=(), bad_args=_bad_args, bad_expectation=check)
    assert (good, [error.file for error in bad]) == ([], [str(gone)])


def test_shipped_personas_are_good() -> None:
    good, bad = load_all(ROOT / "personas", tools=frozenset(TOOLS), bad_args=_bad_args, bad_expectation=check)
    assert [str(error) for error in bad] == []
    names = {
        "qa-fuzz",
        "qa-mcp",
        "qa-pay",
        "qa-perf",
        "qa-registry",
        "qa-retest",
        "qa-security",
        "qa-smoke",
        "qa-triage",
        "qa-ux",
        "qa-watch",
    }
    assert names <= {loaded.persona.name for loaded in good}


def never(tool: str, args: Mapping[str, Any]) -> None:
    return None


FILES = settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def survives(path: Path, raw: bytes) -> None:
    path.write_bytes(raw)
    try:
        load_persona(path, tools=frozenset(TOOLS), bad_args=never, bad_expectation=lambda *_: ())
    except PersonaError as error:
        refusal = error
    else:
        return
    assert 0 <= refusal.line <= raw.count(b"\n") + 1


@FILES
@given(st.binary(max_size=300), st.booleans())
def test_any_bytes_are_refused_cleanly(file: Path, raw: bytes, fenced: bool) -> None:
    survives(file, b"+++\n" + raw + b"\n+++\n" if fenced else raw)


@FILES
@given(st.integers(0, len(GOOD)), st.integers(0, 12), st.text(max_size=12) | st.sampled_from("[]{}\"'=.\n+#"))
def test_damaged_files_are_refused_cleanly(file: Path, at: int, cut: int, put: str) -> None:
    survives(file, (GOOD[:at] + put + GOOD[at + cut :]).encode("utf-8", "surrogatepass"))


def test_two_probes_with_the_same_steps_would_hide_each_other(tmp_path: Path) -> None:
    steps = GOOD[GOOD.index("steps = [\n") : GOOD.index("]\nexpect") + 1]
    path = tmp_path / "qa-probe.md"
    path.write_text(GOOD.replace('steps = [{ tool = "qa_compile" }]', steps))
    error = refused(path)
    assert (error.key, error.reason) == ("probe[1].steps", "'second' takes the same steps as 'first'")


def test_a_probe_that_changes_a_page_needs_a_budget(tmp_path: Path) -> None:
    path = tmp_path / "qa-cart.md"
    text = (
        '+++\nname = "qa-cart"\nsurface = "ux"\ntools = ["qa_fetch"]\n[[probe]]\nid = "p"\nseverity = "low"\n'
        'steps = [{ tool = "qa_fetch", args = { url = "{site}/cart", method = "POST" } }]\n'
        'expect = "result.ok"\nfinding = "the cart takes no goods"\n+++\nYou buy.\n'
    )
    path.write_text(text)
    assert "qa_fetch acts on the platform and needs a budget" in str(refused(path))
    path.write_text(text.replace('"POST"', '"HEAD"'))
    assert load(path).persona.name == "qa-cart"
