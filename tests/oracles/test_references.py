"""A page's own links lead somewhere."""

from __future__ import annotations

from typing import Any

import pytest

from fleet.oracles.model import Exchange, Facts
from fleet.oracles.table import judge

FACTS = Facts(site="http://h:1", face="http://h:1/at/{name}/")


def asked(page: str, target: str, status: int = 404, **more: Any) -> list[str]:
    links = ["/b", "c", "http://h:1/d#e", "https://elsewhere.test/x", "../f"]
    first = Exchange("qa_fetch", {"url": page}, {"status": 200, "links": links} | more)
    last = Exchange("qa_fetch", {"url": target}, {"status": status})
    return [one.oracle for one in judge((first, last), FACTS)]


@pytest.mark.parametrize(
    ("page", "target"),
    [
        ("{site}/a", "{site}/b"),
        ("{site}/x/a", "{site}/x/c"),
        ("{site}/a", "{site}/d"),
        ("{face:docs}", "{face:docs}c"),
        ("{face:docs}", "{site}/b"),
    ],
)
def test_a_dead_link(page: str, target: str) -> None:
    assert asked(page, target) == ["dead-link"]
    assert asked(page, target, 410) == ["dead-link"]


@pytest.mark.parametrize(
    ("page", "target", "more"),
    [
        ("{site}/a", "{site}/b", {"links": ["/x"]}),
        ("{site}/a?q=x", "{site}/b", {}),  # what it shows may be ours
        ("{site}/a", "{site}/other", {}),
        ("{face:qa-abcd2345-1}", "{site}/b", {}),  # a page of the run's own
        ("{site}/a", "{site}/b", {"unjudged": ["links"]}),
    ],
)
def test_not_a_dead_link(page: str, target: str, more: dict[str, Any]) -> None:
    assert asked(page, target, **more) == []
    assert asked("{site}/a", "{site}/b", 403) == []


def test_dead_links_that_say_no_folder_are_one_defect_of_their_page() -> None:
    """Where the page stands decides where they lead: an `index.html` served from another folder, say."""

    def link(page: str, target: str) -> str:
        links = ["b.js", "deep/c.css", "/d", "/e"]
        first = Exchange("qa_fetch", {"url": page}, {"status": 200, "links": links})
        (found,) = judge((first, Exchange("qa_fetch", {"url": target}, {"status": 404})), FACTS)
        return found.sighting.where["link"]

    assert link("{site}/x/index.html", "{site}/x/b.js") == link("{site}/x/index.html", "{site}/x/deep/c.css")
    assert link("{site}/y/index.html", "{site}/y/b.js") != link("{site}/x/index.html", "{site}/x/b.js")
    assert link("{site}/x/index.html", "{site}/d") != link("{site}/x/index.html", "{site}/e")
    assert link("{site}/x/index.html", "{site}/d") == link("{site}/y/index.html", "{site}/d")
