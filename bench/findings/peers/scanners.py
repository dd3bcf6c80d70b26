"""Schemathesis and Wapiti, each in a process of the peers' own environment, with reports read back as items.

Neither speaks of agents or of a chain; both see the same site. A report's items are asked again, once, so
that the rules can judge the answer; what was asked is theirs.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio.to_thread
import httpx

from bench.findings.fleet_rounds import FinderOutcome
from bench.findings.rules import EvidenceCall, Posted
from fleet.files import ROOT
from sandbox.pages import html
from sandbox.text import mask
from tests.platforms.stand import Stand

VENV = ROOT / ".venv-peers"
SCAN_S = 150


@dataclass(frozen=True, slots=True)
class Schemathesis:
    """Property tests from the OpenAPI description of a platform."""

    calls: int
    description: str = "/openapi.json"
    program = VENV / "bin" / "schemathesis"

    async def observe(self, folder: Path, stand: Stand) -> FinderOutcome:
        return await self.scan(folder, stand.data["web"]["site"])

    async def scan(self, folder: Path, site: str) -> FinderOutcome:
        """Run it with about as many requests as the fleet made."""
        folder.mkdir(parents=True, exist_ok=True)
        words = [
            str(self.program),
            "run",
            f"{site}{self.description}",
            "--max-examples",
            str(max(5, self.calls // 30)),
        ]
        report = folder / "report.har"
        words += ["--report", "har", "--report-har-path", str(report), "--seed", "1", "--continue-on-failure"]
        return await _observed(words, folder, report, lambda: _failures(report))


@dataclass(frozen=True, slots=True)
class Wapiti:
    """A black-box scanner of web applications."""

    program = VENV / "bin" / "wapiti"

    async def observe(self, folder: Path, stand: Stand) -> FinderOutcome:
        return await self.scan(folder, stand.data["web"]["site"])

    async def scan(self, folder: Path, site: str) -> FinderOutcome:
        """Scan the site for a bounded time."""
        folder.mkdir(parents=True, exist_ok=True)
        report = folder / "report.json"
        words = [str(self.program), "-u", f"{site}/", "-f", "json", "-o", str(report), "--flush-session"]
        words += [
            "--max-scan-time",
            str(SCAN_S),
            "--store-session",
            str(folder / "session"),
            "--no-bugreport",
        ]
        return await _observed(words, folder, report, lambda: _vulnerabilities(site, report))


async def _observed(words: list[str], folder: Path, report: Path, read: Any) -> FinderOutcome:  # noqa: ANN401  a reader of one kind of report
    """Run a scanner and read its report; what went wrong is a trouble of the outcome."""
    outcome, started = FinderOutcome(), time.monotonic()
    try:
        done = await anyio.to_thread.run_sync(_run, words, folder)
    except subprocess.TimeoutExpired:
        outcome.troubles.append(f"{words[0]} did not end")
        return outcome
    outcome.seconds = time.monotonic() - started
    if not report.exists():
        outcome.troubles.append(f"no report: status {done.returncode}: {(done.stderr or done.stdout)[-300:]}")
        return outcome
    outcome.items = list(read())
    return outcome


def _run(words: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    env = {"PATH": f"{VENV / 'bin'}:/usr/bin:/bin", "HOME": str(folder)}
    return subprocess.run(
        words,
        capture_output=True,
        text=True,
        timeout=2 * SCAN_S + 60,
        cwd=folder,
        env=env,
        stdin=subprocess.DEVNULL,
    )


def _failures(report: Path) -> Iterator[Posted]:
    """One item for each server error or answer that is not as described, by path and status."""
    seen = set[tuple[str, int, str]]()
    for entry in json.loads(report.read_text("utf-8"))["log"]["entries"]:
        asked, answer = entry["request"], entry["response"]
        status, kind = int(answer["status"]), str(answer["content"].get("mimeType", ""))
        undescribed = status not in (200, 400, 404, 405) or not kind.startswith("application/json")
        key = (urlsplit(asked["url"]).path, status, kind.partition(";")[0])
        if status == 0 or asked["method"] != "GET" or not undescribed or key in seen:
            continue
        seen.add(key)
        result = {"status": status, "text": answer["content"].get("text", ""), "content_type": kind}
        title = f"GET {key[0]} answers {status} as {kind}, which its description does not name"
        yield Posted(title=title, calls=(EvidenceCall("http", {"url": asked["url"]}, result),))


def _vulnerabilities(site: str, report: Path) -> Iterator[Posted]:
    """One item for each entry of the report."""
    data = json.loads(report.read_text("utf-8"))
    with httpx.Client(trust_env=False, timeout=10.0) as http:
        for part in ("vulnerabilities", "anomalies"):
            for category, entries in data.get(part, {}).items():
                for one in entries:
                    yield _again(http, site, category, one)


def _again(http: httpx.Client, site: str, category: str, one: dict[str, Any]) -> Posted:
    """An entry of the scanner's report with the answer to its request."""
    asked = str(one.get("http_request") or "").split(" ", 2)  # the path alone has no query
    url = site + (asked[1] if len(asked) > 2 and asked[1].startswith("/") else str(one.get("path", "/")))
    result: dict[str, Any] = {}
    try:
        answer = http.send(http.build_request("GET", url))
    except (httpx.HTTPError, httpx.InvalidURL):
        answer = None
    if answer is not None:
        result = {
            "status": answer.status_code,
            "text": answer.text,
            "headers": dict(answer.headers),
            "content_type": answer.headers.get("content-type", ""),
            "location": answer.headers.get("location", ""),
            "allow_origin": "",
            "secrets": mask(answer.text)[1],
            "a11y": html.read(answer.text)[0].a11y,
            "canary_executable": "Cross Site Scripting" in category,
        }
    return Posted(
        title=f"{category}: {one.get('info', '')}", calls=(EvidenceCall("http", {"url": url}, result),)
    )


def version(program: Path) -> str:
    """The version of an installed peer; "" when it is not installed."""
    if not program.exists():
        return ""
    words = [
        str(program.parent / "python"),
        "-c",
        f"import importlib.metadata as m; print(m.version('{_NAMES[program.name]}'))",
    ]
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()


_NAMES = {"schemathesis": "schemathesis", "wapiti": "wapiti3"}
