"""The platform's URLs in a repro's form, and documented routes with values filled in."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.config import Platform
from fleet.drivers.explore.documents.routes import Examples, filled, holes
from fleet.drivers.explore.own_urls import OwnUrls

CHAIN = {"rpc": "http://127.0.0.1:1", "id": 1, "diamond": "0x" + "11" * 20}


def platform(**web: Any) -> Platform:
    return Platform.model_validate({"name": "p", "chain": CHAIN, "web": web, "call_targets": ["heron"]})


ONE = OwnUrls(platform(site="http://a.test:9", proxy="http://a.test:9", face="http://a.test:9/nest/{name}/"))
SEVERAL = OwnUrls(
    platform(
        site="https://a.test",
        proxy="https://p.a.test/api",
        face="https://{name}.a.test/",
        hosts=["files.test:443"],
    )
)


@pytest.mark.parametrize(
    ("urls", "link", "spelled"),
    [
        (ONE, "/x?y=1#z", "{site}/x?y=1"),
        (ONE, "b", "{site}/deep/b"),
        (ONE, "http://a.test:9", "{site}/"),
        (ONE, "/nest/egret/song?q=1", "{face:egret}song?q=1"),
        (ONE, "/nest/Egret/", "{site}/nest/Egret/"),
        (ONE, "/{name}/ä b", "{site}/%7Bname%7D/%C3%A4%20b"),
        (ONE, "http://a.test:99/", ""),
        (ONE, "http://a.test:9@b.test/", ""),
        (ONE, "//b.test/", ""),
        (ONE, "mailto:x@a.test", ""),
        (ONE, "/" + "x" * 500, ""),
        (SEVERAL, "https://A.test:443/x", "{site}/x"),
        (SEVERAL, "https://p.a.test/api/v1", "{proxy}/v1"),
        (SEVERAL, "https://p.a.test/apis", "{face:p}apis"),
        (SEVERAL, "https://egret.a.test", "{face:egret}"),
        (SEVERAL, "https://files.test/a", "https://files.test/a"),
        (SEVERAL, "http://a.test/x", ""),
        (SEVERAL, "https://a.test.evil.test/", ""),
    ],
)
def test_a_link_in_the_form_of_a_repro(urls: OwnUrls, link: str, spelled: str) -> None:
    assert urls.spelled(link, "{site}/deep/one") == spelled


def test_places_and_origins() -> None:
    assert (ONE.places, ONE.origins) == (("{site}",), ("http://a.test:9",))
    assert SEVERAL.places == ("{site}", "{proxy}")
    assert SEVERAL.origins == ("https://a.test", "https://p.a.test", "https://files.test")
    assert OwnUrls(platform()).places == ()


@given(st.text(max_size=40))
def test_a_spelled_link_means_what_it_said_and_stays_at_home(link: str) -> None:
    if spelled := ONE.spelled(link, "{site}/deep/one"):
        actual = ONE.actual(spelled)
        assert actual.startswith("http://a.test:9/")
        assert ONE.spelled(actual) == spelled


@pytest.mark.parametrize(
    ("target", "links"),
    [
        ("/nest/<name>/song", ["/nest/heron/song"]),
        ("/a?kind=high|low", ["/a?kind=high", "/a?kind=low"]),
        ("/a?of=<address>", [f"/a?of={CHAIN['diamond']}"]),
        ("/eggs/{id}", ["/eggs/1", "/eggs/2", "/eggs/10"]),
        ("/eggs/:id.svg", ["/eggs/1.svg", "/eggs/2.svg", "/eggs/10.svg"]),
        ("/a?depth=N&fixed=7", ["/a?depth=3&fixed=7", "/a?depth=4&fixed=7"]),
        ("{base}/a[?q=TEXT]", ["/a?q=help", "/a?q=heron"]),
        ("http://h.test/<name>", ["http://h.test/heron"]),
        ("/plain:call?alt=sse", ["/plain:call?alt=sse"]),
    ],
)
def test_a_route_filled(target: str, links: list[str]) -> None:
    known = Examples.of(platform())
    known.learn("/seen?depth=3&depth=4")
    assert [one.link for one in filled(target, known)] == links


def test_the_places_of_values() -> None:
    [one] = filled("http://h.test/nest/<name>/x?at=9", Examples.of(platform()))
    assert one.inputs == (("path", "-2", "heron"), ("query", "at", "9"))


@pytest.mark.parametrize(
    ("link", "template"),
    [
        ("/a/<b>", True),
        ("/a/{b}", True),
        ("/a/:b", True),
        ("/a?b=<c>", True),
        ("/a:b?c=d", False),
        ("/A/b", False),
    ],
)
def test_a_link_with_something_to_fill_in(link: str, template: bool) -> None:
    assert holes(link) is template


@given(st.text(max_size=60))
def test_whatever_a_document_says_a_filling_is_a_link(target: str) -> None:
    for one in filled(target, Examples.of(platform())):
        ONE.spelled(one.link, "{site}/")


def test_a_number_that_a_document_asks_for_is_a_number() -> None:
    known = Examples(names=["moss"])
    (first, *_) = filled("/data/records?text=<words>&count=<a number from 1 to 80>", known)
    assert first.link == "/data/records?text=help&count=1"
