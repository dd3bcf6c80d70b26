"""`[web] never`: one place in every spelling, its neighbours in none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.config import Platform, parse
from fleet.config.url_list import UrlList
from fleet.drivers.explore.own_urls import OwnUrls
from fleet.errors import ConfigError

CHAIN = f'name = "x"\n[chain]\nrpc = "http://127.0.0.1:1"\nid = 1\ndiamond = "0x{"0" * 40}"\n'
WEB = CHAIN + '[web]\nsite = "https://site.test"\nact_paths = ["{site}/api"]\nhosts = ["docs.test"]\n'
ENTRIES = (
    "{site}/admin/logout",
    "*.internal.test",
    "10.0.0.1",
    "admin.test:8443",
    "/billing",
    "münchen.test",
    "[2001:db8::1]",
)
PLACES = UrlList.of(ENTRIES, site="https://site.test", proxy="")


@st.composite
def _letter(draw: st.DrawFn, char: str) -> str:
    """One character as a server may be sent it."""
    char = draw(st.sampled_from([char, char.upper()]))
    for _ in range(draw(st.integers(0, 3))):
        char = "".join(f"%{byte:02x}" if byte != 37 else "%25" for byte in char[:1].encode()) + char[1:]
    return draw(st.sampled_from([char, char.upper()]))


@st.composite
def _spelled(draw: st.DrawFn, parts: tuple[str, ...]) -> str:
    """A path that some server reads as `parts`."""
    noise = st.sampled_from(["", "/", "/.", "/x/..", "/x/%2e%2e", "/..", "/;a=b", "/%2e", "/y/..;"])
    out = ""
    for part in parts:
        slash = draw(st.sampled_from(["/", "//", "/", "%2f", "%252F", "\\", "%5c"])) if out else "/"
        letters = "".join(draw(_letter(char)) for char in part)
        end = draw(st.sampled_from(["", "", ";v=1", "%20", ".", "%00", "%3bq"]))
        out += draw(noise) + slash + letters + end
    return out + draw(st.sampled_from(["", "/", "/7", "?x=1", "%3fx", "/../" + parts[-1], "#f"]))


@given(
    _spelled(("admin", "logout")), st.sampled_from(["https", "http"]), st.sampled_from(["", ":443", ":8080"])
)
def test_a_path_is_barred_in_every_spelling(path: str, scheme: str, port: str) -> None:
    assert PLACES.match(f"{scheme}://site.test{port}{path}") == "{site}/admin/logout"


@given(st.text(alphabet="abcdefgh-_~!$&'()*+,=:@/", max_size=30), st.text(alphabet="abc=&%20", max_size=9))
def test_another_path_is_not(path: str, query: str) -> None:
    assert PLACES.match(f"https://site.test/{path}?{query}") == ""


@pytest.mark.parametrize(
    ("url", "entry"),
    [
        *((f"https://{host}/admin/logout", ENTRIES[0]) for host in ("SITE.test", "site.test.", "site。test")),
        *(
            (f"http://{host}/", "10.0.0.1")
            for host in ("10.0.0.1", "10.1", "0xa000001", "167772161", "012.0.0.1")
        ),
        *((f"http://{host}:9/x", "10.0.0.1") for host in ("[::ffff:10.0.0.1]", "１０.0.0.1", "u@10.0.0.1")),
        ("https://a.b.INTERNAL.test", "*.internal.test"),
        ("https://admin.test:8443/x", "admin.test:8443"),
        ("http://any.test/billing/7", "/billing"),
        ("https://xn--mnchen-3ya.test/", "münchen.test"),
        ("https://MÜNCHEN.test/", "münchen.test"),
        ("http://[2001:DB8:0::1]/", "[2001:db8::1]"),
        ("https:/\\site.test/admin/logout", ENTRIES[0]),
        ("https://site.test/%c0%ae%c0%ae/x", ENTRIES[0]),
        ("https://site.test/" + "%25" * 9 + "61", ENTRIES[0]),
        ("https://site.test/%u0061dmin/logout", ENTRIES[0]),
        ("https://internal.test/", ""),
        ("https://admin.test/", ""),
        ("https://site.test/admin", ""),
        ("https://site.test/admin/logouts", ""),
        ("https://site.test/?next=/admin/logout", ""),
        ("https://site.test.evil.test/admin/logout", ""),
        ("http://10.0.0.10/", ""),
        ("not a url", ""),
    ],
)
def test_hosts_and_paths(url: str, entry: str) -> None:
    assert PLACES.match(url) == entry


def test_the_list_stands_in_the_profile_and_explorers_follow_no_link_to_it() -> None:
    profile = parse(Platform, WEB + 'never = ["{site}/logout", "docs.test"]\n', file="x.toml")
    urls = OwnUrls(profile)
    links = ["https://site.test/in", "https://site.test/Logout?x", "https://docs.test/"]
    assert [urls.spelled(link) for link in links] == ["{site}/in", "", ""]


@pytest.mark.parametrize(
    "entry", ["logout", "/", "{proxy}/x", "{site}/a/../b", "{site}/%61", "https://x.test/a?b", "*", "a b"]
)
def test_an_entry_that_names_no_place_is_an_error(entry: str) -> None:
    with pytest.raises(ConfigError, match=r"x\.toml: web.*never"):
        parse(Platform, WEB + f'never = ["{entry}"]\n', file="x.toml")


@pytest.mark.parametrize("entry", ["site.test", "/api", "{site}/"])
def test_a_list_that_bars_what_the_profile_asks_is_an_error(entry: str) -> None:
    with pytest.raises(ConfigError, match=r"never: .* bars what .* asks"):
        parse(Platform, WEB + f'never = ["{entry}"]\n', file="x.toml")
