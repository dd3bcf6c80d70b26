"""The cookies of one visitor in a jail, with the flags that a browser goes by. None leaves the jail."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from email.utils import mktime_tz, parsedate_tz

SPLIT = re.compile(r", (?=[^;,\s]+=)")
"""Between two cookies of one joined header; not within a date."""
MOST = 40
_PAIR = re.compile(r"\s*([!#$%&'*+.^_`|~0-9A-Za-z-]{1,128})=([ -:<-~]{0,4000})", re.ASCII)


@dataclass(frozen=True, slots=True)
class SiteCookie:
    """`same_site` in lower case, "" without one."""

    value: str
    path: str = "/"
    http_only: bool = False
    secure: bool = False
    same_site: str = ""

    def is_for(self, path: str) -> bool:
        """Whether it is sent with a request for this path (RFC 6265, 5.1.4)."""
        return path == self.path or path.startswith(f"{self.path.rstrip('/')}/")


def _any(_: SiteCookie) -> bool:
    return True


@dataclass(slots=True)
class CookieStore:
    """By name and path."""

    held: dict[tuple[str, str], SiteCookie] = field(default_factory=dict)

    def copy(self, wanted: Callable[[SiteCookie], bool] = _any) -> CookieStore:
        """Those of them that are wanted."""
        return CookieStore({key: one for key, one in self.held.items() if wanted(one)})

    def take(self, header: str, asked: str) -> None:
        """Keep what the Set-Cookie fields of an answer say, joined by `, `; `asked` is the path asked for."""
        for said in SPLIT.split(header) if header else ():
            head, *flags = said.split(";")
            if not (found := _PAIR.fullmatch(head.rstrip())):
                continue
            known = dict(_flags(flags))
            path = known.get("path", "")
            path = path if path.startswith("/") else asked.rpartition("/")[0] or "/"
            key = (found[1], path)
            self.held.pop(key, None)
            if not _is_over(known) and len(self.held) < MOST:
                self.held[key] = SiteCookie(
                    found[2], path, "httponly" in known, "secure" in known, known.get("samesite", "").lower()
                )

    def header(self, path: str) -> str:
        """The Cookie field of a request for a path; "" without any."""
        return "; ".join(f"{name}={one.value}" for (name, _), one in self.held.items() if one.is_for(path))


def _flags(parts: list[str]) -> Iterator[tuple[str, str]]:
    for part in parts:
        name, _, value = part.strip().partition("=")
        yield name.strip().lower(), value.strip()


def _is_over(known: dict[str, str]) -> bool:
    """Whether a cookie ends at once: that is how a site removes it."""
    if re.fullmatch(r"-?\d{1,15}", age := known.get("max-age", "")):
        return int(age) <= 0
    date = parsedate_tz(known.get("expires", ""))
    try:
        return date is not None and mktime_tz(date) <= time.time()
    except (ValueError, OverflowError):
        return False
