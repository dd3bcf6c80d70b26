"""Forms and cookies as a browser has them: what is filled in, what is sent, and which cookies go where."""

from __future__ import annotations

import pytest

from sandbox.pages.cookies import CookieStore
from sandbox.pages.forms import encoded, read_page
from sandbox.sites.site_visitor import differing
from sandbox.spec import Mistake

FORM = """<title>Your things</title><form action="/save?next=%2F" method=post>
<input type=hidden name=proof value=a1b2c3d4e5f60718> <input name=free value=old> <input name=needed required>
<input type=email name=mail required> <input type=checkbox name=terms required>
<input type=checkbox name=news>
<input type=radio name=size value=s required><input type=radio name=size value=l>
<select name=land><option value="">choose<option value=de>DE</select> <textarea name=text>as
it was</textarea> <input name=gone disabled value=x> <input type=file name=paper>
<button name=how value=save>save</button><button name=how value=drop>drop</button></form>
<a href="../away">x</a><script src="/x.js"></script>"""


def test_a_form_is_filled_in_as_a_person_does_who_must() -> None:
    page = read_page(FORM, "http://h:1/a/b")
    (form,) = page.forms
    assert (form.method, form.action, form.multipart) == ("POST", "http://h:1/save?next=%2F", False)
    assert page.links == ["http://h:1/away"]
    assert page.titles.split() == ["Your", "things"]
    assert [one.name for one in form.controls if one.is_token] == ["proof"]
    assert form.entries({"free": "{mark}", "extra": "1"}) == [
        ("proof", "a1b2c3d4e5f60718"),
        ("free", "{mark}"),
        ("needed", "{handle}"),
        ("mail", "{email}"),
        ("terms", "on"),
        ("size", "s"),
        ("land", "de"),
        ("text", "as\nit was"),
        ("how", "save"),
        ("extra", "1"),
    ]


def test_a_page_that_costs_too_much_is_read_up_to_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sandbox.pages.forms.CPU_S", 0.1)
    assert len(read_page("<form></form>" + "<a " * 40_000, "http://h/").forms) == 1


def test_bodies_are_encoded_as_browsers_do() -> None:
    assert encoded([("a", "x y&z"), ("b", "é")], multipart=False) == (
        b"a=x+y%26z&b=%C3%A9",
        "application/x-www-form-urlencoded",
    )
    body, kind = encoded([("a", "1"), ('f"', ["../x\r\n.txt", "text/plain", "<b>"])], multipart=True)
    mark = kind.partition("boundary=")[2].encode()
    assert body == (
        b"--" + mark + b'\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n'
        b"--" + mark + b'\r\nContent-Disposition: form-data; name="f%22"; filename="../x%0D%0A.txt"\r\n'
        b"Content-Type: text/plain\r\n\r\n<b>\r\n--" + mark + b"--\r\n"
    )
    with pytest.raises(Mistake, match="not a text"):
        encoded([("f", ["x", "text/plain", "<b>"])], multipart=False)


def test_cookies_are_kept_with_their_flags_sent_to_their_paths_and_removed() -> None:
    jar = CookieStore()
    jar.take(
        "sid=1; Path=/; HttpOnly; Secure; SameSite=Lax, theme=dark; Expires=Wed, 21 Oct 2099 07:28:00 GMT, "
        "old=; Expires=Thu, 01 Jan 1970 00:00:00 GMT, deep=x; Path=/admin, b(d=1",
        "/a/b",
    )
    assert jar.header("/") == "sid=1"
    assert jar.header("/a/c") == "sid=1; theme=dark"
    assert jar.header("/administration") == "sid=1"
    assert jar.header("/admin/x") == "sid=1; deep=x"
    assert jar.copy(lambda one: not one.http_only).header("/a/") == "theme=dark"
    assert jar.copy(lambda one: not one.secure).header("/") == ""
    assert [one.same_site for one in jar.held.values()] == ["lax", "", ""]
    jar.take("sid=gone; Path=/; Max-Age=0, theme=light", "/a/b")
    assert jar.header("/a/") == "theme=light"


def test_the_ids_of_two_accounts_are_the_one_part_in_which_their_pages_differ() -> None:
    mine = [f"http://h/{path}" for path in ("", "people/7", "people/7/edit", "wall/3", "key/a1b2c3d4e5")]
    theirs = [f"http://h/{path}" for path in ("", "people/8", "people/8/edit", "wall/3", "key/f6a7b8c9d0")]
    assert differing(mine, theirs) == (("7", "8"), frozenset({"/people/"}))
    assert differing(mine, mine) == ((), frozenset())
    listed = [
        f"http://h/doctors/{number}" for number in (1, 2, 3)
    ]  # shown to both: no account is one of them
    assert differing([*listed, mine[1]], [*listed, theirs[1]]) == (("7", "8"), frozenset({"/people/"}))
    assert differing(listed, listed) == ((), frozenset())
