"""What an operator withholds stands on no public log, in whatever spelling it comes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fleet.config import Platform, parse
from fleet.errors import ConfigError
from fleet.findings.envelope import compose, read, write
from fleet.findings.records import ItemRecord, read_record, write_record
from fleet.findings.redact import Redactor
from fleet.findings.repro import ReproCall
from fleet.findings.withheld import WITHHELD, hider, withheld
from tests.findings.test_records import COMPLETE

MASK = ("admin.shop.test", "*.internal.test", "{site}/billing", "/secret", "0xac8063ff")
HIDE = hider(MASK, site="https://shop.test", proxy="")


@pytest.mark.parametrize(
    "named",
    [
        "https://admin.shop.test/x?y=1",
        "admin.shop.test",
        "ADMIN.shop.test:8443",
        "db.internal.test",
        "{site}/billing",
        "{site}/billing/7?x=1",
        "{site}/%62illing/7",
        "{site}/a/../billing",
        "https://shop.test//billing",
        "/billing",
        "/secret/file",
        "https://other.test/secret",
        "{site}/go?next=/billing",
        "{site}/go?next=https%3A%2F%2Fadmin.shop.test%2F",
        "0xAC8063FF",
        "0xac8063ff000000000000000000000000000000000000000000000000000000000000002a",
    ],
)
def test_every_spelling_is_withheld_and_what_is_around_it_stays(named: str) -> None:
    assert HIDE(f"GET {named} shows a key") == f"GET {WITHHELD} shows a key"
    assert HIDE(f'at "{named}", and') == f'at "{WITHHELD}", and'


@pytest.mark.parametrize(
    "text",
    [
        "GET {site}/shop shows a key: 404, a/b and e.g. this",
        "https://shop.test/bill and https://internal.test/",
        "secret/value, billing",
        "0xac8063fe0000",
        "",
    ],
)
def test_nothing_else_is(text: str) -> None:
    assert HIDE(text) == text


def test_an_entry_of_the_log_names_it_nowhere_and_its_evidence_has_the_repro() -> None:
    fields = {"source": "qa-a", "sev": "high", "surface": "web", "run": "", "fp": "ab" * 6, "rate": (3, 3)}
    call = ReproCall("qa_fetch", {"url": "{site}/billing?id=1"})
    title, body = "Secret is public: GET {site}/billing", "see https://admin.shop.test/\nat /secret"
    for ev, repro in (("cd" * 32, "repro: ev"), ("", "repro: none")):
        made = compose(Redactor(hides=HIDE), **fields, ev=ev, title=title, body=body, repro=(call,))  # type: ignore[arg-type]
        text = write(made)
        assert not [word for word in ("billing", "admin.shop", "/secret") if word in text]
        assert text.splitlines()[1] == f"Secret is public: GET {WITHHELD}"
        assert text.splitlines()[-1] == repro
        assert read(text).grammar == "canonical"
    other = replace(call, args={"url": "{site}/shop"})
    text = write(compose(Redactor(hides=HIDE), **fields, ev="", title="x", repro=(other,)))  # type: ignore[arg-type]
    assert text.splitlines()[-1] == 'repro: qa_fetch(url="{site}/shop")'


def test_an_entry_that_names_nothing_is_an_error_of_the_profile() -> None:
    for bad in ("{site}/billing", "/", "0xac80"):
        with pytest.raises(ConfigError, match="mask"):
            parse(Platform, f'name = "p"\n[post]\nmask = ["{bad}"]\n', file="p.toml")
    said = parse(Platform, 'name = "p"\n[post]\nmask = ["/secret", "0xac8063ff"]\n', file="p.toml")
    assert withheld(said)("at /secret/1") == f"at {WITHHELD}"
    assert withheld(parse(Platform, 'name = "p"\n', file="p.toml"))("at /secret/1") == "at /secret/1"


def test_a_persons_reason_and_the_title_of_a_record_are_withheld_too() -> None:
    known = next(one for one in COMPLETE if one.kind == "dismiss")
    record: ItemRecord = replace(known, reason="it is only https://admin.shop.test/")
    text = write_record(record, surface="web", title="GET {site}/billing", redactor=Redactor(hides=HIDE))
    assert not [word for word in ("billing", "admin.shop") if word in text]
    assert read_record(read(text)) is not None
