"""Runs the escape battery on every backend that works here and writes its table into `docs/safety.md`.

`python -m tests.jail.table` (`make safety-table`). As root it has all columns; it starts an engine.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from fleet.jail.battery.probes.battery import ALL
from fleet.jail.battery.probes.registry import PROBES
from fleet.jail.battery.report import WEAKER_FILE
from fleet.jail.battery.scenarios import SCENARIOS
from tests.dockerd import running_engine, why_no_engine
from tests.jail.test_battery import CALLERS, Report, finish, start

PAGE = Path(__file__).parents[2] / "docs" / "safety.md"
FIRST, LAST = "<!-- the battery: make safety-table -->\n", "<!-- end of the battery -->\n"
COLUMNS = {"root": "bubblewrap, root", "user": "bubblewrap, user", "docker": "Docker"}
WEAKER: Mapping[str, Mapping[str, Mapping[str, str]]] = tomllib.loads(WEAKER_FILE.read_text())


def reports() -> dict[str, Report]:
    """What each backend answers, by column."""
    found: dict[str, Report] = {}
    for caller in CALLERS:
        with ExitStack() as stack:
            found[caller] = finish(start(stack, caller, "forks"))
    if why := why_no_engine():
        print(f"no column for Docker: {why}", file=sys.stderr)
        return found
    with running_engine() as engine, ExitStack() as stack:
        found["docker"] = finish(start(stack, "root", f"docker {engine.socket}"))
    return found


def table(found: Mapping[str, Report]) -> str:
    """Markdown: a line for each probe, a word for each backend, and the reasons of what is weaker."""
    lines = ["| probe | what it tries | " + " | ".join(COLUMNS[name] for name in found) + " |"]
    lines.append("|---" * (len(found) + 2) + "|")
    for probe in sorted([*ALL, *SCENARIOS]):
        words = [_word(name, probe, report) for name, report in found.items()]
        lines.append(f"| {probe} | {meaning(probe)} | " + " | ".join(words) + " |")
    for name, listed in WEAKER.items():
        lines += [
            "",
            *(f"Weaker on {COLUMNS[name]}, {probe}: {one['why']}." for probe, one in listed.items()),
        ]
    return "\n".join(lines) + "\n"


def meaning(probe: str) -> str:
    """In words: its name, and what its description adds."""
    tried = SCENARIOS.get(probe) or PROBES[probe]
    described = re.sub(r"^[A-Z]\d\d[^:]*: ", "", (tried.__doc__ or "").partition("\n")[0])
    words = [tried.__name__.replace("_", " "), described.rstrip(".")]
    return ": ".join(word for word in words if word).replace("|", "/")


def _word(name: str, probe: str, report: Report) -> str:
    held, seen = report[probe]
    if held:
        return "holds"
    listed = WEAKER.get(name, {}).get(probe)
    return "weaker" if listed and re.fullmatch(listed["seen"], seen) else "**fails**"


def main() -> None:
    before, _, rest = PAGE.read_text().partition(FIRST)
    _, _, after = rest.partition(LAST)
    PAGE.write_text(f"{before}{FIRST}\n{table(reports())}\n{LAST}{after}")


if __name__ == "__main__":
    main()
