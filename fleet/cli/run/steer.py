"""`fleet runs steer`: what is left out, what comes first and how fast, from the next decision on."""

from __future__ import annotations

from typing import Annotated

import typer

from fleet.app.authority import require_authority
from fleet.app.halts import record_steering
from fleet.cli.console import DryRun, Json, make_app, note, put, run, state, who
from fleet.config import load_fleet, load_platform
from fleet.config.url_list import UrlList
from fleet.errors import UsageError
from fleet.gate.steering import Steering, read_steering, write_steering

app = make_app()
Urls = list[str]


@app.command()
def steer(  # noqa: PLR0913  each is an option
    leave: Annotated[Urls, typer.Option(help="Ask nothing there: a host, a URL or a path.")] = [],  # noqa: B006
    back: Annotated[Urls, typer.Option(help="Take it back: as if it was never named.")] = [],  # noqa: B006
    first: Annotated[Urls, typer.Option(help="Ask this before anything else; repeat it for an order.")] = [],  # noqa: B006
    share: Annotated[
        float | None, typer.Option(min=0.01, max=1.0, help="Use this share of each host's rate.")
    ] = None,
    reason: Annotated[str, typer.Option(help="Reason, recorded; required for a change.")] = "",
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Show or change what runs in flight ask, within the profile: nothing starts again, nothing is lost.

    What a profile does not name stays out of scope: a new target needs the profile, and its signatures.
    """
    folder = state()
    before = read_steering(folder)
    after = _after(before, leave, back, first, share)
    if after != before:
        if not reason.strip():
            raise UsageError("a change needs a reason", remedy='fleet runs steer … --reason "…"')
        if not set(before.leave) <= set(after.leave) or after.share > before.share:
            require_authority(folder, who())  # more is asked than before
        what = _words(after)
        if dry_run:
            note(f"would be: {what}")
        else:
            if why := run(lambda: record_steering(folder, what, who(), reason)):
                note(f"not on record everywhere: {why}")
            write_steering(folder, after)
    data = after.model_dump(mode="json")
    put(data, as_json=as_json, text=lambda: print(_words(after)))


def _after(before: Steering, leave: Urls, back: Urls, first: Urls, share: float | None) -> Steering:
    """UsageError for an entry that names nothing."""
    web = load_platform(load_fleet().platform, state())[0].web
    words = {"{site}": web.site.rstrip("/"), "{proxy}": web.proxy.rstrip("/")}

    def whole(entries: Urls) -> list[str]:
        found = []
        for entry in entries:
            word = next((one for one in words if entry.startswith(one) and words[one]), "")
            found.append(words[word] + entry.removeprefix(word) if word else entry)
        return found

    gone = set(whole(back))
    left = dict.fromkeys(one for one in (*before.leave, *whole(leave)) if one not in gone)
    order = whole(first) or [one for one in before.first if one not in gone]
    try:
        after = Steering(
            leave=tuple(left), first=tuple(order), share=before.share if share is None else share
        )
        UrlList.of((*after.leave, *after.first), site="", proxy="")
    except ValueError as error:
        text = str(error).splitlines()[0]
        raise UsageError(f"no place: {text}", remedy="as in web.never: a host, a URL, /a/path") from None
    return after


def _words(steering: Steering) -> str:
    leave, first = (", ".join(one) or "nothing" for one in (steering.leave, steering.first))
    return f"left out: {leave}; first: {first}; rate: {steering.share:.0%} of the profile's"
