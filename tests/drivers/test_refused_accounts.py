"""What a site says when it refuses an account leaves the jail: its status and its words, never ours."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.sandbox.doubles import Got, bench, http_answer, json_answer

pytestmark = pytest.mark.anyio
API = {"fields": {"name": "{handle}", "password": "{phrase}"}, "steps": [["anonymous", "GET", "/me", {}]]}
FORMS: dict[str, Any] = {
    "fields": {"name": "{handle}", "password": "{phrase}"},
    "page": "/join",
    "steps": [["anonymous", "GET", "/", {}, ""]],
}
HTML = "Content-Type: text/html"
FORM = '<form method="post" action="/join"><input name="name"><input type="password" name="password"></form>'


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (
            json_answer(422, {"error": "password must have a capital"}),
            'the sign-up answers 422: {"error": "password must have a capital"}',
        ),
        (json_answer(429, {"detail": "slow down"}), 'the sign-up answers 429: {"detail": "slow down"}'),
        (http_answer(403, b""), "the sign-up answers 403"),
        (
            http_answer(
                403,
                b"<html><head><title>x</title></head><p>Hello.</p><p>Sign-up is  <b>closed</b>.</p>",
                HTML,
            ),
            "the sign-up answers 403: Sign-up is closed.",
        ),
        (
            http_answer(400, b"key 0x" + b"7f" * 32 + b"\x1b[31m is invalid"),
            "the sign-up answers 400: key [hidden][31m is invalid",
        ),
        (http_answer(200, b"{}"), "the log-in answers without a token: {}"),
    ],
)
async def test_an_api_that_refuses_an_account_is_quoted(answer: bytes, said: str) -> None:
    async with bench(lambda got: answer, acts="/join") as it:
        result = await it.run("qa_account", {"url": f"{it.site.url}/join", **API})
    assert (result["ok"], result["error_class"], result["error"]) == (False, "http", said)


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (403, "<p>Solve the captcha first</p>", "the sign-up answers 403: Solve the captcha first"),
        (200, f"<p>Join us</p><p>That name is already taken.</p>{FORM}", "That name is already taken."),
        (200, f"<script>must</script><p>A code must be confirmed</p>{FORM}", "A code must be confirmed"),
    ],
)
async def test_a_form_that_refuses_an_account_is_quoted(status: int, body: str, said: str) -> None:
    def answer(got: Got) -> bytes:
        shown = body.encode() if got.method == "POST" else FORM.encode()
        return http_answer(status if got.method == "POST" else 200, shown, HTML)

    async with bench(answer, acts="/join") as it:
        result = await it.run("qa_account", {"url": f"{it.site.url}/join", **FORMS})
    assert (result["ok"], result["error_class"]) == (False, "http")
    assert result["error"].endswith(said), result["error"]


async def test_no_word_of_ours_stands_in_what_is_quoted() -> None:
    sent: list[bytes] = []

    def answer(got: Got) -> bytes:
        sent.append(got.body)
        return http_answer(400, b"invalid: " + got.body)

    async with bench(answer, acts="/join") as it:
        result = await it.run("qa_account", {"url": f"{it.site.url}/join", **API})
    (handle,) = re.findall(rb"qa[0-9a-f]{10}", sent[0])
    (phrase,) = re.findall(rb"Qa1![0-9a-f]{16}", sent[0])
    assert handle.decode() not in result["error"]
    assert phrase.decode() not in result["error"]
    assert result["error"] == (
        'the sign-up answers 400: invalid: {"name": "{handle}", "password": "{phrase}"}'
    )
