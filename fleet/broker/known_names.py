"""What the name of each host led to when it was first looked up, or when a person last confirmed a change.

One file of a state directory for all its processes, `names.json`: the first look-up of a host is what it is
compared with.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from fleet.errors import ConfigError
from fleet.files import read_bounded, write_atomic

NAMES = "names.json"
LONGEST = 4 << 20


def known_names(path: Path) -> dict[str, frozenset[str]]:
    """What was known of each host; nothing without a file. ConfigError."""
    return KnownNames(path)._known


class KnownNames:
    """Addresses, and names on the way to them, by host. `holds`: a change waits for a person.

    ConfigError for a file that cannot be read: without what was known nothing would be a change."""

    def __init__(self, path: Path | None = None, *, holds: bool = False) -> None:
        self.holds, self._path = holds, path
        self._waiting: dict[str, frozenset[str]] = {}
        self._known = self._read()

    def changed(self, host: str, found: Iterable[str], *, inside: bool) -> str:
        """What a look-up found that nobody has confirmed, in words; "" for nothing.

        Another address beside a known one is none where all are `inside` what a person stated: a pool."""
        new = frozenset(found)
        if host not in self._known:
            self._known |= self._read()
        known = self._known.get(host, frozenset())
        if new <= known:
            return ""
        if not known or (inside and not known.isdisjoint(new)):
            self._keep(host, known | new)
            return ""
        self._waiting[host] = new
        return f"{host} leads to {', '.join(sorted(new))} now, and led to {', '.join(sorted(known))}"

    def accept(self, host: str) -> None:
        """A person confirmed what a host leads to now."""
        if new := self._waiting.pop(host, None):
            self._keep(host, new)

    def _read(self) -> dict[str, frozenset[str]]:
        if self._path is None:
            return {}
        try:
            rows = json.loads(read_bounded(self._path, LONGEST))
            return {str(host): frozenset(map(str, found)) for host, found in rows.items()}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, AttributeError, TypeError) as error:
            remedy = "compare it with a backup; without it the next look-up of each host is the first"
            raise ConfigError(f"{self._path}: {error}", remedy=remedy) from None

    def _keep(self, host: str, rows: frozenset[str]) -> None:
        self._known |= {**self._read(), host: rows}
        if self._path is not None:
            text = json.dumps({name: sorted(one) for name, one in sorted(self._known.items())}, indent=1)
            write_atomic(self._path, text.encode())
