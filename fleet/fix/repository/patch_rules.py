"""Which patches may be proposed: pure rules, each with a name; the first that is broken refuses.

The limits of an operator are the paths of the repository, and files and lines of `[propose]`. Everything
else holds for every repository; its lists of paths are in patch_rules.toml.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files
from pathlib import PurePosixPath

from fleet.config.propose import ProposeSection, RepositorySection
from fleet.errors import PatchRefused
from fleet.fix.model import CheckedPatch, RegressionTest
from fleet.fix.repository.patch_text import FileChange, read_patch
from fleet.text import clean, line
from sandbox.secrets.patterns import SECRETS

BYTES = 512 * 1024
"""Most bytes of a patch."""
LINE = 1_000
"""Most characters of an added line: a longer one hides what it does."""
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?\Z")
_FILE_MODES = {"new file mode": {"100644"}, "deleted file mode": {"100644"}, "index": {"100644", "100755"}}
_JAIL = re.compile(
    r"(?<![\w./-])/box(?![\w.-])|/opt/(?:sandbox|site|py)(?![\w-])|qa_tree|qa_task|QA_PLACES|QA_BROKER"
)
"""Places and variables that there are in a jail alone."""
_KINDS = {"120000": "symlink", "160000": "submodule"}
_MARKER = 8
"""A shorter name or marker of a test could stand in a source by chance."""


def check_patch(
    text: bytes, *, base: str, test: RegressionTest, repository: RepositorySection, limits: ProposeSection
) -> CheckedPatch:
    """A patch that keeps to every limit, with what it changes.

    Args:
        text: from `TreePort.diff`, the regression test left out.
        base: the commit that it applies to.

    Raises:
        PatchRefused: names the rule and what breaks it. The rules: `base` `size` `format` `name` `binary`
            `symlink` `submodule` `mode` `case` `regression-test` `repository` `workflows` `locks` `setup`
            `hidden` `tests` `path` `files` `lines` `control` `line` `secret` `detects-test` `detects-jail`
            `empty`.
    """
    if not _COMMIT.match(base):
        raise PatchRefused("the base is not a commit", rule="base")
    if len(text) > BYTES:
        raise PatchRefused(f"the patch has more than {BYTES} bytes", rule="size")
    changes = read_patch(text)
    if not changes and limits.fixer != "none":
        raise PatchRefused("nothing was changed", rule="empty")
    for change in changes:
        _kind(change)
    _names(changes, test)
    for change in changes:
        _place(change, repository)
    added = sum(len(change.added) for change in changes)
    removed = sum(change.removed for change in changes)
    if len(changes) > limits.files:
        raise PatchRefused(f"{len(changes)} files are changed; the limit is {limits.files}", rule="files")
    if added + removed > limits.lines:
        raise PatchRefused(f"{added + removed} lines are changed; the limit is {limits.lines}", rule="lines")
    for change in changes:
        _content(change, test)
    return CheckedPatch(base, text, test, tuple(change.path for change in changes), added, removed)


def _kind(change: FileChange) -> None:
    for mode in change.modes.values():
        if mode in _KINDS:
            raise _refused(_KINDS[mode], change, f"is a {_KINDS[mode]}")
    if change.binary:
        raise _refused("binary", change, "is not text")
    for said, mode in change.modes.items():
        if mode not in _FILE_MODES.get(said, ()):
            raise _refused(
                "mode", change, "its mode is changed" if "file" not in said else f"has mode {mode}"
            )


def _names(changes: tuple[FileChange, ...], test: RegressionTest) -> None:
    seen: set[str] = set()
    for change in changes:
        path = change.path.lower()
        parts = path.split("/")
        if not all(part.strip(" .") for part in parts) or "\\" in path or not path.isprintable():
            raise _refused("name", change, "not a plain path")
        if path in seen:
            raise _refused("case", change, "named twice, upper and lower case aside")
        seen.add(path)
        ours = test.path.lower()
        if path == ours or path.startswith(ours + "/") or ours.startswith(path + "/"):
            raise _refused("regression-test", change, "is the regression test")


def _place(change: FileChange, repository: RepositorySection) -> None:
    for rule, patterns in _lists("paths").items():
        if _matches(change.path, patterns):
            raise _refused(rule, change, "is changed by people only")
    for rule, kinds in _kinds().items():
        if any(kind.search(change.path.lower()) for kind in kinds):
            raise _refused(rule, change, "is of a kind that is changed by people only")
    if not change.new and _matches(change.path, _lists("tests")["files"]):
        raise _refused("tests", change, "is a test that is there already")
    if not any(glob(pattern).match(change.path) for pattern in repository.paths):
        raise _refused("path", change, "is not among the paths that a fix may change")


def _content(change: FileChange, test: RegressionTest) -> None:
    names = [name for name in (PurePosixPath(test.path).stem, test.marker) if len(name) >= _MARKER]
    lines = list(_decoded(change))
    for text in lines:
        if len(text) > LINE:
            raise _refused("line", change, f"an added line has more than {LINE} characters")
        if _JAIL.search(text):
            raise _refused("detects-jail", change, "an added line names a place of the jail")
        if any(name in text for name in names):
            raise _refused("detects-test", change, "an added line names the regression test")
    joined = "\n".join(lines)
    for secret in SECRETS:
        if any(secret.leaks(found) for found in secret.pattern.finditer(joined)):
            raise _refused("secret", change, f"an added line looks like a secret ({secret.kind})")


def _decoded(change: FileChange) -> Iterator[str]:
    """Added lines as text, without their line ends; what cannot be seen is refused."""
    for raw in change.added:
        try:
            text = raw.removesuffix(b"\r").decode("utf-8")
        except UnicodeDecodeError:
            raise _refused("control", change, "an added line is not UTF-8") from None
        shown = text.replace("\t", " ")
        if clean(shown, len(shown) + 1) != shown:
            raise _refused("control", change, "an added line has characters that are not shown")
        yield text


def _refused(rule: str, change: FileChange, why: str) -> PatchRefused:
    return PatchRefused(f"{line(change.path, 120)}: {why}", rule=rule)


@cache
def _lists(table: str) -> dict[str, list[str]]:
    text = files(__package__).joinpath("patch_rules.toml").read_text(encoding="utf-8")
    found: dict[str, list[str]] = tomllib.loads(text)[table]
    return {rule: [pattern.lower() for pattern in patterns] for rule, patterns in found.items()}


@cache
def _kinds() -> dict[str, list[re.Pattern[str]]]:
    text = files(__package__).joinpath("patch_rules.toml").read_text(encoding="utf-8")
    return {
        rule: [re.compile(kind) for kind in kinds] for rule, kinds in tomllib.loads(text)["kinds"].items()
    }


def _matches(path: str, patterns: Iterable[str]) -> bool:
    path = path.lower()
    return any(glob(pattern if "/" in pattern else f"**/{pattern}").match(path) for pattern in patterns)


@cache
def glob(pattern: str) -> re.Pattern[str]:
    """A pattern of paths: `*` and `?` stop at a slash, `**` does not, `**/` is also no folder at all."""
    words = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    pieces = re.split(r"(\*\*/|\*\*|\*|\?)", pattern)
    return re.compile("".join(words.get(piece, re.escape(piece)) for piece in pieces) + r"\Z", re.DOTALL)
