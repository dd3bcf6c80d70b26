"""Which pages an answer names: the platform's own, with placeholders, and harmless to ask for again."""

from __future__ import annotations

import pytest

from fleet.drivers.explore.hrefs import LONGEST, MOST, NOBODY, Spelling, harmless

SPELLING = Spelling("http://h:1", "http://h:1/p", "http://{name}.h:1/", "moss")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('<a href="/a/b">', ["{site}/a/b"]),
        ("<a href='c#top'>", ["{site}/docs/c"]),
        ("[guide](../guide.md)", ["{site}/guide.md"]),
        ("GET /api/who?name=<name> tells", ["{site}/api/who?name=moss"]),
        ("`GET /u/{handle}/notes/:id`", ["{site}/u/moss/notes/1"]),
        ("/api/credit?address=", [f"{{site}}/api/credit?address={NOBODY}"]),
        ("POST /api/things, PUT /api/x", []),
        ("see http://h:1/p/status.", ["{proxy}/status"]),
        ("http://fern.h:1/app.wasm", ["{face:fern}app.wasm"]),
        ("http://h:10/x https://elsewhere.test/y //evil.test/z", []),
        ("GET /logout, /api/delete?id=1, /v1/events", []),
        ("http://[h/x", []),
    ],
)
def test_what_a_text_names(text: str, found: list[str]) -> None:
    assert list(SPELLING.found("{site}/docs/a", {"text": text})) == found


def test_links_and_routes_of_a_result_are_read_too() -> None:
    result = {"links": ["http://h:1/one"], "routes": ["GET /two", "POST /three"], "location": "/four"}
    assert set(SPELLING.found("{site}/", result)) == {"{site}/one", "{site}/two", "{site}/four"}


def test_an_answer_names_a_bounded_number_of_pages() -> None:
    text = "\n".join(f"/page{number}" for number in range(10 * MOST))
    assert len(list(SPELLING.found("{site}/", {"text": text, "links": 7, "routes": {"a": 1}}))) == MOST


@pytest.mark.parametrize(
    "page",
    ["{site}/" + "x" * LONGEST, "{site}/a\n", "{name}/x", "http://h/x", "{site}/{run}", 7, "{site}/a b"],
)
def test_what_is_not_asked_for(page: object) -> None:
    assert not harmless(page)


@pytest.mark.parametrize(
    ("target", "page"),
    [
        ("{site}/llms.txt", "{site}/llms.txt"),
        ("fern", "{face:fern}"),
        ("http://h:1/x", "{site}/x"),
        ("http://e/", ""),
    ],
)
def test_a_target_of_the_profile_as_a_page(target: str, page: str) -> None:
    assert SPELLING.target(target) == page
