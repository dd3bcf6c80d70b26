"""The shipped profiles say what is known of the real platforms; nothing here contacts them."""

from __future__ import annotations

from pathlib import Path

import pytest

from fleet.broker.egress_policy import EgressPolicy
from fleet.config import Platform, load_platform, parse, read_text
from fleet.errors import ConfigError
from fleet.files import ROOT
from fleet.gate.scope import Scope

SHIPPED = sorted((ROOT / "config" / "platforms").glob("*.toml"))
MAINNET = (4217, "https://rpc.tempo.xyz", "0x8ab4f3a57643410cdf4022cdaf1faeef234f3a77")
TESTNET = (42431, "https://rpc.moderato.tempo.xyz", "0x6c31c01e10C44f4813FffDC7D5e671c1b26Da30c")
TOKENS = {
    4217: "0x7ba3c9a39596e438b05c56dfc779700b58aea814",
    42431: "0x90B84c7234Aae89BadA7f69160B9901B9bc37B17",
}


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_a_profile_is_valid_and_named_after_its_file(path: Path) -> None:
    profile = parse(Platform, read_text(path), file=str(path))
    assert profile.name == path.stem
    assert Scope.of(profile, []).has_url(profile.web.site)
    assert EgressPolicy.of(profile)


@pytest.mark.parametrize(("name", "facts"), [("localharness", MAINNET), ("localharness-testnet", TESTNET)])
def test_the_real_platforms(tmp_path: Path, name: str, facts: tuple[int, str, str]) -> None:
    profile, _ = load_platform(name, tmp_path)
    chain, web, gas = profile.chain, profile.web, profile.gas
    assert (chain.id, chain.rpc, chain.diamond) == facts
    assert (chain.token, chain.max_gas_price_gwei) == (TOKENS[chain.id], 50)
    assert (web.site, web.face) == ("https://localharness.xyz", "https://{name}.localharness.xyz/")
    assert web.proxy == "https://proxy-tau-ten-15.vercel.app"
    assert (gas.publish_base, gas.publish_per_byte, gas.register_name) == (1_200_000, 8_500, 2_200_000)
    assert (gas.feedback_base, gas.feedback_per_byte, gas.release_name) == (1_500_000, 9_000, 1_000_000)


def test_a_face_is_in_scope_and_a_look_alike_is_not(tmp_path: Path) -> None:
    scope = Scope.of(load_platform("localharness", tmp_path)[0], [])
    assert scope.has_url("https://claude.localharness.xyz/")
    assert not scope.has_url("https://claude.localharness.xyz.evil.test/")
    assert not scope.has_url("http://claude.localharness.xyz/")


def test_finality_is_no_less_than_confirmations() -> None:
    text = read_text(ROOT / "config" / "platforms" / "example.toml")
    assert parse(Platform, text, file="x").chain.finality_blocks == 64
    with pytest.raises(ConfigError, match=r"x: chain: .*finality_blocks = 0 is less than confirmations = 1"):
        parse(Platform, text.replace("finality_blocks = 64", "finality_blocks = 0"), file="x")


CHAIN = 'name = "x"\n[chain]\nrpc = "http://127.0.0.1:1"\nid = 1\ndiamond = "0x' + "0" * 39 + '1"\n'


@pytest.mark.parametrize("url", ["ws://127.0.0.1:8545", "wss://node.example.org/v3", "ws://[::1]:8545", ""])
def test_a_websocket_endpoint_is_taken(url: str) -> None:
    assert parse(Platform, CHAIN + f'ws = "{url}"\n', file="x.toml").chain.ws == url
    assert parse(Platform, CHAIN, file="x.toml").chain.ws == ""


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:8545",
        "https://x",
        "ws:/x",
        "ws://",
        "127.0.0.1:8545",
        "ws://u:p@x",
        "ws://x:99999",
        "ws://x:0",
        "ws://x:ten",
        "wss://x/?key=1",
        "WS://x",
        "ws://a b",
        "ws://x\\n",
    ],
)
def test_an_endpoint_that_is_not_a_websocket_url_is_refused_with_the_form(url: str) -> None:
    with pytest.raises(ConfigError, match=r"x\.toml: chain\.ws: .* expected ws://HOST\[:PORT\]"):
        parse(Platform, CHAIN + f'ws = "{url}"\n', file="x.toml")


WEB = CHAIN + '[web]\nsite = "https://x.test/base"\nproxy = "https://p.test"\nhosts = ["cdn.test:443"]\n'


@pytest.mark.parametrize(
    ("path", "url"),
    [
        ("{site}/api/cart", "https://x.test/base/api/cart"),
        ("{site}/", "https://x.test/base/"),
        ("{proxy}/v1/", "https://p.test/v1/"),
        ("https://x.test/other", "https://x.test/other"),
    ],
)
def test_where_pages_may_be_changed(path: str, url: str) -> None:
    profile = parse(Platform, WEB + f'act_paths = ["{path}"]\n', file="x.toml")
    assert profile.web.acted_on == (url,)
    assert Scope.of(profile, []).may_act(url)
    assert parse(Platform, WEB, file="x.toml").web.acted_on == ()
    assert not Scope.of(parse(Platform, WEB, file="x.toml"), []).may_act(url)


@pytest.mark.parametrize(
    "path",
    [
        "{site}",
        "/api",
        "api",
        "{face:docs}/x",
        "https://other.test/x",
        "https://cdn.test/x",
        "https://x.test:444/x",
        "https://u@x.test/x",
        "{site}/a?b",
        "{site}/a%2fb",
        "{site}/../x",
        "{site}/a/./b",
        "{site}/a b",
    ],
)
def test_what_says_no_such_place_is_refused(path: str) -> None:
    with pytest.raises(ConfigError, match=r"x\.toml: web.*act_paths"):
        parse(Platform, WEB + f'act_paths = ["{path}"]\n', file="x.toml")


def test_the_limits_of_requests() -> None:
    web = parse(Platform, WEB, file="x.toml").web
    assert (web.rate("x.test"), web.rate("127.0.0.1"), web.requests_per_day) == (10.0, 50.0, 20_000)
    stated = parse(Platform, WEB + "requests_per_second = 3\n", file="x.toml").web
    assert (stated.rate("x.test"), stated.rate("a.localhost")) == (3.0, 3.0)
    for bad in ("requests_per_second = 0", "requests_per_day = -1", "requests_per_second = inf"):
        with pytest.raises(ConfigError, match=bad.partition(" ")[0]):
            parse(Platform, WEB + bad + "\n", file="x.toml")
