"""Oracles of what an account writes or uploads, as a browser shows it to others. Pure.

Script counts only where it ran, with the site's own origin, beside a benign twin that did not; the function
that it calls exists in that call alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Any

from fleet.oracles.account.inputs import varied
from fleet.oracles.account.rows import MINE, NONE, on, oracle, played, row
from fleet.oracles.account.site_rows import MARKED, SENT, SERVED, SiteStep, reads, site_row, site_steps
from fleet.oracles.model import Exchange, Facts, Observation, observed
from fleet.severity import Severity
from fleet.text import line

VIEWERS = ("other", "anonymous")


def _ran(steps: Sequence[SiteStep], *, files: bool) -> Iterator[tuple[SiteStep, SiteStep]]:
    """What was sent, and the view where it ran: an earlier view, after a benign one, did not run."""
    for at, view in enumerate(steps):
        if view.method != "VIEW" or view.who not in VIEWERS or not view.got.get("ran"):
            continue
        sent = [one for one in steps[:at] if one.who == "one" and one.method == "POST" and one.taken]
        calm = [one for one in steps[:at] if one.method == "VIEW" and one.good and not one.got.get("ran")]
        given = sent[-1].given.values() if sent else ()
        kind = any(isinstance(one, list | tuple) for one in given)
        if sent and calm and kind == files and sent[-1].path == sent[0].path:
            yield sent[-1], view


RAN: dict[str, Any] = SERVED | {"ran": True}


def _viewed(given: object, got: dict[str, Any]) -> tuple[Exchange, ...]:
    return site_row(
        (
            "one",
            "POST",
            "/wall",
            {"text": ["a.txt", "text/plain", "x"] if isinstance(given, list) else "x"},
            SENT,
        ),
        ("other", "VIEW", "/wall", {}, SERVED),
        ("one", "POST", "/wall", {"text": given}, SENT),
        ("other", "VIEW", "/wall", {}, got),
    )


def _climbing(got: dict[str, Any]) -> tuple[Exchange, ...]:
    return site_row(
        ("one", "GET", "/files/{one-mark}.txt", {}, {"status": 404}),
        ("one", "POST", "/upload", {"file": ["../{mark}.txt", "text/plain", "{mark}"]}, SENT),
        ("one", "GET", "/files/{one-mark}.txt", {}, got),
    )


_HTML = ["a.html", "text/plain", "<script>{canary}(name)</script>"]


@oracle(
    id="form-script",
    says="what one account sends by a form does not run as script of the site where others see it",
    severity=Severity.HIGH,
    example=_viewed("<script>{canary}(name)</script>", RAN),
    control=_viewed("<script>{canary}(name)</script>", SERVED),
)
def form_script(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    for sent, view in _ran(site_steps(seen[-1]), files=False):
        whom = "another account" if view.who == "other" else "a visitor"
        title = f"{line(view.path, 80)} runs what POST {line(sent.path, 60)} took, for {whom}"
        folder = sent.path.rstrip("/").rpartition("/")[0]  # what takes the same fields in it is one kind
        taken = " ".join(sorted(sent.given))
        where = on(seen[-1], folder or sent.path, "POST") | {"field": taken}
        yield observed(title, f"form-script {folder or sent.path} {taken}", "answers", where=where)
        return


@oracle(
    id="upload-script",
    says="what an account uploads as text does not run as script of the site",
    severity=Severity.HIGH,
    example=_viewed(_HTML, RAN),
    control=_viewed(_HTML, SERVED),
)
def upload_script(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    for sent, view in _ran(site_steps(seen[-1]), files=True):
        kind = next(one[0].rpartition(".")[2] for one in sent.given.values() if isinstance(one, list | tuple))
        said = f"a .{line(str(kind), 10)} file sent to {line(sent.path, 60)} as text"
        title = f"{said} runs at {line(view.path, 60)}"
        where = on(seen[-1], sent.path, "POST") | {"field": "file"}
        yield observed(title, f"upload-script {sent.path}", "answers", where=where)
        return


@oracle(
    id="upload-path",
    says="the name of an uploaded file does not lead out of its folder",
    severity=Severity.HIGH,
    example=_climbing(MARKED),
    control=_climbing({"status": 404}),
)
def upload_path(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """A path without the file has it after an upload whose name climbs there."""
    steps = site_steps(seen[-1])
    for at, step in enumerate(steps):
        names = [str(one[0]) for one in step.given.values() if isinstance(one, list | tuple)]
        if step.who != "one" or not step.taken or not any(".." in name for name in names):
            continue
        before = {one.path for one in reads(steps[:at], "one") if not one.shows("one")}
        for found in reads(steps[at:], "one"):
            if found.path in before and found.shows("one") and "{one-mark}" in found.path:
                stored = line(found.path, 80).replace("{one-mark}", "…")
                title = f"POST {line(step.path, 60)} stores a file named ../… at {stored}"
                where = on(seen[-1], step.path, "POST")
                yield observed(title, f"upload-path {step.path}", "answers", where=where)
                return


def _stored(markup: dict[str, Any]) -> tuple[Exchange, ...]:
    shown = NONE | {"one": True}
    return row(
        ("one", "POST", "/api/notes", {"text": "{mark}"}, MINE),
        ("anonymous", "GET", "/board", {}, shown),
        ("one", "POST", "/api/notes", {"text": "{mark}<img src id={mark} onerror=name>"}, MINE),
        ("anonymous", "GET", "/board", {}, shown | markup),
    )


@oracle(
    id="account-stored",
    says="what an account sends to an API is text on the pages that show it",
    severity=Severity.HIGH,
    example=_stored({"handler": True}),
    control=_stored({}),
)
def account_stored(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """A word that was sent stands on a page for visitors; after markup in the same input the page has an
    element of it, with its handler, and had none before."""
    steps, told = played(seen[-1]), set[str]()
    for at, step in enumerate(steps):
        if step.who != "one" or step.method != "POST" or not step.good:
            continue
        plain = [found for one in steps[:at] if one.good and (found := varied(one, step))]
        pages = list(takewhile(lambda one: one.who == "anonymous", steps[at + 1 :]))
        calm = [one for one in steps[:at] if one.who == "anonymous" and not one.got.get("handler")]
        for page in (one for one in pages if one.got.get("handler")):
            before = any(one.plain == page.plain and one.shows("one") for one in calm)
            if before and plain and "onerror" in str(plain[-1][2]) and step.plain not in told:
                told.add(step.plain)
                name = plain[-1][0]
                title = f"{line(page.plain, 60)} shows markup that {step.called} took"
                where = on(seen[-1], step.plain, "POST") | {"field": name}
                yield observed(title, f"account-stored {step.plain} {name}", "answers", where=where)
