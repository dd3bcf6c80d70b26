"""Every room in process: what it shows, its headers, who may ask, and that no text of a stranger acts."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest

from fleet.triage.items.worklist import ProposalLink
from fleet.triage.outputs.document import WorklistHeader
from fleet.triage.outputs.files import save
from fleet.web import rooms
from fleet.web.render import STATIC
from tests.cli.test_worklist_command import own
from tests.web.conftest import FIRST, HELD, Served, personas

ONE = (f"/items/{FIRST}", "/runs/run0")
ROOMS = (*ONE, "/", "/worklist", "/runs", "/personas", "/platform", "/log", "/unlock")
pytestmark = pytest.mark.anyio


class Markup(HTMLParser):
    """What a page's own markup is, without its texts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.acts: set[str] = set()
        self.targets: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.acts |= {name for name, _ in attrs if name.startswith("on") or name in ("style", "srcdoc")}
        self.targets |= {str(value) for name, value in attrs if name in ("href", "src", "action")}


@pytest.mark.parametrize("path", ROOMS)
async def test_a_room_is_private_strict_and_inert(served: Served, path: str) -> None:
    answer = await served.ask(path)
    assert answer.status_code == 200, answer.text[-300:]
    assert answer.headers["cache-control"] == "no-store"
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    assert answer.headers["x-frame-options"] == "DENY"
    found = Markup(answer.text)
    assert found.names.isdisjoint({"style", "iframe", "object", "embed", "base", "video", "audio"})
    assert path in ("/platform", "/personas") or "svg" not in found.names
    assert found.acts == set()
    assert {one for one in found.targets if not one.startswith(("/", "#", "?", "https://"))} == set()
    assert {one for one in found.targets if "hostile.invalid" in one} == set()
    assert not {char for char in answer.text if char in "\x00\x1b\u202e\u2066\ud800"}


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/", ("Not well", "exercise", "ann@desk", "qa-fuzz crashed", "live0001", "05:00 UTC)", "kept back")),
        ("/", ("What is wrong", "critical", "is queued", "Running now", "Cost today")),
        (ONE[0], ("Secret is public", "Life", "ranked by")),
        ("/runs", ("qa-fuzz", "crashed", "run1", "the process ended")),
        ("/personas", ("qa-security", "every 1h", "qa-x", "crashed", "05:00 UTC)")),
        (
            "/platform",
            ("It answers, as qa-ux saw", "by kind", "The last 90 days", "No outage.", "over time", "3 looks"),
        ),
        ("/log", ("stranger", "Entry 0 as it is")),
    ],
)
async def test_what_a_room_says(served: Served, path: str, words: tuple[str, ...]) -> None:
    text = (await served.ask(path)).text
    assert [one for one in words if one not in text] == []


async def test_the_address_filters_the_list_and_an_unknown_value_is_said(served: Served) -> None:
    found = (await served.ask("/worklist?q=secret+client&severity=critical&group=kind")).text
    assert found.count("data-row") == 1
    assert "Secret is public</h2>" in found
    assert 'value="secret client"' in found
    wrong = await served.ask("/worklist?severity=dreadful")
    assert wrong.status_code == 400
    assert "choose one of" in wrong.text
    assert (await served.ask("/items/ffffffffffff0")).status_code == 400
    assert (await served.ask("/runs/nothere")).status_code == 400
    assert "no item has all of these" in (await served.ask("/worklist?q=zzzzzz")).text.lower()


async def test_another_host_gets_nothing_and_a_configured_one_everything(served: Served) -> None:
    for host in ("evil.example", "127.0.0.1.evil.example", "qa.example.org.evil.example:80"):
        for path in (*ROOMS, "/changes", "/static/pages.js"):
            assert (await served.ask(path, host=host)).status_code == 421
        for path in ("/stop", "/unlock", f"/items/{FIRST}/dismiss"):
            assert (await served.ask(path, "POST", host=host)).status_code == 421
    for host in ("localhost:1", "[::1]:80", "qa.example.org"):
        assert (await served.ask("/worklist", host=host)).status_code == 200


