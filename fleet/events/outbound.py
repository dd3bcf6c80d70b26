"""What sinks and notifications share: a signed post, one deadline for all of it, one log line a reason."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

import anyio

from fleet.http_client import HttpFailure, post
from fleet.text import line

if TYPE_CHECKING:
    from httpx import AsyncClient

MOST_REASONS = 100
"""Different reasons that are logged at most."""


async def attempt(send: Callable[[], Awaitable[str]], deadline_s: float) -> str:
    """Why something did not arrive, "" when it did: any failure of a receiver or its network is a reason."""
    try:
        with anyio.fail_after(deadline_s):
            return await send()
    except TimeoutError:
        return f"no answer within {deadline_s:g} s"
    except HttpFailure as failure:
        return line(str(failure))
    except Exception as error:
        return f"{type(error).__name__}: {line(str(error))}"


async def post_signed(client: AsyncClient, url: str, body: bytes, signature: Mapping[str, str]) -> str:
    """Post JSON with the headers that sign it; why it was not taken, or ""; raises HttpFailure.

    Nothing of an answer is read but its status, which ends the connection too: one that was kept could be
    closed by the receiver at the wrong moment, and lose a body.
    """
    status, _ = await post(client, url, body, {"content-type": "application/json", **signature}, limit=0)
    return refusal(status)


def refusal(status: int) -> str:
    """Why an answer with this status is none, "" for one that is."""
    if 300 <= status < 400:
        return f"HTTP {status}: redirects are not followed"
    return "" if 200 <= status < 300 else f"HTTP {status}"


class WarnOnce:
    """Logs each reason once. Of a reason, the part before a colon counts: outsiders cannot influence it."""

    def __init__(self, log: logging.Logger, about: str) -> None:
        self._log, self._about, self._seen = log, about, set[tuple[str, str]]()

    def __call__(self, why: str, *, receiver: str = "", whole: bool = False) -> None:
        """`whole`: a reason of our own, all of which counts."""
        key = receiver, why if whole else why.partition(":")[0]
        if key not in self._seen and len(self._seen) < MOST_REASONS:
            self._seen.add(key)
            text = f"{receiver}: {why}" if receiver else why
            self._log.warning("%s: %s; runs continue", self._about, text)
