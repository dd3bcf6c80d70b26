"""The guard of a model's commands: arguments, never the text of a shell (acceptance row 67)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.fix.fixers.command_guard import refusal

ROW_67 = {
    "joined": ["git", "status", "&&", "git", "commit"],
    "joined in one word": ["git status && git commit"],
    "a shell": ["bash", "-c", "git push"],
    "a variable": ["GIT_DIR=/tmp/x", "git", "push"],
    "env": ["env", "X=1", "git", "push"],
    "a new line": ["git status\ngit commit"],
    "a new line between": ["ls", "\n", "git", "commit"],
    "a missing program": ["solc", "--version"],
}


@pytest.mark.parametrize("argv", ROW_67.values(), ids=ROW_67)
def test_the_variants_of_row_67_are_refused(argv: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fleet.fix.fixers.command_guard.PATH", "/nonexistent")
    assert refusal(argv)


@pytest.mark.parametrize(
    ("argv", "why"),
    [
        ([], "an empty command"),
        ([" "], "an empty command"),
        (["git", "log"], "git: there is no repository in the jail"),
        (["/usr/bin/git", "push"], "git: there is no repository in the jail"),
        (["./GIT", "push"], "git: there is no repository in the jail"),
        (["sh", "-c", "ls"], "sh: no shell reads commands here"),
        (["/bin/dash"], "dash: no shell reads commands here"),
        (["xargs", "rm"], "xargs: name the program itself"),
        (["timeout", "5", "ls"], "timeout: name the program itself"),
        (["sudo", "ls"], "sudo: nothing here runs as another user"),
        (["curl", "https://example.org"], "curl: there is no network in the jail"),
        (["pip3", "install", "x"], "pip: there is no network in the jail"),
        (["npm", "test"], "npm: there is no network in the jail"),
        (["rm", "-rf", "/"], "rm: not among the programs"),
        (["no-such-program"], "no-such-program: not among the programs"),
        (["ls", ";", "ls"], "';' means something to a shell only"),
        (["ls", "|", "wc"], "'|' means something to a shell only"),
        (["cat", "x", ">", "y"], "'>' means something to a shell only"),
        (["cat", "x", "2>&1"], "'2>&1' means something to a shell only"),
        (["echo", "`git push`"], "'`git push`' means something to a shell only"),
        (["echo", "$(git push)"], "'$(git push)' means something to a shell only"),
        (["ls;git"], "'ls;git' is not the name of one program"),
        (["`ls`"], "'`ls`' means something to a shell only"),
        (["ls|wc"], "'ls|wc' is not the name of one program"),
        (["A=1", "ls"], "a variable before a command"),
        (["A=1 ls"], "a variable before a command"),
        (["ls", "a\nb"], "a line break or a control character"),
        (["ls", "a\0b"], "a line break or a control character"),
        (["find", ".", "-exec", "git", "push"], "find -exec: not here"),
        (["find", ".", "-delete"], "find -delete: not here"),
        (["rg", "--pre=sh", "x"], "rg --pre=sh: not here"),
        (["sort", "--compress-program=sh"], "sort --compress-program=sh: not here"),
        (["go", "get", "example.org/x"], "go get: not here"),
        (["cargo", "publish"], "cargo publish: not here"),
        (["make", "deploy"], "make deploy: not here"),
        (["scripts/ls"], "ls: give its name alone"),
        (["/usr/bin/../../box/ls"], "ls: give its name alone"),
        (["ls", *["x"] * 200], "more than 128 arguments"),
        (["ls", "x" * 8_193], "more than 128 arguments, or one of more than 8192 characters"),
        ("ls", "a command is a list of arguments"),
        (["ls", 1], "a command is a list of arguments"),
    ],
)
def test_a_refusal_says_why(argv: Any, why: str) -> None:
    assert refusal(argv).startswith(why)


@pytest.mark.parametrize(
    "argv",
    [
        ["ls", "-la", "src"],
        ["/usr/bin/ls"],
        ["/opt/py/bin/python3.11", "-m", "pytest", "-q"],
        ["grep", "-rn", "a|b", "src"],
        ["find", ".", "-name", "*.py"],
        ["cat", "a b.txt"],
        ["sed", "-n", "1,20p", "src/x.py"],
    ],
)
def test_what_a_fix_needs_is_allowed(argv: list[str]) -> None:
    assert refusal(argv) == ""


def test_a_program_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fleet.fix.fixers.command_guard.PATH", "/nonexistent")
    assert refusal(["ls"]) == "ls: is not on this machine"


def test_a_command_of_the_repository_is_allowed_as_it_stands() -> None:
    own = [("npm", "test"), ("./run-tests",)]
    assert refusal(["npm", "test", "--", "one"], own=own) == ""
    assert refusal(["./run-tests"], own=own) == ""
    assert refusal(["npm", "publish"], own=own)
    assert refusal(["npm", "test", "&&", "git", "push"], own=own)
    assert refusal(["npm"], own=own)
    assert refusal(["npm", "test"], own=[()])


@given(st.lists(st.text(max_size=12), max_size=6))
def test_no_words_reach_a_program_that_is_not_listed(words: list[str]) -> None:
    for program in ("git", "bash", "env", "curl", "/usr/bin/git"):
        assert refusal([program, *words])


@given(st.lists(st.text(max_size=8), min_size=1, max_size=5))
def test_every_list_of_words_gets_an_answer(words: list[str]) -> None:
    assert isinstance(refusal(words), str)
