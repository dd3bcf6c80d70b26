"""Plain git, run with nothing of this machine: the one way in which the fleet starts it.

git is started by its arguments, which no shell reads, with an environment and a configuration of ours
(`git.toml`) and nothing inherited but PATH: no hook, credential helper, prompt, pager, filter, external
diff, signature, submodule or maintenance. It ends with this process, however that dies. A token is in the
environment of that one process, never in its arguments or on disk, and is masked in what git says.
"""

from __future__ import annotations

import base64
import os
import shutil
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from fleet.command import run_command
from fleet.config.section import in_the_clear
from fleet.errors import FixError
from fleet.findings.known_secrets import MIN_SECRET
from fleet.findings.redact import Redactor
from fleet.http_client import on_record
from fleet.text import line

DEADLINE_S = 120.0
"""Longest run of one git command, its transfers included, in seconds."""
OUTPUT = 16 * 1024 * 1024
"""Most bytes that a command may print."""
_REPORTS, _SUMMARY = ("fatal: ", "error: ", "remote: ", " ! ["), "error: failed to push some refs"
IDENTITY = "QA fleet <qa-fleet@localhost>"
"""Author and committer of every commit of ours; as in git.toml."""


@dataclass(frozen=True, slots=True)
class GitToken:
    """A token for one remote. `url` is the prefix that it is sent to; GitHub takes any user's name."""

    url: str
    token: str = field(repr=False)

    def header(self) -> str:
        """The value of the header that carries it; FixError for one that cannot be sent or masked."""
        token = self.token
        if len(token) < MIN_SECRET or not (token.isascii() and token.isprintable()):
            raise FixError("the token of a repository is not a token", remedy="write the token file again")
        return "Authorization: Basic " + base64.b64encode(f"x-access-token:{token}".encode()).decode()


@dataclass(frozen=True, slots=True, kw_only=True)
class GitPlace:
    """What a command works on: all of it named, nothing found by git itself.

    `objects` is a folder for new objects, which reads those of the repository and adds nothing to them.
    """

    repository: Path
    tree: Path | None = None
    index: Path | None = None
    objects: Path | None = None

    def environment(self) -> dict[str, str]:
        found = {"GIT_DIR": str(self.repository)}
        if self.tree is not None:
            found["GIT_WORK_TREE"] = str(self.tree)
        if self.index is not None:
            found["GIT_INDEX_FILE"] = str(self.index)
        if self.objects is not None:
            found["GIT_OBJECT_DIRECTORY"] = str(self.objects)
            found["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = str(self.repository / "objects")
        return found


def remote_url(url: str) -> str:
    """The URL or path of a remote as git is given it; FixError for one that git must not be asked for.

    Allowed are absolute paths, file://, https://, and http:// on loopback; no user or password in them.
    """
    if url.startswith("/"):
        return url
    parts = urlsplit(url)
    problem = ""
    if parts.scheme not in ("file", "http", "https") or "://" not in url or not url.isprintable():
        problem = "is not a path or a URL of file, https, or http on loopback"
    elif parts.username or parts.password:
        problem = "has a user or a password in it"
    try:
        in_the_clear(url)
    except ValueError as error:
        problem = str(error)
    if problem:
        shown = line(parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl(), 80)
        raise FixError(f"{shown}: {problem}", remedy="correct the `url` of the repository in fleet.toml")
    return url


class Git:
    """Starts git; holds no state and no secret."""

    def __init__(self, executable: str = "git", *, deadline_s: float = DEADLINE_S) -> None:
        self._executable, self._deadline_s = executable, deadline_s

    async def run(  # noqa: PLR0913  a git command and its surroundings
        self,
        *words: str,
        place: GitPlace | None = None,
        stdin: bytes = b"",
        token: GitToken | None = None,
        limit: int = OUTPUT,
        fine: Sequence[int] = (0,),
        extra: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> bytes:
        """Run one command and return what it printed.

        Args:
            words: the arguments after `git`.
            limit: most bytes that it may print.
            fine: exit codes that are an answer.
            extra: further variables, such as a commit's date.

        Raises:
            FixError: git ended otherwise, took too long or printed too much; with its own last line.
        """
        header = token.header() if token else ""
        secrets = Redactor([token.token, header.rpartition(" ")[2]]) if token else Redactor()
        environment = _environment(token, header, words)
        environment |= (place.environment() if place else {}) | dict(extra or {})
        what = f"git {words[0]}"
        remote = next((urlsplit(word) for word in words if word.startswith(("https://", "http://"))), None)
        with on_record("GIT", remote.netloc, words[0]) if remote else nullcontext():
            try:
                ended = await run_command(
                    [*_launch(self._executable, environment["PATH"]), *words],
                    env=environment,
                    limit=limit,
                    seconds=self._deadline_s,
                    stdin=stdin,
                    cwd=cwd,
                )
            except (OSError, ValueError) as error:
                raise FixError(f"{what}: {line(str(error))}") from None
            if ended.late:
                raise FixError(
                    f"{what}: not done within {self._deadline_s:g} s", remedy="propose again later"
                )
            if ended.flooded:
                raise FixError(
                    f"{what}: more than {limit} bytes", remedy="the repository is too large for this"
                )
            if ended.status not in fine:
                raise _failure(what, ended.status, secrets.text(ended.errors.decode("utf-8", "replace")))
        return bytes(ended.output)


def _launch(executable: str, path: str) -> list[str]:
    """What starts git so that it ends with this process; FixError without git or what this needs."""
    launch = _data()["launch"]
    words = list(launch["words"])
    for name, package in ((executable, "git"), (words[0], "util-linux")):
        if shutil.which(name, path=path) is None:
            raise FixError(f"{line(name, 80)}: not found", remedy=f"install {package}, or check PATH")
    return [*words, launch["script"], "git", str(os.getpid()), executable]


@cache
def _data() -> Mapping[str, Any]:
    return tomllib.loads(files(__package__).joinpath("git.toml").read_text(encoding="utf-8"))


def _environment(token: GitToken | None, header: str, words: Sequence[str]) -> dict[str, str]:
    """All variables of one git; http is allowed only to a command that names a loopback URL."""
    clear = any(word.startswith("http://") for word in words)
    for word in words:
        if "://" in word or "::" in word:
            remote_url(word)
    settings = dict(_data()["config"])
    for protocol in ("file", "https", *(["http"] if clear else [])):
        settings[f"protocol.{protocol}.allow"] = "always"
    if token is not None:
        settings[f"http.{remote_url(token.url)}.extraHeader"] = header
    counted: dict[str, str] = {"GIT_CONFIG_COUNT": str(len(settings))}
    for number, (key, value) in enumerate(settings.items()):
        counted |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return {"PATH": os.environ.get("PATH", os.defpath), **_data()["environment"], **counted}


def _failure(what: str, code: int | None, said: str) -> FixError:
    """Git's own last line of importance, and what to do about it."""
    lines = [text for text in said.splitlines() if text.strip()]
    reports = [text for text in lines if text.startswith(_REPORTS) and _SUMMARY not in text] or lines
    last = line(reports[-1]) if reports else f"ended with {code}"
    remedy = next((row["remedy"] for row in _data()["remedies"] if row["says"] in said.lower()), "")
    return FixError(f"{what}: {last}", remedy=remedy)
