"""How good the confidence of decisions is: `python -m bench.confidence [STATE ...]`, which prints
docs/bench/confidence.md.

Of the runs in these state directories, or of runs on a site of its own that is silent to a share of requests,
each call is counted that a decision led to, as the method counts it (`runs/call/confidence.py`).
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random
from threading import Thread

from fleet.runs.call.calibration import ScoredCall, brier, read_scored
from fleet.runs.call.confidence import METHOD
from fleet.text import counted

SILENT = (0.0, 0.1, 0.25, 0.4, 0.6)
"""Shares of the requests that the site of each run leaves without an answer."""
BANDS = (0.0, 0.6, 0.7, 0.8, 0.9, 0.95)
"""Where each band of scores begins."""
PAGES = 60
PERSONA = """+++
name = "qa-look"
surface = "ux"
tools = ["qa_fetch"]
explore = ["web"]
budget = { calls = 300, wall = "120s" }
+++
Look around.
"""


def table(calls: Sequence[ScoredCall]) -> str:
    """A line for each band of scores that has calls, and one for all."""
    ends = (*BANDS[1:], 1.01)
    bands = [
        (f"{low:.2f} to {min(high, 1.0):.2f}", [one for one in calls if low <= one.score < high])
        for low, high in zip(BANDS, ends, strict=True)
    ]
    rows = ["| score | decisions | calls | mean score | answered | Brier |", "|---|---|---|---|---|---|"]
    for name, found in [*bands, ("all", list(calls))]:
        if found:
            mean = sum(one.score for one in found) / len(found)
            share = sum(one.answered for one in found) / len(found)
            decisions = len({one.decision for one in found})
            rows.append(
                f"| {name} | {decisions} | {len(found)} | {mean:.3f} | {share:.3f} | {brier(found):.3f} |"
            )
    return "\n".join(rows)


@contextmanager
def site(silent: float) -> Iterator[str]:
    """The URL of a site of PAGES pages that leaves this share of requests without an answer."""
    chance = Random(f"{silent}")

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if chance.random() < silent:
                self.close_connection = True
                return
            links = "".join(f'<a href="/{at}?part={at}">{at}</a>' for at in range(PAGES))
            text = f"<!doctype html><html lang=en><title>{self.path.split('?')[0]}</title>{links}".encode()
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.send_header("content-length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_HEAD = do_OPTIONS = do_GET

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def run(folder: Path, silent: float) -> Path:
    """One run on such a site; its folder."""
    state, config = folder / "state", folder / "config"
    for one in (state, config / "platforms", config / "personas"):
        one.mkdir(parents=True, mode=0o700)
    (config / "personas" / "qa-look.md").write_text(PERSONA)
    (config / "fleet.toml").write_text('platform = "site"\n')
    with site(silent) as url:
        (config / "platforms" / "site.toml").write_text(f'name = "site"\n[web]\nsite = "{url}"\n')
        told = {"STATE_DIRECTORY": str(state), "CONFIGURATION_DIRECTORY": str(config)}
        told["PATH"] = os.environ["PATH"]
        words = [sys.executable, "-m", "fleet.cli", "run", "qa-look"]
        subprocess.run(words, env=told, check=False, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    return next(state.glob("runs/*"))


def page(runs: int, calls: Sequence[ScoredCall], where: str) -> str:
    """The page, or what is missing for one."""
    if not calls:
        return "no decision with a call that had an end"
    return f"""# Confidence of decisions, and what came of them

`make bench-confidence` prints this page; with `ARGS="STATE ..."` it reads the records of runs that are there.
Method {METHOD} of `fleet/runs/call/confidence.py` ([safety](../safety.md)), on {datetime.now(UTC):%Y-%m-%d}:
{counted(runs, "run")} {where}.

A score says how likely a call gets an answer that can be judged. A good one is close to the share that did,
in each band of scores; the Brier score is the mean square of their difference: 0 at best, and 0.25 for who
always says a half. Calls whose end lies with us or with a rule do not count. What a verdict is worth, of
findings that were shown three times of three, is measured where the truth is known:
[unseen platforms](unseen-platforms.md).

{table(calls)}
"""


if __name__ == "__main__":
    if sys.argv[1:]:
        there = [one for state in sys.argv[1:] for one in sorted(Path(state).glob("runs/*"))]
        print(page(*read_scored(there), "that were there"), end="")
    else:
        with tempfile.TemporaryDirectory() as place:
            asked = [run(Path(place) / f"{share}", share) for share in SILENT]
            shares = ", ".join(f"{share:.0%}" for share in SILENT)
            print(page(*read_scored(asked), f"on a site that is silent to {shares} of the requests"), end="")
