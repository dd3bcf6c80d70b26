"""Does the browser start in a jail here? Tried, on an empty page, without any way out."""

from __future__ import annotations

from fleet.errors import JailError
from fleet.jail.model import End, Jail
from fleet.text import line

_DEADLINE_S = 45.0


async def try_browser(jail: Jail) -> str:
    """Why it does not start, "" if it does; the jail's image needs no guest but ours."""
    try:
        outcome = await jail.call(b"\n", deadline_s=_DEADLINE_S, resources="browser")
    except JailError as error:
        return line(f"could not look: {error}", 300)
    if outcome.end is End.EXITED and outcome.code == 0:
        return ""
    said = outcome.stderr.decode(errors="replace").strip()[-200:]
    return line(f"it does not start in a jail: {outcome.end} {outcome.code}: {said}", 300)
