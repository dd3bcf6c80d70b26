"""Mark: a cold `qa_fetch` jail, made, used through the broker and gone, costs no more than a bare script.

    python -m bench.fetch [--rounds 20]

Peers in the same run: a bare interpreter that imports httpx and fetches (what a script would do), and the
same tool call from the warm pool. The mark of 150 ms is of one machine and only reported; exit status 1 when
the cold median is above the script's.
"""

from __future__ import annotations

import argparse
import asyncio
import http.server
import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from fleet.broker.broker import Broker, EgressPolicy
from fleet.config import ChainSection, Platform, WebSection
from fleet.jail.bwrap.jail import BwrapJail
from fleet.jail.model import Image
from fleet.runs.call.guest_protocol import answer, request_line
from sandbox.spec import Context
from sandbox.tools import TOOLS

MARK_MS = 150.0
FLOOR = 1.0
"""Of the bare script."""
SPEC = TOOLS["qa_fetch"]
PAGE = b"<!doctype html><html lang=en><title>x</title><p>" + b"hello " * 200


class _Page(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.send_header("content-length", str(len(PAGE)))
        self.end_headers()
        self.wfile.write(PAGE)

    def log_message(self, *_: object) -> None:
        pass


async def call(jail: BwrapJail, policy: EgressPolicy, url: str) -> float:
    """Milliseconds of one whole tool call."""
    started = time.perf_counter()
    line = request_line(SPEC, {"url": url}, Context(run="bench", prefix="qa-bench-"))
    outcome = await jail.call(line, deadline_s=20, egress=Broker(policy).egress)
    result = answer(SPEC, outcome)
    assert result["status"] == 200, result
    return (time.perf_counter() - started) * 1e3


def script(url: str) -> float:
    started = time.perf_counter()
    code = f"import httpx; assert httpx.get({url!r}).status_code == 200"
    subprocess.run([sys.executable, "-c", code], check=True)
    return (time.perf_counter() - started) * 1e3


async def measure(rounds: int, base: str) -> dict[str, float]:
    """Medians in milliseconds."""
    web = WebSection(site=base, face=base + "/face/{name}/", proxy=base)
    chain = ChainSection(rpc="http://127.0.0.1:9", id=1, diamond="0x" + "11" * 20)
    policy = EgressPolicy.of(Platform(name="bench", chain=chain, web=web))
    url = base + "/"
    taken: dict[str, list[float]] = {"script": [], "cold": [], "warm": []}
    with tempfile.TemporaryDirectory() as spool:
        cold, warm = (BwrapJail(Image(), pool=size, spool=Path(spool)) for size in (0, 1))
        try:
            for _ in range(rounds):
                taken["script"].append(await asyncio.to_thread(script, url))
                taken["cold"].append(await call(cold, policy, url))
                await warm.warm()
                taken["warm"].append(await call(warm, policy, url))
        finally:
            await cold.aclose()
            await warm.aclose()
    medians = {f"{name}_ms": round(statistics.median(values), 1) for name, values in taken.items()}
    return {**medians, "cold_to_script": round(medians["cold_ms"] / medians["script_ms"], 2)}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=20)
    rounds = parser.parse_args().rounds
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    found = asyncio.run(measure(rounds, f"http://127.0.0.1:{server.server_address[1]}"))
    server.shutdown()
    print(json.dumps({"fetch": found, "mark_ms": MARK_MS, "floor": FLOOR}, indent=2))
    return 0 if found["cold_to_script"] <= FLOOR else 1


if __name__ == "__main__":
    sys.exit(main())
