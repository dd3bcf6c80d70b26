"""The few fields of GitHub's answers that are used; whatever else is in them is dropped unread."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

_Hash = Annotated[str, StringConstraints(pattern=r"^([0-9a-f]{40}|[0-9a-f]{64})$")]
_Page = Annotated[str, StringConstraints(pattern=r"^https?://[!-~]{1,400}$")]
_Number = Annotated[int, Field(gt=0, lt=2**53)]


class _GitHubAnswer(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, strict=True)


class GitHubLabel(_GitHubAnswer):
    """A label of a pull request."""

    name: str


class _HeadRepository(_GitHubAnswer):
    full_name: str


class GitHubHead(_GitHubAnswer):
    """Where a pull request comes from; `repo` is null once that repository is gone."""

    ref: str
    sha: _Hash
    repo: _HeadRepository | None


class GitHubPull(_GitHubAnswer):
    """A pull request."""

    number: _Number
    html_url: _Page
    state: Literal["open", "closed"]
    merged_at: str | None
    body: str | None
    head: GitHubHead
    labels: list[GitHubLabel]

    @property
    def outcome(self) -> Literal["open", "merged", "closed"]:
        return "merged" if self.merged_at else self.state


class GitHubComment(_GitHubAnswer):
    """A comment on a pull request."""

    html_url: _Page
    body: str = ""


class _PullOfIssue(_GitHubAnswer):
    merged_at: str | None = None


class GitHubIssue(_GitHubAnswer):
    """What a search finds: an issue, or a pull request when `pull_request` is set."""

    number: _Number
    html_url: _Page
    title: str
    state: Literal["open", "closed"]
    body: str | None = None
    pull_request: _PullOfIssue | None = None


class GitHubFound(_GitHubAnswer):
    """One page of a search."""

    incomplete_results: bool
    items: list[GitHubIssue]


class GitHubProblem(_GitHubAnswer):
    """One error of a refused request: a text, or an object that may have a message."""

    message: str | None = None
    field: str | None = None
    code: str | None = None


class GitHubRefusal(_GitHubAnswer):
    """The body of an error; `errors` explain a 422."""

    message: str = ""
    errors: list[GitHubProblem | str] = []
