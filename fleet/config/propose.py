"""What an operator configures for the rung `propose`: source repositories, and how a fix is made."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints, field_validator, model_validator

from fleet.config.section import HttpUrl, Section, in_the_clear

Argv = Annotated[tuple[Annotated[str, StringConstraints(min_length=1)], ...], Field(min_length=1)]
"""A command as a list of arguments; no shell reads it."""
BranchName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._/-]{0,99}$")]
RepositoryName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9-]{0,47}$")]
RepositoryPath = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9._@+*?{}-][A-Za-z0-9._@+*?{}/-]{0,199}$")
]
"""A path, or a pattern of paths, relative to the repository."""


class ServiceSection(Section):
    """How the repository's build is started as a platform, in a jail; the tools then ask it."""

    command: Argv
    """argv in the work tree; `{port}` is the port of 127.0.0.1 that it must listen on, `{python}` the jail's
    interpreter."""
    ready: Annotated[str, StringConstraints(pattern=r"^/[!-~]{0,199}$")] = "/"
    """Path that answers once it is ready, at any status below 500."""
    starts_s: float = Field(default=20.0, ge=1, le=300)
    """Longest start, in seconds."""


class TreeCompilerSection(Section):
    """The compiler of the repository's build, called in a jail as a profile's compiler is."""

    command: Argv
    """argv in the work tree, source on standard input, output on standard output; `{tree}` is the work tree,
    `{python}` the jail's interpreter."""
    loader: tuple[str, ...] = ()
    """argv that takes a module on standard input and prints its entry point."""


SHIPPED_TEMPLATES = ("pytest-compiler", "pytest-service")


class RegressionSection(Section):
    """Where a regression test goes, and from which template it is made."""

    path: RepositoryPath
    """Path of the new file; `{item}` is the item's fingerprint. It must not exist yet."""
    template: str
    """`pytest-compiler` or `pytest-service` (shipped), or the absolute path of a Jinja template."""
    command: Argv
    """argv that runs only that test, in the work tree; `{path}` is the file, `{python}` the interpreter."""
    fixture: Annotated[str, Field(pattern=r"^(?:[a-z_][a-z0-9_]*)?$")] = ""
    """A pytest fixture of the repository that starts the service, and is its URL or has it as `url`
    (`live_server`): a test from `pytest-service` then has some 20 lines, and starts nothing by itself."""

    @field_validator("template")
    @classmethod
    def _known(cls, value: str) -> str:
        if value not in SHIPPED_TEMPLATES and not value.startswith("/"):
            shipped = " or ".join(SHIPPED_TEMPLATES)
            raise ValueError(f"write {shipped}, or the absolute path of a template")
        return value


class GitHubSection(Section):
    """Proposals as draft pull requests by GitHub's REST API."""

    repository: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]{1,39}/[A-Za-z0-9_.-]{1,100}$")]
    """`owner/name`."""
    api: HttpUrl = "https://api.github.com"
    """Base URL of the API. Plain http is for loopback only."""
    token_file: str = ""
    """A fine-grained token, mode 0600: contents and pull requests may be written, nothing else; relative to
    the state directory. While empty: systemd's credential `github.<name>`, else `keys/github.<name>`."""
    labels: tuple[Annotated[str, StringConstraints(min_length=1, max_length=50)], ...] = ("qa-fleet",)
    """Labels of a proposal."""

    _clear = field_validator("api")(in_the_clear)


class RepositorySection(Section):
    """A source repository of the platform: what may be changed there, and how it is built and tested."""

    url: Annotated[str, StringConstraints(min_length=1, max_length=500)]
    """A path, or a URL of git: file://, https:// (http:// on loopback only)."""
    branch: BranchName = "main"
    """Branch that a proposal is made against."""
    surfaces: Annotated[tuple[str, ...], Field(min_length=1)]
    """Surfaces of the items that are fixed here: `compiler`, `ux` …"""
    build: tuple[Argv, ...] = ()
    """Commands that build a fresh work tree, in order, in a jail without a network."""
    test: Argv
    """The repository's own test command, in a jail; it must pass before and after."""
    timeout_s: float = Field(default=300.0, ge=1, le=3600)
    """Longest time of each command, in seconds."""
    paths: Annotated[tuple[RepositoryPath, ...], Field(min_length=1)]
    """Patterns of the paths that a fix may change (`src/**`)."""
    regression: RegressionSection
    """The regression test."""
    service: ServiceSection | None = None
    """The build as a platform, for items of agents and pages."""
    compiler: TreeCompilerSection | None = None
    """The build's compiler, for items of the compiler."""
    mounts: dict[RepositoryName, str] = {}
    """Folders that builds and tests need besides /usr, read-only at /opt/<name>."""
    reviewers: tuple[Annotated[str, StringConstraints(min_length=1, max_length=100)], ...] = ()
    """Who is asked for a review."""
    github: GitHubSection | None = None
    """GitHub; without it a branch is pushed, and the request is written as text (git request-pull)."""

    @model_validator(mode="after")
    def _asked(self) -> RepositorySection:
        if self.service is None and self.compiler is None:
            raise ValueError("name the build's `compiler`, its `service`, or both: a repro is run against it")
        return self


class ProposeSection(Section):
    """How fixes are made, and the limits of what is proposed."""

    fixer: Literal["none", "command", "model"] = "none"
    """`none`: a draft with the failing regression test only. `command`: an agent program that edits a work
    tree in a jail. `model`: the configured model, with tools that act in a jail."""
    command: tuple[str, ...] = ()
    """For `command`: argv in the jail; the task is on standard input and in the file `{task}`."""
    mounts: dict[RepositoryName, str] = {}
    """Folders that the command needs besides /usr, read-only at /opt/<name>."""
    environment: dict[Annotated[str, StringConstraints(pattern=r"^[A-Z_][A-Z0-9_]{0,40}$")], str] = {}
    """Variables of its environment; `{endpoint}` in a value is where the endpoint is reached."""
    endpoint: HttpUrl | Literal[""] = ""
    """The only URL that the command may reach: its model's. A key for it stays outside of the jail."""
    endpoint_key_file: str = ""
    """That key, mode 0600, relative to the state directory: added to each request outside of the jail."""
    endpoint_header: Literal["authorization", "x-api-key", "x-goog-api-key"] = "authorization"
    """Header that carries the key; `authorization` as a bearer token."""
    rounds: int = Field(default=3, strict=True, ge=1, le=10)
    """Most attempts at one fix; each but the first is given what the one before failed at."""
    per_item: int = Field(default=1, strict=True, ge=1, le=5)
    """Most open proposals of one item."""
    open: int = Field(default=3, strict=True, ge=1, le=100)
    """Most open proposals in all."""
    files: int = Field(default=8, strict=True, ge=1, le=100)
    """Most files that one fix changes."""
    lines: int = Field(default=300, strict=True, ge=1, le=5000)
    """Most lines that one fix adds and removes, together."""

    _clear = field_validator("endpoint")(in_the_clear)
