"""The row of steps of one `qa_account` at a site with forms, read step by step. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from fleet.oracles.model import Exchange

ANSWERED = frozenset((200, 301, 302, 303, 307, 308, 400, 401, 403, 404, 405, 410, 422))
"""Statuses of a platform that works: it serves, leads on, or refuses."""
NOBODYS = "{id}90909"
"""An id that no thing has, beside that of one that was made."""


class SiteStep(NamedTuple):
    """One step and its answer; `page` is that of its form."""

    who: str
    method: str
    path: str
    given: Mapping[str, Any]
    page: str
    got: Mapping[str, Any]

    @property
    def status(self) -> int:
        return int(self.got.get("status", 0))

    @property
    def good(self) -> bool:
        return 200 <= self.status < 300

    @property
    def taken(self) -> bool:
        """Whether a form was not refused by its status."""
        return 200 <= self.status < 400

    @property
    def named(self) -> bool:
        """Whether it is served as the account that asks."""
        return self.good and bool(self.got.get("named"))

    @property
    def about(self) -> bool:
        """Whether it names the thing last made."""
        return "{id}" in self.path or any("{id}" in str(one) for one in self.given.values())

    @property
    def of_one(self) -> bool:
        """Whether it names that, or the account that made it."""
        named = f"{self.path} {list(self.given.values())}"
        return self.about or "{one-id}" in named or "{one}" in named

    def shows(self, mark: str) -> bool:
        """Whether it is served with the mark of an account."""
        return self.good and bool(self.got.get(mark))

    def offers(self, *paths: str) -> bool:
        """Whether it links to one of these paths, or has a form for it."""
        actions = {str(one.get("action")) for one in self.forms}
        return bool({*map(str, self.got.get("links", ())), *actions} & set(paths))

    @property
    def forms(self) -> list[Mapping[str, Any]]:
        return [one for one in self.got.get("forms", ()) if isinstance(one, Mapping)]


def site_steps(last: Exchange) -> list[SiteStep]:
    """The steps that were made, with their answers; [] for an API's row."""
    pairs = zip(last.args.get("steps", ()), last.result.get("answers", ()), strict=False)
    rows = [(one, got) for one, got in pairs if last.args.get("page") and len(one) == 5]
    steps = [SiteStep(one[0], one[1], one[2], one[3], one[4], got) for one, got in rows]
    return [one for one in steps if one.status in ANSWERED or one.good]


def reads(steps: Sequence[SiteStep], who: str, path: str = "") -> Iterator[SiteStep]:
    """The pages that an account read; with `path` that page alone."""
    yield from (one for one in steps if one.method == "GET" and one.who == who and path in ("", one.path))


def site_row(
    *steps: tuple[str, str, str, dict[str, Any], dict[str, Any]], page: str = ""
) -> tuple[Exchange, ...]:
    """A row for examples: who, method, path, fields, answer."""
    args = {"url": "{site}/join", "page": "/join", "steps": [[*step[:4], page] for step in steps]}
    return (Exchange("qa_account", args, {"ok": True, "answers": [step[4] for step in steps]}),)


SERVED: dict[str, Any] = {"status": 200}
NAMED: dict[str, Any] = SERVED | {"named": True}
MARKED: dict[str, Any] = SERVED | {"one": True}
SENT: dict[str, Any] = {"status": 303, "leads": "/"}
