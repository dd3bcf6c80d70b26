"""Accounts that the operator names in the profile: read, kept secret, and used in place of a sign-up."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from fleet.app.account_secrets import account_secrets
from fleet.config import Platform
from fleet.errors import ConfigError
from fleet.findings.redact import Redactor
from fleet.runs.call.batch import QuestionRound
from sandbox import http
from sandbox.errors import Deadline, DeadlinePassed
from sandbox.sites.accounts import AccountAnswer
from sandbox.sites.api_play import ApiPlay
from sandbox.sites.sessions import AccountSession
from sandbox.tools.qa_account import Args
from tests.accounts.playing import CHAIN, play
from tests.accounts.shapes import SHAPES
from tests.accounts.site import HiddenToken
from tests.runs.table import PLATFORM, persona, seated

pytestmark = pytest.mark.anyio
ONE = {"user": "ann@example.com", "secret_env": "QA_ACCOUNT_ONE"}
TWO = {"user": "ben@example.com", "secret_file": "keys/ben"}
SECRETS = {
    "one": {"user": "ann", "secret": "a-secret-of-ann"},
    "other": {"user": "ben", "secret": "a-secret-of-ben"},
}


def profile(**accounts: Any) -> Platform:
    web = {"site": "http://127.0.0.1:9", "act_paths": ["{site}/"]}
    return Platform.model_validate({"name": "p", "chain": CHAIN, "web": web, "accounts": accounts})


def test_a_secret_comes_from_the_environment_or_a_private_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QA_ACCOUNT_ONE", "a-long-secret")
    (tmp_path / "keys").mkdir(mode=0o700)
    file = tmp_path / "keys/ben"
    file.write_text("another-secret\n")
    file.chmod(0o600)
    known = profile(one=ONE, other=TWO)
    assert account_secrets(known, tmp_path) == {
        "one": {"user": "ann@example.com", "secret": "a-long-secret"},
        "other": {"user": "ben@example.com", "secret": "another-secret"},
    }
    file.chmod(0o644)
    with pytest.raises(ConfigError, match="keys/ben"):
        account_secrets(known, tmp_path)
    monkeypatch.setenv("QA_ACCOUNT_ONE", "short")
    with pytest.raises(
        ConfigError, match=r"platform p: accounts\.one\.secret_env: QA_ACCOUNT_ONE is not set"
    ):
        account_secrets(known, tmp_path)


@pytest.mark.parametrize(
    ("accounts", "why"),
    [
        ({"one": ONE}, "other"),
        ({"one": ONE, "other": ONE}, "the same user"),
        ({"one": ONE, "other": {"user": "ben"}}, "name one place of the secret"),
        ({"one": ONE, "other": {**TWO, "password": "x"}}, "password"),
        ({"one": ONE, "other": TWO, "carried": "pigeon"}, "carried"),
        ({"one": ONE, "other": TWO, "login": "http://"}, "login"),
    ],
)
def test_a_mistake_in_the_profile_is_an_error_that_names_the_key(accounts: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        profile(**accounts)


@pytest.mark.parametrize(
    ("name", "named", "user"),
    [
        ("basic", {}, "username"),
        ("token-form", {}, "email"),
        (
            "nested",
            {"login": "{site}/api/v1/auth/login", "fields": {"email": "{user}", "password": "{secret}"}},
            "email",
        ),
        ("key-header", {"carried": "header X-Parcel-Key"}, ""),
    ],
)
async def test_named_accounts_sign_in_and_nobody_is_signed_up(
    name: str, named: dict[str, Any], user: str
) -> None:
    found = set()
    for leaks in (True, False):
        shape = SHAPES[name](leaks=leaks)
        shape.profile = {
            "accounts": {"one": {**ONE, "user": "ann"}, "other": {**TWO, "user": "ben"}, **named}
        }
        shape.accounts = SECRETS
        for one in SECRETS.values():
            shape.people |= {one["user"]: {user: one["user"], "password": one["secret"]}} if user else {}
            shape.tokens |= {} if user else {one["secret"]: one["user"]}
        before = set(shape.people)
        played = await play(shape)
        assert (played.refusals, played.left, set(shape.people)) == ([], [], before)
        assert "a-secret" not in played.text + repr(played.asked)
        found |= {(leaks, one) for one in played.found}
    assert found == {(True, "account-read")}


async def test_named_accounts_log_in_by_a_form() -> None:
    shape = HiddenToken(leaks=True)
    shape.profile = {"accounts": {"one": {**ONE, "user": "ann"}, "other": {**TWO, "user": "ben"}}}
    shape.accounts = SECRETS
    shape.people = {one["user"]: {"password": one["secret"]} for one in SECRETS.values()}
    played = await play(shape)
    assert (played.found, played.refusals) == ({"form-read"}, [])
    assert set(shape.people) == {"ann", "ben"}
    assert "a-secret" not in played.text + repr(played.asked)


@pytest.mark.parametrize(("accounts", "sent"), [(SECRETS, 0), ({}, 1)])
def test_no_wrong_passphrase_is_sent_for_a_named_account(
    monkeypatch: pytest.MonkeyPatch, accounts: dict[str, dict[str, str]], sent: int
) -> None:
    """It may be locked by a few of them, and is not ours."""
    asked = list[http.HttpRequest]()

    def answered(page: http.HttpRequest, _deadline: Deadline) -> http.HttpReply:
        asked.append(page)
        raise DeadlinePassed("enough was seen")

    monkeypatch.setattr(http, "send", answered)
    keys = {"user": "{user}", "password": "{secret}"}
    args = Args(url="http://127.0.0.1:9/", steps=(), login="/login", login_fields=keys)
    played = ApiPlay(args, accounts, Deadline(5.0))
    with nullcontext() if accounts else pytest.raises(DeadlinePassed):
        assert played.step(["wrong", "POST", "/login", keys], 0) == AccountAnswer()
    assert len(asked) == sent


@pytest.mark.parametrize(
    ("text", "learned"),
    [
        ("fmyxWHiwsfwLpXBSZaOMuftITBulab-V", True),
        ("4G0ZXR9rA53lRaSUKQqu-VLCM8aZvDbE", True),
        ("please-log-in-to-go-on-from-here", False),
        ("SessionOfThisVisitorIsNotKnownYet", False),
    ],
)
def test_a_token_need_not_have_a_digit(text: str, learned: bool) -> None:
    session = AccountSession()
    body = json.dumps({"result": {"credentials": {"value": text}}}).encode()
    session.learn(http.HttpReply(200, {"content-type": "application/json"}, body, 1.0), "", "/login")
    assert (session.token == text) is learned


async def test_no_jail_but_that_of_the_account_tool_receives_the_accounts(tmp_path: Path) -> None:
    web = PLATFORM.web.model_copy(update={"act_paths": ("{site}/",)})
    paper = PLATFORM.model_copy(update={"web": web})
    one = persona(tools=("qa_account", "qa_fetch"))
    page = {"url": "{site}/join"}
    async with seated(tmp_path, one, platform=paper, accounts=SECRETS) as table:
        session = table.drive.runner.session
        urls = session.bindings(fresh_name=False).resolve(dict(page))
        await session.call("qa_fetch", urls)
        await QuestionRound(session, [[("qa_fetch", urls)], [("qa_fetch", {**urls, "method": "HEAD"})]])()
        await session.call("qa_account", {**urls, "steps": [["one", "GET", "/me", {}]]})
        given = table.jail.accounts
    assert [tool for tool, had in given if had] == ["qa_account"]
    assert given[-1] == ("qa_account", SECRETS)
    assert len(given) >= 3


def test_what_stands_for_a_passphrase_is_kept_in_records_and_a_passphrase_is_not() -> None:
    masked = Redactor()
    for word in ("{phrase}", "{secret}", "{phrase:[Q][a][1][a-z0-9]{13}}"):
        assert masked.value({"password": word}) == {"password": word}
    assert masked.value({"password": "hunter2-hunter2"}) == {"password": "[redacted:private]"}


def cookie(value: str) -> http.HttpReply:
    return http.HttpReply(200, {"set-cookie": f"sid={value}; Path=/"}, b'{"csrf_token": "c-1"}', 0.0)


def test_a_forged_token_is_shown_alone_and_is_that_of_the_last_log_in() -> None:
    """By a cookie that stays beside it the session would be open, whatever the token."""
    session = AccountSession()
    assert session.learn(cookie("first-session"), "", "/join")
    assert session.learn(cookie("second-session"), "", "/login")
    assert session.token == "second-session"
    forged = session.forged("garbage")
    assert forged is not None
    assert forged.sent("/", acts=False) == {"cookie": "sid=not-a-token-of-anybody"}
    bearer = AccountSession()
    bearer.learn(cookie("first-session"), "", "/join")
    bearer.carry("a-bearer-token", "")
    shown = bearer.forged("garbage")
    assert shown is not None
    assert shown.sent("/", acts=False) == {"authorization": "Bearer not-a-token-of-anybody"}