async def test_only_our_own_files_are_served(served: Served) -> None:
    for name in STATIC:
        assert (await served.ask(f"/static/{name}")).status_code == 200
    for name in ("page.html.jinja", "..%2Fsite.py", "%2e%2e/%2e%2e/etc/passwd"):
        assert (await served.ask(f"/static/{name}")).status_code == 404


async def test_a_fresh_state_directory_has_every_room_too(served: Served) -> None:
    for name in ("worklist.json", "fleet.db"):
        (served.state / name).unlink()
    for path in ROOMS:
        if path not in ONE:
            assert (await served.ask(path)).status_code == 200, path


async def test_a_run_is_a_timeline_with_verdicts_and_what_left_its_jails(served: Served) -> None:
    folder = served.state / "runs" / "run0"
    folder.mkdir(parents=True)
    call = (
        '{"type":"tool.requested","run":"run0","at":"2026-11-21T04:10:00Z","call":1,"tool":"qa_fetch",'
        '"args":{}}\n'
    )
    denied = (
        '{"type":"gate.denied","run":"run0","at":"2026-11-21T04:10:01Z","call":2,"tool":"qa_fetch",'
        '"rule":"grant","reason":"not granted"}\n'
    )
    answered = (
        '{"type":"tool.responded","run":"run0","at":"2026-11-21T04:10:01Z","call":1,"tool":"qa_fetch",'
        '"is_error":false,"result":{},"seconds":0.1}\n'
    )
    (folder / "trajectory.jsonl").write_text(call + answered + denied + "not json\n")
    asked = '{"n":%d,"at":"","call":1,"verb":"GET","host":"%s","path":"/x","status":%d,"rule":"%s",'
    asked += '"sent":0,"received":0}\n'
    sent = (asked % (1, "a.test", 200, ""), asked % (2, "b.test", 0, "host"))
    (folder / "egress.jsonl").write_text("".join(sent))
    text = (await served.ask("/runs/run0")).text
    assert f"/items/{HELD}" not in text  # on no list yet
    for words in (
        "gate: permitted",
        "gate: refused: grant",
        "GET a.test/x: 200",
        "GET b.test/x: refused by host",
        "1 out of scope, refused",
        "unknown record",
        '<path d="M0.00 0h100.00v6h-100.00z"/></svg><span class="quiet"><bdi>qa_fetch</bdi> 1.00 s</span>',
    ):
        assert words in text


async def test_an_item_has_the_patch_that_was_proposed(served: Served) -> None:
    fixed = own(
        1, "Secret is public", fingerprint=FIRST, proposal=ProposalLink(state="open", proposal="fix1")
    )
    save(served.state, (fixed,), WorklistHeader(platform="devnet"))
    assert "Its patch" not in (await served.ask(f"/items/{FIRST}")).text
    folder = served.state / "runs" / "fix1" / "evidence"
    folder.mkdir(parents=True)
    (folder / "proposal.patch").write_text("--- a/client.js\n+++ b/client.js\n-key <script>\n")
    text = (await served.ask(f"/items/{FIRST}")).text
    assert "Its patch, as proposed" in text
    assert "-key &lt;script&gt;" in text


async def test_more_items_than_a_page_has_are_on_the_next_one(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rooms, "ITEMS", 10)
    text = (await served.ask("/worklist?surface=ux")).text
    assert text.count("data-row") == 10
    assert 'href="?surface=ux&amp;from=10"' in text
    assert (await served.ask("/worklist?surface=ux&from=10")).text.count("data-row") == 10


def test_a_persona_with_a_period_starts_as_often_as_a_day_has_room() -> None:
    loaded = personas()
    assert rooms._starts(loaded["qa-smoke"].persona) == [half / 2 for half in range(49)]
    assert rooms._starts(loaded["qa-perf"].persona) == [0.0, 24.0]
    assert rooms._starts(loaded["qa-fuzz"].persona) == [0.0, 24.0]
