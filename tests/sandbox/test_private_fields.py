"""Secrets and personal data in JSON: a field's name and the shape of its value together."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.secrets.fields import DEPTH, MANY_PEOPLE, MOST, NAMES, private_fields

BCRYPT = "$2b$12$abcdefghijklmnopqrstuv0123456789ABCDEFGHIJKLMNOPQRSTU"
SHA = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("password_hash", BCRYPT),
        ("passwordHash", SHA),
        ("hashed_password", SHA),
        ("pwd_digest", SHA),
        ("reset_token", "f3a9c1d2e4"),
        ("otp", "482911"),
        ("totp_secret", "JBSWY3DPEHPK3PXP"),
        ("client_secret", "dontshare"),
        ("DATABASE_URL", "postgres://app:hunter2@db.internal/app"),
        ("aws_secret_access_key", "wJalrXUtnFEMI7K7MDENGbPxRfiCY"),
        ("api_key", "ab12cd34ef56"),
        ("ssn", "078-05-1120"),
        ("card_number", "4111 1111 1111 1111"),
        ("cvv", 123),
    ],
)
def test_a_name_and_a_value_that_fit_each_other(name: str, value: object) -> None:
    assert private_fields({"data": [{name: value, "id": 7}]}) == (name,)


@pytest.mark.parametrize(
    "document",
    [
        {"password": "Passwort", "username": "Benutzername"},  # translations
        {"password": "hunter2!"},  # a password alone: what was just typed into a form
        {"password_hash": "********", "api_key": "<hidden>"},
        {"password": None, "otp": True, "cvv": ""},
        {"properties": {"password": {"example": "hunter2!", "type": "string"}}, "name": "x"},
        {"openapi": "3.1.0", "password_hash": SHA},
        {"access_key": "documentation", "secret_key": "short"},
        {"PATH": "/usr/bin"},  # one name of an environment, not one
        {"count": 4111111111111111, "hash": SHA},
        [f"user{at}@mail.test" for at in range(MANY_PEOPLE - 1)],
        "password_hash",
        None,
    ],
)
def test_what_is_nobodys_secret(document: object) -> None:
    assert private_fields(document) == ()


def test_a_password_beside_a_person_is_one() -> None:
    assert private_fields([{"username": "ada", "password": "Tarred-rope-41"}]) == ("password",)


def test_an_environment_and_the_addresses_of_many_people() -> None:
    shown = {"env_vars": {"HOME": "/home/app", "PATH": "/bin", "MODE": "x"}}
    assert private_fields(shown) == ("env_vars",)
    people = [{"mail": f"user{at}@{'mail.test' if at else 'mail.example'}"} for at in range(MANY_PEOPLE)]
    assert private_fields(people) == ("e-mail addresses of many people",)


def test_what_the_caller_wrote_or_was_given_is_its_own() -> None:
    ours = frozenset({"Qa1!0123", *(f"user{at}@mail.test" for at in range(MANY_PEOPLE))})
    people = [{"mail": f"user{at}@mail.test"} for at in range(MANY_PEOPLE)]
    assert private_fields([{"username": "qa", "password": "Qa1!0123"}, *people], ours) == ()


def test_a_hostile_document_is_bounded() -> None:
    deep: Any = {"otp": "482911"}
    for _ in range(DEPTH):
        deep = {"a": deep}
    assert private_fields(deep) == ()
    wide: list[Any] = [{"x": at} for at in range(MOST)] + [{"otp": "482911"}]
    assert private_fields(wide) == ()
    many = {f"user{at}_otp": "482911" for at in range(NAMES + 5)}
    assert len(private_fields(many)) == NAMES
