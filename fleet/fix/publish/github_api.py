"""One request to GitHub's REST API, and what its failures mean.

A request is one of `github_operations`; redirects are answers (a redirect would take the token to another
place), the whole exchange has a deadline, and the body of an answer a limit. GitHub's own words are shown
cleaned and cut, without the token.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

import anyio
from pydantic import TypeAdapter, ValidationError

from fleet.config.propose import GitHubSection
from fleet.errors import FixError, FleetError, TryAgain
from fleet.findings.known_secrets import PIECE
from fleet.findings.redact import Redactor
from fleet.fix.ports import Ask, unasked
from fleet.fix.publish.github_answers import GitHubRefusal
from fleet.fix.publish.github_operations import GitHubOperation, permitted
from fleet.fix.publish.token import REMEDY, TokenFile
from fleet.http_client import AnswerTooLarge, HttpFailure, open_client, send
from fleet.text import line
from sandbox.strict_json import loads

DEADLINE_S = 30.0
LIMIT = 8 * 2**20
"""Bytes of an answer: a page of 20 search results with bodies of 65,536 characters fits."""
VALUES = 100_000
"""Members of all objects and arrays of an answer."""
WORDS = 4_096
"""Characters that are read of what a server says about an error."""
WAIT_S = 3_600
"""Longest wait that is named, in seconds, whatever GitHub asks for."""
VERSION = "2022-11-28"
_MOVED = (301, 302, 303, 307, 308)
_REFUSAL = TypeAdapter(GitHubRefusal)
Answer = TypeVar("Answer")


class RateLimited(TryAgain):
    """GitHub asks for a pause; another request now would make it longer."""


class GitHubApi:
    """Sends the requests of the table to one repository; `ask` comes right before each that changes it."""

    def __init__(
        self,
        section: GitHubSection,
        token: TokenFile,
        *,
        deadline_s: float = DEADLINE_S,
        ask: Ask = unasked,
    ) -> None:
        self.repository, self._ask = section.repository, ask
        self._base, self._token, self._deadline_s = section.api.rstrip("/"), token, deadline_s

    async def call(
        self,
        operation: GitHubOperation,
        model: TypeAdapter[Answer],
        *,
        number: int = 0,
        query: Mapping[str, str] | None = None,
        **fields: Any,  # noqa: ANN401  an operation's own fields
    ) -> Answer:
        """The validated answer. Raises FixError, or TryAgain for what may pass."""
        permitted(operation, number, query or {}, fields)
        path = operation.path.format(repository=quote(self.repository), number=number)
        url = self._base + path + (f"?{urlencode(query)}" if query else "")
        token = self._token.read()
        if operation.method != "GET":
            await self._ask()
        status, headers, body = await self._exchange(operation, url, token, fields)
        if status == operation.success:
            try:
                return model.validate_python(loads(body, values=VALUES))
            except ValidationError as error:
                first = error.errors(include_input=False, include_url=False)[0]
                where = ".".join(str(part) for part in first["loc"])
                raise FixError(
                    f"GitHub's answer does not fit ({operation.words}): {where}: {first['type']}"
                ) from None
            except ValueError as error:
                raise FixError(
                    f"GitHub's answer is not JSON ({operation.words}): {line(str(error))}"
                ) from None
        raise self._failure(operation, status, headers, _said(body, token))

    async def _exchange(
        self, operation: GitHubOperation, url: str, token: str, fields: Mapping[str, Any]
    ) -> tuple[int, Mapping[str, str], bytes]:
        headers = {
            "authorization": f"Bearer {token}",
            "accept": "application/vnd.github+json",
            "x-github-api-version": VERSION,
        }
        content = json.dumps(fields).encode() if fields else b""
        if content:
            headers["content-type"] = "application/json"
        try:
            with anyio.fail_after(self._deadline_s):
                async with open_client(url) as client:
                    return await send(client, operation.method, url, content, headers, limit=LIMIT)
        except TimeoutError:
            raise TryAgain(f"GitHub did not answer in {self._deadline_s:g} s ({operation.words})") from None
        except AnswerTooLarge:
            raise FixError(f"GitHub answered more than {LIMIT} bytes ({operation.words})") from None
        except HttpFailure as error:
            raise TryAgain(
                f"GitHub did not answer ({operation.words}): {_shown(str(error), token)}"
            ) from None

    def _failure(
        self, operation: GitHubOperation, status: int, headers: Mapping[str, str], said: str
    ) -> FleetError:
        what = f"GitHub answered {status} ({operation.words})" + (f": {said}" if said else "")
        if status == 429 or (
            status == 403
            and (
                "retry-after" in headers
                or headers.get("x-ratelimit-remaining") == "0"
                or "rate limit" in said.lower()
            )
        ):
            # 60 seconds for anything but a number, as GitHub advises
            asked = headers.get("retry-after", "")
            known = asked.isascii() and asked.isdigit() and len(asked) <= 18
            pause_s = min(int(asked), WAIT_S) if known else 60
            return RateLimited(f"{what}; it asks for a pause of {pause_s} s", remedy="try again then")
        if status == 401:
            return FixError(f"{what}; the token in {self._token.path} is not valid (any more)", remedy=REMEDY)
        if status in (403, 404, 410):
            return FixError(
                f"{what}; the token in {self._token.path} may not do this in {self.repository}",
                remedy=f"does {self.repository} exist, is it archived, what may the token do? {REMEDY}",
            )
        if status in _MOVED:
            return FixError(
                f"{what}; {self.repository} has moved, and no redirect is followed with a token",
                remedy="write the repository's present name and API address into fleet.toml",
            )
        return TryAgain(what) if status >= 500 else FixError(what)


def _said(body: bytes, token: str) -> str:
    """GitHub's words about an error, "" if they are not in its usual form."""
    try:
        refusal = _REFUSAL.validate_python(loads(body, values=VALUES))
    except ValueError:
        return ""
    parts = [
        one if isinstance(one, str) else one.message or " ".join(filter(None, (one.field, one.code)))
        for one in refusal.errors[:5]
    ]
    return _shown("; ".join(part for part in (refusal.message, *parts) if part), token)


def _shown(text: str, token: str) -> str:
    """A server's words without the token, which it was sent and may have repeated, not even a part of it."""
    shown = Redactor([token]).text(line(text[:WORDS], WORDS))
    if len(text) > WORDS:  # it may end in less than a piece of it
        shown = shown[:-PIECE]
    return line(shown, 300)
