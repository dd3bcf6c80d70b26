"""A platform with forms and accounts, after Django's habits."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable
from html import escape

from tests.accounts.base import Shape, form
from tests.sandbox.doubles import Got, http_answer


class HiddenToken(Shape):
    """Django: forms with a hidden token and its cookie, a session in a cookie, one page that lists."""

    def __init__(self, leaks: bool) -> None:
        super().__init__(leaks)
        self._set: list[str] = []

    def routes(self) -> list[tuple[str, str, Callable[..., bytes]]]:
        names = "<input name=username required>"
        one = "<input type=password name=password required>"
        two = "<input type=password name=password1 required><input type=password name=password2 required>"
        return [
            (
                "GET",
                "/",
                lambda got: self._page(
                    got, "Start", '<a href="/accounts/login/">log in</a> <a href="/memos/">memos</a>'
                ),
            ),
            (
                "GET",
                "/accounts/login/",
                lambda got: self._page(
                    got,
                    "Log in",
                    self._form(
                        got, "/accounts/login/", names + one + '<a href="/accounts/signup/">sign up</a>'
                    ),
                ),
            ),
            ("POST", "/accounts/login/", self._enter),
            (
                "GET",
                "/accounts/signup/",
                lambda got: self._page(got, "Sign up", self._form(got, "/accounts/signup/", names + two)),
            ),
            ("POST", "/accounts/signup/", self._join),
            ("GET", "/memos/", lambda got: self._inside(got, lambda user: self._list(got, user))),
            ("POST", "/memos/new/", lambda got: self._inside(got, lambda user: self._add(got, user))),
            (
                "GET",
                r"/memos/(\d+)/",
                lambda got, at: self._inside(got, lambda user: self._read(got, user, at)),
            ),
        ]

    def _csrf(self, got: Got) -> str:
        found = re.search(r"csrftoken=(\w+)", got.headers.get("cookie", ""))
        token = found[1] if found else secrets.token_hex(16)
        self._set = [] if found else [f"set-cookie: csrftoken={token}; Path=/; SameSite=Lax"]
        return token

    def _form(self, got: Got, action: str, controls: str) -> str:
        hidden = f'<input type=hidden name=csrfmiddlewaretoken value="{self._csrf(got)}">'
        return f'<form method=post action="{action}">{hidden}{controls}<button>go</button></form>'

    def _page(self, got: Got, title: str, text: str, status: int = 200) -> bytes:
        user = self._user(got)
        page = f"<!doctype html><title>{title}</title><h1>{title}</h1><p>{escape(user)}</p>{text}"
        return http_answer(status, page.encode(), "content-type: text/html", *self._set)

    def _user(self, got: Got) -> str:
        found = re.search(r"sessionid=([\w-]+)", got.headers.get("cookie", ""))
        return self.tokens.get(found[1], "") if found else ""

    def _sent(self, got: Got) -> dict[str, str]:
        sent = form(got)
        cookie = re.search(r"csrftoken=(\w+)", got.headers.get("cookie", ""))
        return sent if cookie and sent.get("csrfmiddlewaretoken") == cookie[1] else {}

    def _join(self, got: Got) -> bytes:
        sent = self._sent(got)
        if not sent.get("username") or sent.get("password1") != sent.get("password2"):
            return self._page(
                got, "Sign up", "<p>The two password fields did not match.</p>", 403 if not sent else 200
            )
        self.people[sent["username"]] = {"password": sent["password1"]}
        return http_answer(302, b"", "location: /accounts/login/")

    def _enter(self, got: Got) -> bytes:
        sent = self._sent(got)
        if not sent or self.people.get(sent.get("username", ""), {}).get("password") != sent.get("password"):
            return self._page(got, "Log in", "<p>Please enter a correct username and password.</p>")
        cookie = f"set-cookie: sessionid={self.token(sent['username'])}; Path=/; HttpOnly; SameSite=Lax"
        return http_answer(302, b"", "location: /memos/", cookie)

    def _inside(self, got: Got, served: Callable[[str], bytes]) -> bytes:
        user = self._user(got)
        return served(user) if user else http_answer(302, b"", "location: /accounts/login/?next=/memos/")

    def _list(self, got: Got, user: str) -> bytes:
        rows = "".join(
            f'<li><a href="/memos/{one["id"]}/">{escape(one["text"])}</a>' for one in self.mine(user)
        )
        return self._page(
            got, "My memos", rows + self._form(got, "/memos/new/", "<textarea name=text></textarea>")
        )

    def _add(self, got: Got, user: str) -> bytes:
        sent = self._sent(got)
        if not sent:
            return self._page(got, "Forbidden", "CSRF verification failed.", 403)
        return http_answer(302, b"", f"location: /memos/{self.add(user, text=sent.get('text', ''))['id']}/")

    def _read(self, got: Got, user: str, ident: str) -> bytes:
        found = self.one(user, ident)
        return (
            self._page(got, "Memo", escape(found["text"])) if found else self._page(got, "Not found", "", 404)
        )


class PickyForm(HiddenToken):
    """The same, with rules that are told after a refusal alone, beside a help that is always shown."""

    help = "<p>Your password must have at least 30 characters, or what we say next.</p>"

    def _form(self, got: Got, action: str, controls: str) -> str:
        return super()._form(got, action, controls) + (self.help if action.endswith("signup/") else "")

    def _join(self, got: Got) -> bytes:
        sent = self._sent(got)
        wrong = "" if sent.get("username", "").isalpha() else "<li>Username must contain only letters.</li>"
        if len(sent.get("password1", "")) > 16:
            wrong += "<li>Password must be at most 16 characters.</li>"
        if wrong:
            names = "<input name=username required><input type=password name=password1 required>"
            again = f"{names}<input type=password name=password2 required>"
            self.refused.append(wrong)
            return self._page(got, "Sign up", wrong + self._form(got, "/accounts/signup/", again))
        return super()._join(got)
