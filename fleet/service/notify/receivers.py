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

from fleet.chain.keys import read_private, shown_certificate
from fleet.config import FleetConfig, NotifySection, notify_files
from fleet.config.notify import ROLES
from fleet.errors import ConfigError
from fleet.events.outbound import attempt, post_signed, refusal
from fleet.http_client import look, on_record, open_client, post
from fleet.service.notify import apprise_send
from fleet.service.notify.state import NoticeMessage
from fleet.severity import Severity, weight
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

_GRAVE = weight(Severity.HIGH)
"""From this weight on, a mail asks for a receipt."""
Send = Callable[[NoticeMessage], Awaitable[str]]
"""Why the message did not arrive, "" when it did; raises nothing."""


@dataclass(frozen=True, slots=True)
class Receivers:
    """Receivers by a name that holds no secret, the URL of the dead-man's switch, and one that is posted the
    figures of the daemon, as Prometheus reads them."""

    by_name: Mapping[str, Send]
    ping: str = ""
    figures: str = ""


def receivers_of(config: FleetConfig, state: Path, *, deadline_s: float = DEADLINE_S) -> Receivers:
    """Those that are configured now; ConfigError names file and line of what is wrong."""
    files = notify_files(config, state)
    found = [kind(config.notify, files) for kind in _KINDS]
    return Receivers(
        {name: _timed(send, deadline_s) for one in found for name, send in one.by_name.items()},
        next((one.ping for one in found if one.ping), ""),
        next((one.figures for one in found if one.figures), ""),
    )


def _webhook(section: NotifySection, files: Mapping[str, Path]) -> Receivers:
    if not section.webhook:
        return Receivers({})
    secret = private_secret(files["secret_file"])
    return Receivers(
        {WEBHOOK: partial(_to_webhook, section.webhook, secret, shown_certificate(section.certificate_file))}
    )


def _listed(section: NotifySection, files: Mapping[str, Path]) -> Receivers:
    """Those of the file of URLs."""
    path = files["urls_file"]
    if not section.urls_file and not os.path.lexists(path):
        return Receivers({})
    found, single = dict[str, Send](), {"ping": "", "figures": ""}
    for number, text in enumerate(read_private(path).decode("utf-8", "replace").splitlines(), 1):
        words = text.split()
        if not words or words[0].startswith("#"):
            continue
        if words[0] in single and len(words) == 2 and words[1].startswith(("https://", "http://")):
            single[words[0]] = words[1]
        elif _URL.fullmatch(url := words[-1]) and (len(words) == 1 or words[:-1] in [[one] for one in ROLES]):
            kind, digest = url.partition(":")[0].lower(), hashlib.sha256(url.encode()).hexdigest()[:8]
            found[" ".join((*words[:-1], kind, digest))] = partial(_by_apprise, url)
        else:
            raise ConfigError(
                f"{path}:{number}: neither an Apprise URL, nor one after a role, `ping` or `figures`",
                remedy=f"one URL a line, such as ntfy://ntfy.sh/topic; roles: {', '.join(ROLES)}",
            )
    return Receivers(found, **single)


_KINDS = (_webhook, _listed)
"""Each finds its receivers in the section and in the files of `notify_files`."""


async def ping(url: str, *, well: bool) -> str:
    """Fetch the dead-man's URL, with /fail on trouble; why it failed, "" when it did not."""

    async def fetch() -> str:
        async with open_client(url) as client:
            return refusal(await look(client, url if well else url.rstrip("/") + "/fail"))

    return await attempt(fetch, PING_S)


async def post_figures(url: str, figures: Mapping[str, float]) -> str:
    """Post the figures of the daemon; why that failed, "" when it did not."""
    text = "".join(f"{name} {value:g}\n" for name, value in figures.items())

    async def send() -> str:
        async with open_client(url) as client:
            kind = {"content-type": "text/plain; version=0.0.4"}
            return refusal((await post(client, url, text.encode(), kind, limit=0))[0])

    return await attempt(send, PING_S)


def _timed(send: Send, deadline_s: float) -> Send:
    return lambda message: attempt(partial(send, message), deadline_s)


async def _to_webhook(url: str, secret: bytes, certificate: str, message: NoticeMessage) -> str:
    """The message's id is the delivery's: a receiver that remembers ids takes none twice."""
    body = json.dumps(
        {"v": 1, "notice": message.id, "at": message.at, "events": message.events}
        | {"title": message.title, "text": message.body}
    ).encode()
    async with open_client(url, certificate=certificate) as client:
        return await post_signed(client, url, body, headers(secret, message.id, int(time.time()), body))


async def _by_apprise(url: str, message: NoticeMessage) -> str:
    """In a process that is killed at the deadline: Apprise's own limits do not end a slow drip."""
    asked = json.dumps(
        {
            "url": url,
            "title": message.title,
            "body": message.body,
            "grave": weight(message.severity) >= _GRAVE,
        }
    ).encode()
    with on_record("NOTICE", url.partition(":")[0], "", len(asked)) as failed:
        done = await anyio.run_process(
            [sys.executable, "-P", "-m", apprise_send.__name__],
            input=asked,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
            start_new_session=True,
        )
        why = ""
        if done.returncode != apprise_send.DONE:
            why = _WHY.get(done.returncode, f"the sender ended with {done.returncode}")
        failed(why)
    return why
