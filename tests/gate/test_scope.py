"""Names and addresses: what is this run's own, and what is the platform's."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fleet.config import ChainSection, Platform, WebSection
from fleet.gate.scope import Scope, is_label, is_own_name, origin_of


@pytest.mark.parametrize("name", ["a", "0", "a" * 63, "a-b", "a--b", "qa-r1-1", "0-0"])
def test_labels(name: str) -> None:
    assert is_label(name)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "a" * 64,
        "-a",
        "a-",
        "-",
        "A",
        "a_b",
        "a.b",
        "../x",
        "a b",
        "a\n",
        "a\0",
        "é",
        "а",
        "ａ",
        "a​b",
        "١",
        None,
        7,
        b"a",
        ["a"],
    ],
)
def test_no_labels(name: object) -> None:
    assert not is_label(name)


@pytest.mark.parametrize("name", ["qa-r1-0", "qa-r1-1", "qa-r1-42", "qa-r1-999999"])
def test_own_names(name: str) -> None:
    assert is_own_name(name, "r1")


@pytest.mark.parametrize(
    "name",
    [
        "claude",
        "qa-otherrun-1",
        "qa-r1",
        "qa-r1-",
        "qa-r1-x",
        "qa-r1-1-1",
        "qa-r1-01",
        "qa-r1--1",
        "qa-r1-1 ",
        "qa-r1-1\n",
        "QA-r1-1",
        "qa-r11-1",
        "qa-r1-1234567",
        "xqa-r1-1",
        "qa-r1-1.evil",
        "qa-r1-1/../claude",
        "ԛa-r1-1",
        "qа-r1-1",
        "qa‐r1-1",
        "qa-r1-１",
        "qa-r1-١",
        "qa-r1-²",
        "qa-r1-1​",
        "qa-r1-+1",
        "qa-r1-1_0",
        "",
        None,
        1,
        True,
        ["qa-r1-1"],
    ],
)
def test_other_people_s_names(name: object) -> None:
    assert not is_own_name(name, "r1")


def test_a_run_without_a_name_owns_nothing() -> None:
    assert not is_own_name("qa--1", "")
    assert not is_own_name("qa-" + "r" * 60 + "-1", "r" * 60)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.text(max_size=12), st.text(alphabet="abc019-", max_size=8))
def test_only_the_exact_form_is_own(name: str, run: str) -> None:
    if is_own_name(name, run):
        number = name.removeprefix(f"qa-{run}-")
        assert name == f"qa-{run}-{int(number)}"
        assert name.isascii()


def _platform(face: str) -> Platform:
    return Platform(
        name="p",
        chain=ChainSection(rpc="http://127.0.0.1:8545", id=1, diamond="0x" + "1" * 40),
        web=WebSection(
            site="https://Example.test", face=face, proxy="http://127.0.0.1:9001/v1", hosts=("cdn.test:8443",)
        ),
        call_targets=("claude",),
    )


def test_faces_on_hosts_of_their_own() -> None:
    scope = Scope.of(_platform("https://{name}.example.test/"), ["feedbackCount"])
    assert scope.call_targets == {"claude"}
    assert scope.functions == {"feedbackCount"}
    for url in (
        "https://example.test",
        "https://example.test/llms.txt?x=1",
        "https://example.test:443/",
        "HTTPS://EXAMPLE.test/",
        "https://qa-r1-1.example.test/",
        "http://127.0.0.1:9001/v1/chat",
        "https://cdn.test:8443/a.js",
    ):
        assert scope.has_url(url), url


@pytest.mark.parametrize(
    "url",
    [
        "http://example.test/",
        "https://example.test:444/",
        "https://a.b.example.test/",
        "https://-.example.test/",
        "https://example.test.evil.test/",
        "https://evilexample.test/",
        "https://.example.test/",
        "https://example.test./",
        "https://user@example.test/",
        "https://evil.test\\@example.test/",
        "https://example.test\\@evil.test/",
        "https://example.test#@evil.test/",
        "https://example.test/\n",
        "https://example.test/ x",
        "https://example.test/\u2028",
        "https://ехample.test/",
        "https://example。test/",
        "https://%65xample.test/",
        "httpſ://example.test/",
        "https://example.teſt/",
        "//example.test/",
        "example.test",
        "ftp://example.test/",
        "file:///etc/shadow",
        "javascript:alert(1)",
        "http://127.0.0.1:9001@evil.test/",
        "http://127.0.0.1/",
        "http://127.1:9001/",
        "http://2130706433:9001/",
        "http://0x7f000001:9001/",
        "http://[::ffff:127.0.0.1]:9001/",
        "http://localhost:9001/",
        "http://127.0.0.1:99999/",
        "http://127.0.0.1:0/",
        "http://127.0.0.1:/",
        "http://169.254.169.254/",
        "http://127.0.0.1:8545/",
        "",
        None,
        7,
        b"https://example.test/",
    ],
)
def test_hosts_that_are_not_the_platform_s(url: object) -> None:
    assert not Scope.of(_platform("https://{name}.example.test/"), []).has_url(url)


def test_faces_under_one_host() -> None:
    scope = Scope.of(_platform("http://127.0.0.1:9000/face/{name}"), [])
    assert scope.has_url("http://127.0.0.1:9000/face/qa-r1-1")
    assert not scope.has_url("http://x.0.0.1:9000/")
    assert scope.faces == frozenset()


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.text(max_size=40))
def test_any_text_has_an_answer(url: str) -> None:
    assert origin_of(url) is None or url.lower().startswith(("http://", "https://"))
    assert not Scope().has_url(url)
