"""The broker's decisions without a socket: what may be sent, where to, and in which spelling."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.broker.egress_policy import (
    EgressPolicy,
    EgressTarget,
    Origin,
    addresses,
    is_own,
    is_public,
    parse_authority,
    parse_target,
)
from fleet.broker.egress_record import EgressEntry
from fleet.broker.forward import looked_up
from fleet.broker.known_names import NAMES, KnownNames
from fleet.broker.rpc_policy import METHODS, Denied, rewrite
from fleet.config import ChainSection, Platform, WebSection
from fleet.config.scope import HostCare, HostSection
from fleet.errors import ConfigError


def call(method: str, params: Any = (), **extra: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": list(params)} | extra


def denied(body: bytes | object, **limits: Any) -> str:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    with pytest.raises(Denied) as caught:
        rewrite(raw, methods=METHODS, max_log_range=limits.get("max_log_range", 100))
    return caught.value.rule


def test_a_read_is_written_anew() -> None:
    raw = b'{ "params":[] ,"method":"eth_chain\\u0049d", "id":7,"jsonrpc":"2.0"}'
    clean, methods = rewrite(raw, methods=METHODS, max_log_range=10)
    assert (clean, methods) == (
        b'{"jsonrpc":"2.0","id":7,"method":"eth_chainId","params":[]}',
        ("eth_chainId",),
    )


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        (call("eth_sendRawTransaction", ["0x00"]), "rpc-method"),
        ([call("eth_chainId"), call("eth_sendRawTransaction", ["0x00"])], "rpc-method"),
        (
            b'{"jsonrpc":"2.0","id":1,"method":"eth_chainId","method":"eth_sendRawTransaction"}',
            "rpc-duplicate-key",
        ),
        (
            b'{"jsonrpc":"2.0","id":1,"method":"eth_sendRawTransaction","method":"eth_chainId"}',
            "rpc-duplicate-key",
        ),
        (b'{"jsonrpc":"2.0","id":1,"method":"\\u0065th_sendRawTransaction","params":[]}', "rpc-method"),
        (call("eth_chainId") | {"id": {"method": "eth_sendRawTransaction"}}, "rpc-shape"),
        (call("eth_chainId") | {"id": [call("eth_sendRawTransaction")]}, "rpc-shape"),
        (call("eth_chainId") | {"id": True}, "rpc-shape"),
        (call("eth_chainId") | {"extra": 1}, "rpc-shape"),
        (call("eth_chainId") | {"jsonrpc": "1.0"}, "rpc-shape"),
        (call("eth_chainId") | {"params": {"a": 1}}, "rpc-shape"),
        (call("ETH_CHAINID"), "rpc-method"),
        (call("eth_chainId "), "rpc-method"),
        (call("eth_subscribe"), "rpc-method"),
        (call("personal_sign"), "rpc-method"),
        (call("anvil_setBalance"), "rpc-method"),
        (call("debug_traceTransaction"), "rpc-method"),
        (call("eth_call", [{}, "latest", {"0x0": {"balance": "0x1"}}]), "rpc-params"),
        ([], "rpc-shape"),
        ([[call("eth_chainId")]], "rpc-shape"),
        ([call("eth_chainId")] * 65, "rpc-batch"),
        (3, "rpc-shape"),
        (b"\xff\xfe", "rpc-shape"),
        (b"[" * 100_000, "rpc-shape"),
        (b'{"jsonrpc":"2.0","id":NaN,"method":"eth_chainId"}', "rpc-shape"),
        (b'{"jsonrpc":"2.0","id":' + b"9" * 5000 + b',"method":"eth_chainId"}', "rpc-shape"),
    ],
)
def test_refused(body: object, rule: str) -> None:
    assert denied(body) == rule


@pytest.mark.parametrize(
    ("query", "allowed"),
    [
        ({"fromBlock": "0x1", "toBlock": "0x64"}, True),
        ({"fromBlock": "0x1", "toBlock": "0x65"}, False),
        ({"fromBlock": "0x5", "toBlock": "0x4"}, False),
        ({"fromBlock": "0x0", "toBlock": "latest"}, False),
        ({"fromBlock": "earliest", "toBlock": "latest"}, False),
        ({}, False),
        ({"fromBlock": "latest", "toBlock": "latest"}, True),
        ({"blockHash": "0x" + "ab" * 32}, True),
        ({"blockHash": "0x" + "ab" * 32, "fromBlock": "0x0"}, False),
        ({"fromBlock": 1, "toBlock": 2}, False),
        ({"fromBlock": "0x" + "f" * 17, "toBlock": "0x" + "f" * 17}, False),
    ],
)
def test_log_ranges(query: dict[str, Any], allowed: bool) -> None:
    if allowed:
        rewrite(json.dumps(call("eth_getLogs", [query])).encode(), methods=METHODS, max_log_range=100)
    else:
        assert denied(call("eth_getLogs", [query])) == "rpc-log-range"


@given(st.binary(max_size=200) | st.text(max_size=200).map(lambda t: t.encode("utf-8", "replace")))
def test_any_bytes_are_decided(body: bytes) -> None:
    try:
        clean, methods = rewrite(body, methods=METHODS, max_log_range=10)
    except Denied:
        return
    assert set(methods) <= METHODS
    assert json.loads(clean)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20) | st.sampled_from(sorted(METHODS)),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["jsonrpc", "id", "method", "params", "x"]), inner)
    ),
    max_leaves=12,
)


@given(JSON)
def test_nothing_but_listed_methods_comes_out(value: Any) -> None:
    try:
        clean, _ = rewrite(json.dumps(value).encode(), methods=METHODS, max_log_range=10)
    except Denied:
        return
    parsed = json.loads(clean)
    for item in parsed if isinstance(parsed, list) else [parsed]:
        assert item["method"] in METHODS
        assert set(item) == {"jsonrpc", "id", "method", "params"}


@pytest.mark.parametrize(
    "text",
    [
        "http://List.test/",
        "http://list.test./",
        "http://user@list.test/",
        "http://list.test:080/",
        "http://list.test:99999/",
        "http://list..test/",
        "http://list.test\\@evil.test/",
        "http://ÿ.test/",
        "HTTP://list.test/",
        "ftp://list.test/",
        "http:///x",
        "http://[::1%25lo]/",
        "list.test/x",
        "http://list.test:80:80/",
        "http://list.test%2e/",
        "http://\tlist.test/",
    ],
)
def test_other_spellings_are_refused(text: str) -> None:
    with pytest.raises(Denied):
        parse_target(text)


def test_one_spelling_is_taken() -> None:
    assert parse_target("http://list.test/a?b=c") == EgressTarget(Origin("http", "list.test", 80), "/a?b=c")
    assert parse_target("https://list.test:8443") == EgressTarget(Origin("https", "list.test", 8443), "/")
    assert parse_authority("[::1]:8080", "http") == Origin("http", "[::1]", 8080)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "127.8.8.8",
        "0.0.0.0",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "100.100.100.200",
        "168.63.129.16",
        "224.0.0.1",
        "255.255.255.255",
        "::1",
        "::",
        "fe80::1",
        "fe80::1%eth0",
        "fd00:ec2::254",
        "fc00::1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "2002:7f00:1::",
        "64:ff9b::7f00:1",
        "64:ff9b::a9fe:a9fe",
        "ff02::1",
        "192.0.0.1",
        "192.0.0.9",
        "192.0.0.171",
        "192.0.0.200",
        "192.88.99.1",
        "fec0::1",
        "::8.8.8.8",
        "::ffff:0:8.8.8.8",
        "64:ff9b:1::808:808",
        "100:0:0:1::1",
        "5f00::1",
        "3fff::1",
        "4000::1",
    ],
)
def test_addresses_that_are_not_out_there(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize(
    "address", ["1.1.1.1", "93.184.216.34", "2606:4700:4700::1111", "64:ff9b::808:808", "::ffff:8.8.8.8"]
)
def test_addresses_that_are(address: str) -> None:
    assert is_public(address)


def test_own_addresses_are_known_by_binding() -> None:
    assert is_own("127.0.0.1")
    assert not is_own("93.184.216.34")


@pytest.mark.anyio
async def test_a_listed_name_that_rebinds_to_loopback_is_refused() -> None:
    assert await addresses(Origin("http", "x.localhost", 80), private=True) == ("127.0.0.1",)
    for host in ("x.localhost", "127.0.0.1", "169.254.169.254"):
        with pytest.raises(Denied, match="not public"):
            await addresses(Origin("http", host, 80), private=False)


def profile(**web: Any) -> Platform:
    given = {
        "site": "https://Site.test",
        "face": "https://{name}.site.test/",
        "proxy": "https://proxy.test/base",
    }
    return Platform(
        name="x",
        chain=ChainSection(rpc="http://127.0.0.1:8545", id=1, diamond="0x" + "00" * 20),
        web=WebSection(**(given | web)),
        hosts={
            name: HostSection(criticality="non-production")
            for name in ("site.test", "name.site.test", "proxy.test", "cdn.test")
        },
    )


def test_the_policy_of_a_profile() -> None:
    policy = EgressPolicy.of(profile(hosts=("cdn.test:443", "docs.test")))
    for listed in (
        "https://site.test/",
        "https://proxy.test/",
        "https://cdn.test/",
        "http://docs.test/",
        "https://qa-1-2.site.test/",
    ):
        policy.check("GET", parse_target(listed))
    for other in (
        "http://site.test/",
        "https://site.test:444/",
        "https://a.b.site.test/",
        "https://-x.site.test/",
        "http://cdn.test/",
    ):
        with pytest.raises(Denied, match="egress denied by broker"):
            policy.check("GET", parse_target(other))


@pytest.mark.parametrize(
    ("method", "url", "allowed"),
    [
        ("POST", "https://proxy.test/base/v1beta/models/x:generateContent", True),
        ("POST", "https://proxy.test/base", False),
        ("POST", "https://proxy.test/baseless/x", False),
        ("POST", "https://proxy.test/base/../admin", False),
        ("POST", "https://proxy.test/base/%2e%2e/admin", False),
        ("POST", "https://proxy.test/base/..%2fadmin", False),
        ("POST", "https://proxy.test/base/..\\admin", False),
        ("POST", "https://site.test/base/x", False),
        ("PUT", "https://proxy.test/base/x", False),
        ("DELETE", "https://site.test/", False),
        ("HEAD", "https://site.test/", True),
        ("OPTIONS", "https://site.test/", True),
        ("get", "https://site.test/", False),
    ],
)
def test_methods(method: str, url: str, allowed: bool) -> None:
    policy, target = EgressPolicy.of(profile()), parse_target(url)
    if allowed:
        policy.check(method, target)
    else:
        with pytest.raises(Denied):
            policy.check(method, target)


def test_loopback_only_where_the_profile_spells_it() -> None:
    local = EgressPolicy.of(
        profile(site="http://127.0.0.1:80", proxy="http://localhost:81", face="http://{name}.localhost:82/")
    )
    for url in ("http://127.0.0.1/", "http://localhost:81/", "http://qa-1-1.localhost:82/"):
        assert local.may_be_private(parse_target(url).origin)
    assert not EgressPolicy.of(profile()).may_be_private(Origin("https", "site.test", 443))
    assert not EgressPolicy.of(profile()).may_be_private(Origin("http", "127.0.0.1", 80))


def test_a_profile_that_serves_the_node_as_a_site_is_refused() -> None:
    with pytest.raises(ConfigError, match="node's own host and port"):
        EgressPolicy.of(profile(hosts=("127.0.0.1:8545",)))


RANGES = ("203.0.113.0/24", "10.7.0.0/16", "fc00::/7", "93.184.216.0/24", "2606:2800::/32")
AT = {
    "in": ("93.184.216.34", "2606:2800::1"),
    "private": ("10.7.1.2",),
    "mapped": ("::ffff:93.184.216.34",),
    "outside": ("93.184.216.34", "1.1.1.1"),
    "outside v6": ("2001:4860:4860::8888",),
    "other private": ("10.8.0.1",),
    "loopback": ("127.0.0.1",),
    "metadata": ("fd00:ec2::254",),
}


@pytest.mark.anyio
@pytest.mark.parametrize("where", AT)
async def test_with_ranges_only_what_resolves_into_one_is_dialled(where: str) -> None:
    async def resolve(_: Origin) -> tuple[str, ...]:
        return AT[where]

    policy = replace(EgressPolicy.of(profile(ranges=RANGES)), resolve=resolve)
    origin = parse_target("https://site.test/").origin
    if where in ("in", "private", "mapped"):
        assert (await policy.addresses(origin)).addresses == AT[where]
    else:
        with pytest.raises(Denied) as caught:
            await policy.addresses(origin)
        assert caught.value.rule == "address"


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("tenant.okta.com", "never"),
        ("ADMIN.site.test.", "never"),
        ("cdn.other.test", ""),
    ],
)
async def test_a_host_that_is_another_name_of_what_nothing_asks_is_not_dialled(name: str, rule: str) -> None:
    async def resolve(_: Origin) -> tuple[str, ...]:
        return ("93.184.216.34",)

    async def names(_: Origin) -> tuple[str, ...]:
        return (name,)

    policy = replace(EgressPolicy.of(profile(never=("admin.site.test",))), resolve=resolve, names=names)
    origin = parse_target("https://site.test/").origin
    if not rule:
        assert (await policy.addresses(origin)).addresses == ("93.184.216.34",)
        return
    with pytest.raises(Denied, match="is another name of") as caught:
        await policy.addresses(origin)
    assert caught.value.rule == rule


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("name", "said", "reached"),
    [
        ("shop.cdn.cloudflare.net", "", False),
        ("elsewhere.test", "", False),
        ("site.test", "", True),
        ("shop.cdn.cloudflare.net", "ada, contract 7", True),
    ],
)
async def test_under_a_signed_scope_another_name_of_a_host_out_of_scope_needs_a_persons_word(
    name: str, said: str, reached: bool
) -> None:
    async def resolve(_: Origin) -> tuple[str, ...]:
        return ("93.184.216.34",)

    async def names(_: Origin) -> tuple[str, ...]:
        return (name,)

    care = HostCare.of({"api.site.test": HostSection(third_party=said)})
    site = Origin("https", "site.test", 443)
    free = replace(
        EgressPolicy.of(profile()), hosts=frozenset({site}), resolve=resolve, names=names, care=care
    )
    origin = parse_target("https://api.site.test/").origin
    assert await free.addresses(origin)
    signed = replace(free, owned_only=True)
    if reached:
        assert (await signed.addresses(origin)).addresses == ("93.184.216.34",)
        return
    with pytest.raises(Denied, match="nobody permitted that") as caught:
        await signed.addresses(origin)
    assert caught.value.rule == "third-party"


@pytest.mark.anyio
@pytest.mark.parametrize(("ranges", "pool"), [((), False), (("93.184.216.0/24",), True)])
async def test_what_a_name_led_to_first_is_known_and_a_change_waits_for_a_person(
    ranges: tuple[str, ...], pool: bool, tmp_path: Path
) -> None:
    found = ["93.184.216.34"]

    async def resolve(_: Origin) -> tuple[str, ...]:
        return tuple(found)

    async def names(_: Origin) -> tuple[str, ...]:
        return ()

    made = EgressPolicy.of(profile(ranges=ranges))
    origin = parse_target("https://site.test/").origin

    async def dialled() -> tuple[str, EgressEntry]:
        """The rule that refuses, where what the name leads to is known to another process as well."""
        entry, known = EgressEntry(), KnownNames(tmp_path / NAMES, holds=True)
        policy = replace(made, resolve=resolve, names=names, known=known)
        try:
            assert await looked_up(origin, policy, entry) == tuple(found)
        except Denied as denied:
            return denied.rule, entry
        return "", entry

    assert (await dialled())[0] == ""  # the first
    assert (await dialled())[0] == ""
    found[:] = ["93.184.216.34", "93.184.216.35"]
    assert (await dialled())[0] == ("" if pool else "drift")
    found[:] = ["93.184.216.77"]
    rule, entry = await dialled()
    assert (rule, entry.address, entry.addresses) == ("drift", "", ("93.184.216.77",))
    assert entry.moved.startswith("site.test leads to 93.184.216.77 now, and led to 93.184.216.34")
    known = KnownNames(tmp_path / NAMES)
    assert known.changed("site.test", found, inside=bool(ranges))
    known.accept("site.test")
    assert (await dialled())[0] == ""


def test_without_a_readable_file_nothing_counts_as_known(tmp_path: Path) -> None:
    (tmp_path / NAMES).write_text("[1]")
    with pytest.raises(ConfigError, match=r"names\.json"):
        KnownNames(tmp_path / NAMES)


def test_what_no_profile_puts_in_scope_is_refused_at_the_broker_before_anything_else() -> None:
    policy = EgressPolicy.of(profile())
    for url in ("https://api.stripe.com/", "https://site.test:5432/"):
        with pytest.raises(Denied, match="no profile and no rung") as caught:
            policy.check("GET", parse_target(url))
        assert caught.value.rule == "never"


@pytest.mark.anyio
@pytest.mark.parametrize(("host", "dialled"), [("10.7.0.9", True), ("10.8.0.9", False), ("127.0.0.1", True)])
async def test_an_address_in_the_profile_must_be_in_the_ranges_but_for_this_machine(
    host: str, dialled: bool
) -> None:
    policy = EgressPolicy.of(profile(site=f"http://{host}", ranges=RANGES))
    origin = parse_target(f"http://{host}/").origin
    if dialled:
        assert (await policy.addresses(origin)).addresses == (host,)
    else:
        with pytest.raises(Denied, match=r"outside of web\.ranges"):
            await policy.addresses(origin)


A, B = "0x" + "aa" * 20, "0x" + "bb" * 20
MESSAGE = {"from": A, "to": B, "data": "0x01020304", "gas": "0x5208"}


def simulation(*calls: object, block: object = "latest", overrides: object = None, **more: Any) -> object:
    state = {"calls": list(calls)} | ({} if overrides is None else {"stateOverrides": overrides})
    return call("eth_simulateV1", [{"blockStateCalls": [state]} | more, block])


def test_a_simulation_is_written_anew_from_the_parts_that_are_known() -> None:
    body = simulation(
        MESSAGE | {"value": "0x1"}, overrides={A: {"code": "0x00", "balance": "0xff"}}, block="0x2a"
    )
    clean, methods = rewrite(json.dumps(body).encode(), methods=METHODS, max_log_range=10)
    assert methods == ("eth_simulateV1",)
    assert json.loads(clean)["params"] == [
        {
            "blockStateCalls": [
                {
                    "calls": [MESSAGE | {"value": "0x1"}],
                    "stateOverrides": {A: {"code": "0x00", "balance": "0xff"}},
                }
            ]
        },
        "0x2a",
    ]


def test_a_call_with_code_in_place_is_written_anew() -> None:
    body = call("eth_call", [MESSAGE, "latest", {A: {"code": "0x00"}}])
    clean, _ = rewrite(json.dumps(body).encode(), methods=METHODS, max_log_range=10)
    assert json.loads(clean)["params"] == [MESSAGE, "latest", {A: {"code": "0x00"}}]


@pytest.mark.parametrize(
    "body",
    [
        call("eth_simulateV1", []),
        call("eth_simulateV1", [{"blockStateCalls": []}, "latest"]),
        call("eth_simulateV1", [{"blockStateCalls": [{"calls": [MESSAGE]}] * 2}, "latest"]),
        call("eth_simulateV1", [{"blockStateCalls": [{"calls": [MESSAGE]}]}]),
        call("eth_simulateV1", [{"blockStateCalls": [{"calls": [MESSAGE], "blockOverrides": {}}]}, "latest"]),
        simulation(MESSAGE, validation=True),
        simulation(MESSAGE, traceTransfers=True),
        simulation(MESSAGE, block="pending"),
        simulation(MESSAGE, block={"blockHash": "0x00"}),
        simulation(),
        simulation(*[MESSAGE] * 113),
        simulation(MESSAGE | {"gas": "0x1dcd6501"}),
        simulation(*[MESSAGE | {"gas": "0xee6b281"}] * 2),
        simulation(MESSAGE | {"gas": 21_000}),
        simulation({key: text for key, text in MESSAGE.items() if key != "gas"}),
        simulation({key: text for key, text in MESSAGE.items() if key != "from"}),
        simulation(MESSAGE | {"nonce": "0x0"}),
        simulation(MESSAGE | {"input": "0x"}),
        simulation(MESSAGE | {"accessList": []}),
        simulation(MESSAGE | {"to": None}),
        simulation(MESSAGE | {"to": "0x1"}),
        simulation(MESSAGE | {"data": "0x0"}),
        simulation(MESSAGE | {"data": ["0x00"]}),
        simulation(MESSAGE | {"data": "0x" + "00" * (256 << 10) + "00"}),
        simulation(MESSAGE | {"value": "0x" + "f" * 65}),
        simulation("eth_sendRawTransaction"),
        simulation(MESSAGE, overrides={A: {"state": {}}}),
        simulation(MESSAGE, overrides={A: {"stateDiff": {}}}),
        simulation(MESSAGE, overrides={A: {"nonce": "0x1"}}),
        simulation(MESSAGE, overrides={A: {"movePrecompileToAddress": B}}),
        simulation(MESSAGE, overrides={"0x1": {"code": "0x00"}}),
        simulation(MESSAGE, overrides={A: {"code": "0x" + "00" * 24_577}}),
        simulation(MESSAGE, overrides={f"0x{at:040x}": {} for at in range(5)}),
        simulation(MESSAGE, overrides=[A]),
        call("eth_call", [MESSAGE, "latest", {A: {"state": {}}}]),
        call("eth_call", [MESSAGE, "latest", {A: {"code": "0x00"}}, {}]),
        call("eth_call", [MESSAGE | {"gas": "0x1dcd6501"}, "latest", {}]),
        call("eth_call", [{"to": B, "data": "0x"}, "latest", {A: {"code": "0x00"}}]),
        call("eth_estimateGas", [MESSAGE, "latest", {A: {"code": "0x00"}}]),
    ],
)
def test_a_simulation_of_any_other_form_is_refused(body: object) -> None:
    assert denied(body) == "rpc-params"


@pytest.mark.parametrize(
    "method",
    [
        "eth_sendTransaction",
        "eth_signTransaction",
        "eth_sign",
        "eth_simulateV2",
        "debug_traceCall",
        "debug_traceCallMany",
        "trace_call",
        "eth_createAccessList",
        "anvil_impersonateAccount",
        "evm_mine",
    ],
)
def test_no_other_way_to_simulate_or_to_send(method: str) -> None:
    assert denied(call(method, [MESSAGE, "latest"])) == "rpc-method"
