"""Other people's data: found by kind, told without its values, and nothing in ordinary text."""

from __future__ import annotations

import random
from typing import get_args

import pytest

from fleet.config.authorisation import DataKind
from fleet.findings.personal import BREACH, HELD, KINDS, LAWS, MOST, laws, personal, values


def _card(draw: random.Random) -> str:
    head = f"4{draw.randrange(10**14):014d}"
    return next(head + str(last) for last in range(10) if "card" in personal(head + str(last)))


def corpus() -> dict[str, list[str]]:
    """Synthetic records by kind, at least ten each (five cards and five of health)."""
    draw = random.Random(7)
    papers = [f"{draw.randrange(10**8):08d}" for _ in range(10)]
    return {
        "card": [_card(draw) for _ in range(10)],
        "card-code": [f"cvv: {draw.randrange(100, 1000)}" for _ in range(10)],
        "social-security": [
            f"SSN {draw.randrange(1, 600):03d}-{draw.randrange(1, 99):02d}-4711" for _ in range(10)
        ],
        "passport": [f'"passport_number": "C{one}"' for one in papers],
        "driving-licence": [f"driver's license no: D{one[:7]}" for one in papers],
        "health": [f"MRN: {one}" for one in papers[:5]]
        + [f"diagnosis: {code}" for code in ("E11.9", "I10", "F32.1", "C50.9", "J45")]
        + ["diagnosed with diabetes"],
        "account-number": [
            "DE89 3704 0044 0532 0130 00",
            "GB29NWBK60161331926819",
            "FR1420041010050500013M02606",
        ],
        "trade-secret": [
            "// Company Confidential",
            "this file contains our trade secrets",
            "STRICTLY CONFIDENTIAL",
        ],
        "legal-hold": ["legal hold 2026-7: do not delete", "Under litigation hold, retain all mail"],
        "classified": ["TOP SECRET//SI//NOFORN", '  classification: "CONFIDENTIAL"', "SECRET//REL TO USA"],
    }


@pytest.mark.parametrize(("kind", "text"), [(kind, one) for kind, rows in corpus().items() for one in rows])
def test_each_record_of_the_corpus_is_found(kind: str, text: str) -> None:
    assert list(personal(f"name: Ada\n{text}\nend")) == [kind]


def test_what_is_a_value_is_found_as_it_is_written_and_marks_are_none() -> None:
    for kind, rows in corpus().items():
        for text in rows:
            found = values(f"name: Ada\n{text}\nend")
            assert list(found) == ([kind] if kind in HELD else []), text
            assert all(value in text for value in found.get(kind, ()))
    mails = [f"person{n}@mail{n}.example.org" for n in range(10)]
    assert values(" ".join(mails)) == {"e-mail": mails}
    assert values(" ".join(mails[:9])) == {}
    assert values(corpus()["card"][0]) == {}  # a number alone says nothing of what it is


def test_people_are_a_list_from_ten_on() -> None:
    mails = [f"person{n}@mail{n}.example.org" for n in range(10)]
    phones = [f"+49 30 1234{n:04d}" for n in range(10)]
    assert personal(" ".join(mails[:9] * 3)) == {}
    assert personal(" ".join(mails)) == {"e-mail": "10"}
    assert personal("\n".join(phones[:9])) == {}
    assert personal("\n".join(phones)) == {"telephone": "10"}


def test_a_card_is_told_by_its_last_digits_alone() -> None:
    card = corpus()["card"][0]
    spaced = " ".join(card[at : at + 4] for at in range(0, 16, 4))
    assert personal(f"paid with {spaced}") == {"card": f"1, the first ends in {card[-4:]}"}


@pytest.mark.parametrize(
    "text",
    [
        "paid with 4242 4242 4242 4242 as the documents say",
        "order 4000123412341234567890123",
        "0x4532015112830366453201511283036645320151",
        "4444 4444 4444 4444",
        "call us: +49 30 12345678, mail a@example.org",
        "a part number 123-45-6789",
        "passport control is open until 22:00",
        "drivers license required",
        "the diagnosis page, and a secret recipe",
        "SECRET\nCONFIDENTIALITY\nclassification: public",
        "version 4.5320.1511.2830366",
        "cvv: 12",
        "GB29NWBK60161331926818",
        "1616161616161616161 ms",
        "your message is confidential; our privacy policy, and what a trade secret is",
        "a legal hold is a notice",
    ],
)
def test_ordinary_text_gives_nothing(text: str) -> None:
    assert personal(text) == {}


def test_every_kind_is_in_the_corpus_and_a_long_text_ends() -> None:
    assert set(KINDS) == {*corpus(), "e-mail", "telephone"}
    for piece in ("4", "4 ", "a@", "+1", "DE89 ", "1-", "passport ", "driver's license "):
        assert personal(piece * MOST) == {}


def test_a_profile_can_permit_every_kind_and_each_names_a_law() -> None:
    assert set(get_args(DataKind)) == set(KINDS) == set(LAWS)
    assert laws(["health", "card"]) == ["CCPA", "GDPR", "HIPAA", "PCI DSS", "PIPEDA", "state privacy laws"]


def test_so_many_records_that_a_breach_has_to_be_told_are_said() -> None:
    mails = [f"p{number}@mail.example.org" for number in range(BREACH + 1)]
    assert personal(" ".join(mails[:-1])) == {"e-mail": f"{BREACH}"}
    assert personal(" ".join(mails)) == {
        "e-mail": f"{BREACH + 1}, more than {BREACH}: a breach that has to be told"
    }
