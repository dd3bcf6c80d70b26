"""GET requests that change a platform's state are known by name, by answer and by effect."""

from __future__ import annotations

from typing import Any

import pytest

from fleet.drivers.explore.state_changes import (
    EXPLORING,
    FREE,
    StateChanges,
    ends_or_spends,
    may_act,
    names_act,
    reports_change,
)

SITE = "http://s"
ACTS = (
    *(
        "/reset",
        "/setup/reset-db",
        "/resetDB.php",
        "/admin/delete/7",
        "/logout",
        "/sign-out",
        "/api/createdb",
    ),
    *(
        "/create_database",
        "/db/reset",
        "/init-db",
        "/start-over",
        "/startOver",
        "/set-level/3",
        "/setSecurity",
    ),
    *(
        "/?action=reset",
        "/index.php?do=delete&id=3",
        "/x?set_level=low",
        "/toggle/hints",
        "/purge",
        "/seed/data",
    ),
    *("/clear-cache", "/items/3/destroy", "/users/log_off", "/restart", "/v1/tables/truncate", "/wipe%20all"),
    *("/enable-debug", "/factory-reset", "/database/restore", "/delete-account", "/account/deactivate"),
)
READS = (
    *(
        "/",
        "/about",
        "/docs/reset.md",
        "/static/reset.css",
        "/forgot-password",
        "/reset-password",
        "/level/3",
    ),
    *("/created", "/presets", "/settings", "/delta", "/items?sort=deleted", "/search?q=moss", "/setup-guide"),
    *(
        "/how-to-reset-your-own-small-garden-router-at-home",
        "/database",
        "/create",
        "/clearing",
        "/users/logs",
    ),
)


@pytest.mark.parametrize("path", ACTS)
def test_a_name_of_an_act(path: str) -> None:
    assert names_act(SITE + path)


@pytest.mark.parametrize("path", READS)
def test_a_name_of_a_page(path: str) -> None:
    assert not names_act(SITE + path)


@pytest.mark.parametrize(
    ("text", "headers", "acts"),
    [
        ("<p>Database has been created.</p>", {}, True),
        ("Reset done", {}, True),
        ("Your progress was reset.", {}, True),
        ('{"status": "deleted"}', {}, True),
        ("You have been logged out", {}, True),
        ("", {"set-cookie": "sid=; Max-Age=0; Path=/"}, True),
        ("", {"set-cookie": "sid=deleted; expires=Thu, 01 Jan 1970 00:00:00 GMT"}, True),
        ("", {"set-cookie": "sid=abc; Path=/"}, False),
        ("Choose what to reset.", {}, False),
        ("This note was created on Monday.", {}, False),
        ("Nothing was found", {}, False),
        ("moss " * 400 + "the database was deleted in 1999", {}, False),
    ],
)
def test_an_answer_says_that_something_was_done(text: str, headers: dict[str, str], acts: bool) -> None:
    assert reports_change({"status": 200, "text": text, "headers": headers}) is acts


def fetch(url: str, **more: Any) -> tuple[str, dict[str, Any]]:
    return "qa_fetch", {"url": SITE + url, **more}


def answers(changes: StateChanges, *said: tuple[str, str]) -> None:
    for url, text in said:
        changes.observe(*fetch(url), {"status": 200, "text": text})


LONG = "moss and fern and peat " * 40


@pytest.mark.parametrize(
    ("said", "known"),
    [
        ((("/", "level low"), ("/a", LONG), ("/", "level high"), ("/", "level high")), {"http://s/a"}),
        ((("/", "low"), ("/a", LONG), ("/b?x=1", "ok"), ("/", "high"), ("/", "high")), {"http://s/b?x"}),
        ((("/", "low"), ("/a", LONG), ("/b", LONG), ("/", "high"), ("/", "high")), set()),  # held back
        ((("/", "one"), ("/a", LONG), ("/", "two"), ("/", "three")), set()),  # it changes by itself
        ((("/", "visit 1"), ("/a", LONG), ("/", "visit 2"), ("/", "visit 3")), set()),
        ((("/", "low"), ("/a", "ok"), ("/", "low"), ("/", "low")), set()),
    ],
)
def test_a_page_that_was_seen_before_has_changed_right_after(
    said: tuple[tuple[str, str], ...], known: set[str]
) -> None:
    changes = StateChanges()
    answers(changes, *said)
    assert changes.known == known


