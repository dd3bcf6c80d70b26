"""Who is notified, and how a message gets there: each send has one deadline, and says why it failed."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio

from fleet.chain.keys import read_private
from fleet.config import FleetConfig, notify_files
from fleet.errors import ConfigError
from fleet.http_client import HttpFailure, look, open_client, post
from fleet.service.notify import apprise_send
from fleet.service.notify.book import NoticeMessage
from fleet.text import line
from fleet.triggers.hooks.secret import private_secret
from fleet.triggers.hooks.webhook import headers

DEADLINE_S = 20.0
"""Seconds of one send in all: connection, answer, and the start of a process."""
PING_S = 5.0
WEBHOOK = "webhook"
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,31}://\S{1,2000}")
_WHY = {
    apprise_send.FAILED: "the receiver did not take it",
    apprise_send.INVALID: "Apprise does not know this kind of URL",
    apprise_send.MISSING: "Apprise is not installed: pip install 'qa-fleet[notify]'",
}

Send = Callable[[NoticeMessage], Awaitable[str]]
"""Why the message did not arrive, "" when it did; raises nothing."""


@dataclass(frozen=True, slots=True)
class Receivers:
    """Receivers by a name that holds no secret, and the URL of the dead-man's switch."""

    by_name: Mapping[str, Send]
    ping: str = ""


def receivers_of(config: FleetConfig, state: Path, *, deadline_s: float = DEADLINE_S) -> Receivers:
    """Those that are configured now; ConfigError names file and line of what is wrong."""
    urls_file, secret_file = notify_files(config, state)
    found, ping = dict[str, Send](), ""
    if config.notify.webhook:
        secret = private_secret(secret_file)
        found[WEBHOOK] = _timed(partial(_to_webhook, config.notify.webhook, secret), deadline_s)
    if not config.notify.urls_file and not os.path.lexists(urls_file):
        return Receivers(found)
    for number, text in enumerate(read_private(urls_file).decode("utf-8", "replace").splitlines(), 1):
        words = text.split()
        if not words or words[0].startswith("#"):
            continue
        is_ping = words[0] == "ping" and len(words) == 2 and words[1].startswith(("https://", "http://"))
        if not is_ping and not (len(words) == 1 and _URL.fullmatch(words[0])):
            raise ConfigError(
                f"{urls_file}:{number}: neither an Apprise URL nor `ping <url>`",
                remedy="one URL a line, such as ntfy://ntfy.sh/topic",
            )
        if is_ping:
            ping = words[1]
        else:
            found[_name(words[0])] = _timed(partial(_by_apprise, words[0]), deadline_s)
    return Receivers(found, ping)


async def ping(url: str, *, well: bool) -> str:
    """Fetch the dead-man's URL, with /fail on trouble; why it failed, "" when it did not."""
    try:
        with anyio.fail_after(PING_S):
            async with open_client(url) as client:
                status = await look(client, url if well else url.rstrip("/") + "/fail")
    except TimeoutError:
        return f"no answer within {PING_S:g} s"
    except Exception as error:
        return f"{type(error).__name__}: {line(str(error))}"
    return "" if 200 <= status < 300 else f"HTTP {status}"


def _name(url: str) -> str:
    """`slack 1a2b3c4d`: its kind and a digest."""
    return f"{url.partition(':')[0].lower()} {hashlib.sha256(url.encode()).hexdigest()[:8]}"


def _timed(send: Send, deadline_s: float) -> Send:
    async def timed(message: NoticeMessage) -> str:
        try:
            with anyio.fail_after(deadline_s):
                return await send(message)
        except TimeoutError:
            return f"not delivered within {deadline_s:g} s"
        except HttpFailure as failure:
            return line(str(failure))
        except Exception as error:  # any failure of a receiver is only a reason: the daemon goes on
            return f"{type(error).__name__}: {line(str(error))}"

    return timed


async def _to_webhook(url: str, secret: bytes, message: NoticeMessage) -> str:
    """The message's id is the delivery's: a receiver that remembers ids takes none twice."""
    body = json.dumps(
        {"v": 1, "notice": message.id, "at": message.at, "events": message.events}
        | {"title": message.title, "text": message.body}
    ).encode()
    signed = {"content-type": "application/json", **headers(secret, message.id, int(time.time()), body)}
    async with open_client(url) as client:
        status, _ = await post(client, url, body, signed, limit=0)
    return "" if 200 <= status < 300 else f"HTTP {status}"


async def _by_apprise(url: str, message: NoticeMessage) -> str:
    """In a process that is killed at the deadline: Apprise's own limits do not end a slow drip."""
    asked = json.dumps({"url": url, "title": message.title, "body": message.body}).encode()
    done = await anyio.run_process(
        [sys.executable, "-P", "-m", apprise_send.__name__],
        input=asked,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
        start_new_session=True,
    )
    if done.returncode == apprise_send.DONE:
        return ""
    return _WHY.get(done.returncode, f"the sender ended with {done.returncode}")
