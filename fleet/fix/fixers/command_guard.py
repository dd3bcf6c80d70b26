"""Which commands a model may run over a work tree: judged as arguments, never as the text of a shell.

The jail is what holds a command: it has no network, no secret and no repository. This guard is a second,
independent fence, which also tells a model early what cannot work: no rule for a program means no. git is
refused altogether, reading included: there is no repository in the jail, and one that a command made there
would be refused with the patch.
"""

from __future__ import annotations

import re
import shutil
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import PurePosixPath
from typing import Any

WORDS = 128
"""Most arguments of a command."""
CHARACTERS = 8_192
"""Most characters of one argument."""
PATH = "/usr/local/bin:/usr/bin:/bin"
"""Where a program is looked for: what a jail sees of this machine."""

_OPERATORS = frozenset({"&&", "||", ";", ";;", "|", "|&", "&", "!", "(", ")", "{", "}", "[[", "]]"})
_REDIRECTION = re.compile(r"\d*(?:>>?|<<?<?|&>>?|>&|<&)[&\w./-]*\Z")
_SHELL = re.compile(r"[\s;&|`$<>(){}\"'\\*?!#~=]")
_SUBSTITUTION = re.compile(r"\A(?:`.*`?|.*`|\$\(.*)\Z", re.DOTALL)
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_VERSION = re.compile(r"(?<=[a-z+])-?\d+(?:\.\d+)*\Z")
_ROOTS = ("/usr/local/bin/", "/usr/bin/", "/bin/", "/opt/")


def refusal(argv: Sequence[str], *, own: Iterable[Sequence[str]] = ()) -> str:
    """Why a command may not run, in words for a model; "" if it may.

    `own` are commands that the repository's configuration names: one that begins with all words of such a
    command is allowed, as far as it is made of plain arguments.
    """
    if not argv or not argv[0].strip():
        return "an empty command"
    if isinstance(argv, str) or not all(isinstance(word, str) for word in argv):
        return "a command is a list of arguments"
    if len(argv) > WORDS or any(len(word) > CHARACTERS for word in argv):
        return f"more than {WORDS} arguments, or one of more than {CHARACTERS} characters"
    if any(_CONTROL.search(word) for word in argv):
        return "a line break or a control character in an argument: write a file, and run that"
    for word in argv:
        if word in _OPERATORS or _REDIRECTION.match(word) or _SUBSTITUTION.match(word):
            return f"{word[:40]!r} means something to a shell only: no shell reads commands here"
    if any(list(argv[: len(command)]) == list(command) for command in own if command):
        return ""
    return _program(argv[0]) or _arguments(argv) or _missing(argv[0])


def _program(word: str) -> str:
    if "=" in word:
        return "a variable before a command: name the program first"
    if _SHELL.search(word):
        return f"{word[:40]!r} is not the name of one program"
    name = _name(word)
    for reason, names in _data()["refused"].items():
        if name in names:
            return f"{name}: {reason}"
    if name not in _data()["programs"]:
        return f"{name[:40]}: not among the programs that may be run here"
    if "/" in word and (not word.startswith(_ROOTS) or ".." in word.split("/")):
        return f"{name}: give its name alone"
    return ""


def _missing(word: str) -> str:
    """A program that no jail sees; what is mounted at /opt is known to the jail only."""
    there = word.startswith("/opt/") or shutil.which(word, path=PATH) is not None
    return "" if there else f"{_name(word)}: is not on this machine"


def _arguments(argv: Sequence[str]) -> str:
    """The words of a program that make it start another one, or leave the jail's task."""
    name = _name(argv[0])
    for word in argv[1:]:
        if word.partition("=")[0] in _data()["words"].get(name, ()):
            return f"{name} {word[:40]}: not here"
    return ""


def _name(word: str) -> str:
    """A program's name: without its folder, in lower case, and without a version (`python3.11`)."""
    name = PurePosixPath(word).name.lower()
    return _VERSION.sub("", name)


@cache
def _data() -> Mapping[str, Any]:
    text = files(__package__).joinpath("command_guard.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)
