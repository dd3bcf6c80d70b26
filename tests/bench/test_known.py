"""How the bench of known defects counts, and that it asks for a path as it is written."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bench.findings.fleet_rounds import FinderOutcome
from bench.findings.rules import Posted
from bench.known import KnownDefect, climbs, get, goes_elsewhere, shown, told

CLIMB, LED = climbs("/../etc/passwd"), goes_elsewhere("//evil.example/%2f..")
SERVER = """import http.server, sys
class Raw(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(b"asked: " + self.path.encode())
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Raw).serve_forever()
"""


def posted(*titles: str) -> FinderOutcome:
    return FinderOutcome(items=[Posted(title=title, calls=(), surface="security", at="") for title in titles])


def test_an_item_counts_for_the_defect_that_its_title_reports() -> None:
    climbed = "Files outside the served folder can be read: GET x: it reads /etc/passwd"
    other = "GET {site}/: the header x-frame-options is missing"
    said = told(posted(climbed, other), (CLIMB, LED), (CLIMB.name, LED.name))
    assert said["known"] == {CLIMB.name: [climbed], LED.name: []}
    assert (said["others"], said["troubles"]) == ([other], [])


def test_a_defect_that_does_not_show_by_hand_is_trouble() -> None:
    said = told(posted(), (CLIMB, LED), (LED.name,))
    assert said["troubles"] == ["reads any file: did not show by hand"]


@pytest.mark.anyio
async def test_a_path_is_asked_as_it_is_written_with_values_of_earlier_answers(tmp_path: Path) -> None:
    (tmp_path / "raw.py").write_text(SERVER)
    there = KnownDefect("there", get("/%2e%2e/..//x"), r"(?m)^asked: /%2e%2e/\.\.//x$", "")
    absent = KnownDefect("absent", get("/../x"), "^asked: /x$", "")
    kept = KnownDefect(
        "kept",
        (*get("/one"), *get("/two$path/$other")),
        r"(?m)^asked: /two/one/\$other$",
        "",
        keep={"path": "d: (.*)"},
    )
    words = [sys.executable, str(tmp_path / "raw.py")]
    found = await shown(lambda at, port: [*words, str(port)], (there, absent, kept), tmp_path)
    assert found == ["there", "kept"]