def test_it_is_asked_once_as_a_visitor_and_never_measured() -> None:
    for url in ("/flip", "/reset?all=1"):
        changes = StateChanges(known={"http://s/flip"})
        for more in ({"repeat": 20}, {"rate": 10.0, "repeat": 50}, {"control": "http://s/"}):
            for asker in (EXPLORING, FREE, "probe"):
                for proof in (True, False):
                    assert "not measured" in changes.why_not(*fetch(url, **more), asker, proof=proof)
        assert "at most once" in changes.why_not(*fetch(url, origin="http://x"), EXPLORING)
        assert changes.why_not(*fetch(url), EXPLORING) == ""
        assert "at most once" in changes.why_not(*fetch(url), EXPLORING)
    assert changes.why_not(*fetch("/reset", method="POST"), EXPLORING) == ""  # the gate's to decide
    assert changes.why_not(*fetch("/moss", repeat=20), EXPLORING) == ""


@pytest.mark.parametrize("url", ["/flip", "/reset", "/flip?x=1"])
@pytest.mark.parametrize("first", ["a", EXPLORING, FREE])
def test_only_the_probe_that_asked_first_and_a_proof_ask_again(url: str, first: str) -> None:
    changes = StateChanges(known={"http://s/flip"})
    assert changes.why_not(*fetch(url.partition("?")[0]), first) == ""
    assert (changes.why_not(*fetch(url), "a") == "") is (first in ("a", FREE))  # a claim of the driver's own
    for asker in ("b", EXPLORING, FREE):
        assert "at most once" in changes.why_not(*fetch(url), asker)
        assert changes.why_not(*fetch(url), asker, proof=True) == ""


def test_of_a_few_pages_none_is_attacked_when_one_of_them_changed_something() -> None:
    changes = StateChanges()
    answers(changes, ("/", "low"), ("/a", LONG), ("/b", LONG), ("/", "high"), ("/", "high"))
    for url in ("/a", "/b"):
        assert "at most once" in changes.why_not(*fetch(url, origin="http://x"), EXPLORING)
    assert changes.state() == {"known": [], "settled": []}  # the next run may tell them apart


def test_a_page_that_changes_by_itself_accuses_none() -> None:
    changes = StateChanges(settled={"http://s/a"})
    answers(changes, ("/", "one"), ("/a", LONG), ("/", "two"), ("/b", LONG), ("/", "red"), ("/", "red"))
    assert (changes.known, changes.changes(SITE + "/b")) == (set(), False)


def test_what_an_act_changed_accuses_no_page() -> None:
    changes = StateChanges()
    answers(changes, ("/", "no entries"), ("/a", LONG))
    changes.acted()
    answers(changes, ("/", "an entry"), ("/", "an entry"))
    assert not changes.changes(SITE + "/a")


@pytest.mark.parametrize("path", ["/order/7", "/pay", "/posts/3/vote", "/users/7/ban", "/logout", "/reset"])
def test_words_that_end_or_spend(path: str) -> None:
    assert ends_or_spends(path)
    assert may_act(path)


@pytest.mark.parametrize("path", ["/register", "/sign-up", "/posts/create", "/api/sendMail", "/webhook"])
def test_words_that_make(path: str) -> None:
    assert not ends_or_spends(path)
    assert may_act(path)


@pytest.mark.parametrize("path", ["/orders/7", "/payments", "/moss", "/releases", "/users/7", "/likely"])
def test_words_that_only_read(path: str) -> None:
    assert not may_act(path)


def test_what_is_known_is_kept_and_a_state_that_is_not_one_is_ignored() -> None:
    changes = StateChanges()
    answers(changes, ("/", "a"), ("/flip", "ok"), ("/", "b"), ("/", "b"), ("/c", LONG), ("/", "b"))
    again = StateChanges.of(changes.state())
    assert (again.known, again.settled) == ({"http://s/flip"}, {"http://s/c"})
    assert StateChanges.of({"known": 7, "settled": {}}) == StateChanges()
