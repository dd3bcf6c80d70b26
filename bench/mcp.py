"""What a look finds on an MCP server with known defects, beside two scanners of that field, on the same one.

    make bench-mcp [ARGS="--minutes 4 --only fleet,mcp-fuzzer --keep DIR"]

The practice server (fleet/devnet/surfaces/harbour.py) runs twice: with DEFECTS, and as its clean twin. Each
finder looks at both from outside, as a stranger who may call tools: the fleet by `fleet look --exercise`,
mcp-fuzzer with its audits, cisco-ai-mcp-scanner by its YARA rules. What a finder says of the twin is false
by definition, and the same item of the other server does not count. docs/bench/mcp.md has the results.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fleet.devnet.surfaces.harbour import open_office
from fleet.files import ROOT

PEERS = ROOT / ".venv-mcp-peers"
PEER_S = 300
"""A peer that takes longer is stopped; what it has printed by then counts."""
UNCHECKED = ("required-unchecked", "type-unchecked", "range-unchecked")
DEFECTS: Mapping[str, str] = {
    "output-misfit": r"berth_price.*(?:lacks|fit|schema)",
    "arguments-unchecked": r"accepts wrong arguments|accepted_malformed tool",
    "shell": r"tide_table.*a command|injection tool tide_table",
    "template": r"greet.*an expression|injection tool greet",
    "climb": r"Files outside.*read_notice|(?i:travers).*read_notice",
    "climb-resource": r"resource harbour|(?i:travers).*resource",
    "sql": r"(?i)SQL.*find_boat",
    "secret-answered": r"(?i)secret.*greet|greet.*(?:secret|credential)",
    "secret-listed": r"(?i)secret.*find_boat|find_boat.*(?:secret|credential)",
    "hidden-text": r"(?i)greet.*(?:tag characters|hidden|unicode|invisible)",
    "orders": r"(?i)orders.*read_notice|poison.*read_notice|read_notice.*(?:poison|prompt.injection)",
    "origin-unchecked": r"(?i)origin|rebinding",
    "list-changes": r"(?i)berth_price.*defined otherwise|rug.pull",
    "list-by-client": r"(?i)berth_price.*differs by the client",
    "header-unchecked": r"whatever Mcp-|(?i:header.mismatch)",
    "trace": r"read_notice.*traceback|error_leakage tool read_notice",
}
"""Seeded defects (UNCHECKED as one: they are of one item), and what an item that reports one holds, in any
finder's words."""


@dataclass(frozen=True, slots=True)
class McpLook:
    """What a finder said of one server. `trouble`: why it did not end well."""

    items: frozenset[str]
    seconds: float
    trouble: str = ""


def ran(
    words: Sequence[str], folder: Path, read: Callable[[str], Iterator[str]], longest_s: float
) -> McpLook:
    """One finder in a folder of its own; its items by what it printed or wrote there."""
    folder.mkdir(parents=True)
    started, trouble, said = time.monotonic(), "", ""
    env = {
        "PATH": f"{Path(words[0]).parent}:/usr/bin:/bin",
        "HOME": str(folder),
        "STATE_DIRECTORY": str(folder),
    }
    try:
        done = subprocess.run(
            words, cwd=folder, env=env, capture_output=True, text=True, timeout=longest_s, check=False
        )
        said = done.stdout
        trouble = done.stderr[-200:] if done.returncode not in (0, 1) else ""
    except subprocess.TimeoutExpired:
        trouble = f"stopped after {longest_s:.0f} s"
    except OSError as error:
        return McpLook(frozenset(), 0.0, f"is not there: {error}")
    try:
        return McpLook(frozenset(read(said)), time.monotonic() - started, trouble)
    except (ValueError, OSError) as error:
        return McpLook(frozenset(), time.monotonic() - started, f"no report: {error}; {trouble}")


def fleet(url: str, folder: Path, minutes: float) -> McpLook:
    """What a newcomer does, with leave to call tools."""
    words = [str(ROOT / ".venv" / "bin" / "fleet"), "look", url, "--exercise", "--yes-i-may", "--json"]
    words += ["--minutes", str(minutes), "--persona", "qa-mcp"]

    return ran(
        words, folder, lambda said: (str(one["title"]) for one in json.loads(said)["items"]), minutes * 90
    )


def mcp_fuzzer(url: str, folder: Path, _minutes: float) -> McpLook:
    """Both of its phases and its audits of what is listed; an item is a category and a target."""
    words = [
        str(PEERS / "mcp-fuzzer" / "bin" / "mcp-fuzzer"),
        "--mode",
        "all",
        "--phase",
        "both",
        "--no-network",
    ]
    words += ["--protocol", "streamablehttp", "--endpoint", url, "--seed", "1", "--output-dir", "out"]
    words += ["--security-audit", "--security-audit-intrusive"]

    def items(_said: str) -> Iterator[str]:
        for one in json.loads((folder / "out" / "findings.json").read_text())["findings"]:
            yield f"{one['category']} {one['kind']} {one['target']}"

    return ran(words, folder, items, PEER_S)


def cisco(url: str, folder: Path, _minutes: float) -> McpLook:
    words = [str(PEERS / "cisco-ai-mcp-scanner" / "bin" / "mcp-scanner"), "--analyzers", "yara", "--raw"]

    def items(said: str) -> Iterator[str]:
        for one in json.loads(said[said.index("[") :]):
            for name, found in (one.get("findings") or {}).items():
                if found.get("total_findings"):
                    yield f"{one.get('tool_name')} {name} {' '.join(found.get('threat_names') or ())}"

    return ran([*words, "remote", "--server-url", url], folder, items, PEER_S)


FINDERS: Mapping[str, Callable[[str, Path, float], McpLook]] = {
    "fleet": fleet,
    "mcp-fuzzer": mcp_fuzzer,
    "cisco-ai-mcp-scanner": cisco,
}


def row(name: str, seeded: McpLook, twin: McpLook) -> dict[str, Any]:
    """What one finder found, of both servers."""
    own = seeded.items - twin.items
    found = [defect for defect, form in DEFECTS.items() if any(re.search(form, one) for one in own)]
    other = [one for one in own if not any(re.search(form, one) for form in DEFECTS.values())]
    return {
        "finder": name,
        "found": found,
        "missed": [one for one in DEFECTS if one not in found],
        "other": sorted(other),
        "false": sorted(twin.items),
        "seconds": [round(seeded.seconds), round(twin.seconds)],
        "trouble": [one.trouble for one in (seeded, twin) if one.trouble],
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=4.0, help="most that the fleet may take")
    parser.add_argument("--only", default=",".join(FINDERS), help=f"of {', '.join(FINDERS)}")
    parser.add_argument("--keep", type=Path, help="where each finder's folder stays")
    options = parser.parse_args()
    chosen = options.only.split(",")
    if unknown := set(chosen) - set(FINDERS):
        parser.error(f"--only: {', '.join(sorted(unknown))}: expected of {', '.join(FINDERS)}")
    with tempfile.TemporaryDirectory() as temporary:
        place = (options.keep or Path(temporary)).absolute()
        for name in chosen:
            looks = list[McpLook]()
            seeded = [one for one in DEFECTS if one != "arguments-unchecked"]
            for defects in ((*seeded, *UNCHECKED), ()):
                with open_office(*defects) as office:
                    folder = place / name / ("seeded" if defects else "clean")
                    looks.append(FINDERS[name](f"{office.url}/mcp", folder, options.minutes))
            print(json.dumps(row(name, *looks), indent=1), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
