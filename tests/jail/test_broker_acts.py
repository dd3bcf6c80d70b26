"""The broker's own fence around acts on pages, turns at a host, and the dial's last word."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from dataclasses import replace

import pytest

from fleet.broker.broker import Broker
from fleet.broker.egress_policy import EgressPolicy, Origin, parse_target
from fleet.broker.egress_record import EgressRecord
from fleet.broker.pace import HostPace
from fleet.broker.rpc_policy import Denied
from fleet.config.scope import HostSection
from fleet.config.url_list import UrlList
from fleet.runs.context import way_out
from sandbox.spec import OVERRIDES, SAFE, UNSAFE
from tests.jail.test_broker_forward import rig, verdict
from tests.jail.test_broker_policy import profile
from tests.sandbox.doubles import Signer, listener, policy_for

anyio = pytest.mark.anyio
LISTED = "https://site.test/api/cart"
ACTING = ("exercise", "propose")


def policy(rung: str | None, *act_paths: str) -> EgressPolicy:
    made = EgressPolicy.of(profile(act_paths=act_paths, hosts=("cdn.test:443",)))
    return made if rung is None else replace(made, rung=lambda: rung)


def decision(given: EgressPolicy, method: str, url: str) -> str:
    try:
        given.check(method, parse_target(url))
    except Denied as denied:
        return denied.rule
    return "permit"


@pytest.mark.parametrize("method", UNSAFE)
@pytest.mark.parametrize("rung", ACTING)
@pytest.mark.parametrize("url", [LISTED, LISTED + "/", LISTED + "/7", LISTED + "?x=%2e%2e", LISTED + "//7"])
def test_a_listed_page_may_be_changed_where_the_dial_permits_acts(method: str, rung: str, url: str) -> None:
    assert decision(policy(rung, "{site}/api/cart"), method, url) == "permit"


@pytest.mark.parametrize("method", UNSAFE)
@pytest.mark.parametrize(
    ("rung", "rule"), [(None, "method"), ("observe", "dial"), ("", "dial"), ("stop", "stop"), ("x", "dial")]
)
def test_nothing_is_changed_at_another_rung_or_where_none_is_known(
    method: str, rung: str | None, rule: str
) -> None:
    assert decision(policy(rung, "{site}/api/cart"), method, LISTED) == rule


@pytest.mark.parametrize("method", UNSAFE)
@pytest.mark.parametrize(
    "url",
    [
        "https://site.test/",
        "https://site.test/api",
        "https://site.test/api/carts",
        "https://site.test/API/cart",
        "https://site.test//api/cart",
        "https://site.test/x/api/cart",
        "https://site.test/x?/api/cart",
        LISTED + "/../admin",
        LISTED + "/./x",
        LISTED + "/..;/admin",
        LISTED + "/;/../admin",
        LISTED + "/%2e%2e/admin",
        LISTED + "/%252e%252e/admin",
        LISTED + "/..%2fadmin",
        LISTED + "/..\\admin",
        LISTED + "%00",
        "https://cdn.test/api/cart",
        "https://name.site.test/api/cart",
        "https://proxy.test/api/cart",
    ],
)
def test_no_other_page_is(method: str, url: str) -> None:
    assert decision(policy("propose", "{site}/api/cart"), method, url) == "method"


def test_without_the_key_nothing_but_a_call_is_posted() -> None:
    call = "https://proxy.test/base/v1/x"
    for rung in ACTING:
        assert [decision(policy(rung), one, LISTED) for one in UNSAFE] == ["method"] * 4
        assert [decision(policy(rung), one, call) for one in UNSAFE] == ["permit", *["method"] * 3]
    assert decision(policy("observe"), "POST", call) == "dial"
    assert decision(policy(None), "POST", call) == "permit"


def test_a_whole_site_is_listed_by_its_slash() -> None:
    assert decision(policy("exercise", "{site}/"), "PUT", "https://site.test/a/b") == "permit"
    assert decision(policy("exercise", "{site}/"), "PUT", "https://site.test/a/%2e%2e/b") == "method"


@pytest.mark.parametrize("method", [*SAFE, *UNSAFE])
@pytest.mark.parametrize("rung", [None, *ACTING])
@pytest.mark.parametrize("path", ["/api/cart", "/api/CART/7", "//api/%63art?x", "/a/..%2fapi/cart;v=1"])
def test_a_place_that_no_rung_lifts_is_asked_by_no_method(method: str, rung: str | None, path: str) -> None:
    made = EgressPolicy.of(profile(never=("{site}/api/cart",), act_paths=("{site}/api",)))
    made = made if rung is None else replace(made, rung=lambda: rung)
    assert decision(made, method, f"https://site.test{path}") == "never"


def test_a_host_that_is_critical_is_read_and_never_changed() -> None:
    careful = {
        "proxy.test": HostSection(criticality="critical", approved="ada, QA-7"),
        "cdn.test": HostSection(),
    }
    made = EgressPolicy.of(profile(hosts=("cdn.test:443",)).model_copy(update={"hosts": careful}))
    call = "https://proxy.test/base/v1/x"
    assert [decision(made, method, call) for method in ("GET", "POST")] == ["permit", "criticality"]


@anyio
async def test_a_host_that_is_critical_is_asked_at_a_pace_of_its_own() -> None:
    given = profile(requests_per_second=20.0).model_copy(
        update={"hosts": {"docs.site.test": HostSection(criticality="critical", approved="ada, QA-7")}}
    )
    policy, slept = EgressPolicy.of(given), list[float]()

    async def sleep(seconds: float) -> None:
        slept.append(round(seconds, 6))

    assert policy.pace is not None
    policy.pace._clock, policy.pace._sleep = (lambda: 100.0), sleep
    for host in ("docs.site.test", "site.test", "a.site.test", "b.site.test", "docs.site.test", "site.test"):
        await policy.turn(parse_target(f"https://{host}/"), "GET")
    assert slept == [0.05, 1.0, 0.05]


def test_outside_the_windows_nothing_leaves() -> None:
    made = replace(policy("propose"), closed=lambda: "until 22:00")
    assert [decision(made, method, LISTED) for method in ("GET", "POST")] == ["schedule"] * 2


@anyio
async def test_a_request_says_who_answers_for_it() -> None:
    async with rig(comment=" (qa@x.test; QA-7)") as it:
        for named in (("user-agent: qa-fleet/1",), ()):
            await it.ask(it.site.url + "/x", "GET", "", b"", "connection: close", *named)
        assert [got.headers["user-agent"] for got in it.site.got] == [
            "qa-fleet/1 (qa@x.test; QA-7)",
            "(qa@x.test; QA-7)",
        ]


@anyio
async def test_a_name_with_the_address_of_a_barred_host_is_not_dialled() -> None:
    async def resolve(_origin: Origin) -> tuple[str, ...]:
        return "192.0.1.9", "1.1.1.1"

    made = EgressPolicy.of(profile(never=("0x01010101.",)))
    with pytest.raises(Denied, match="has an address that is on"):
        await replace(made, resolve=resolve).addresses(parse_target("https://site.test/").origin)


@anyio
async def test_what_is_barred_never_leaves() -> None:
    async with rig(never_places=UrlList.of(["/logout"], site="", proxy="")) as it:
        assert await it.rule(it.site.url + "/%6cogout") == (403, "never")
        assert it.site.got == []


@pytest.mark.parametrize("method", SAFE)
def test_reading_needs_no_rung_but_stop_pauses_it(method: str) -> None:
    rules = [decision(policy(rung), method, LISTED) for rung in (None, "observe", "propose", "stop")]
    assert rules == ["permit", "permit", "permit", "stop"]


@anyio
@pytest.mark.parametrize("name", sorted(OVERRIDES))
async def test_a_header_that_makes_another_request_of_it_goes_nowhere(name: str) -> None:
    async with rig() as it:
        answer = await it.ask(it.site.url + "/x", "GET", "", b"", f"{name.title()}: DELETE")
        assert (verdict(answer), it.site.got) == ((400, "override"), [])


@anyio
async def test_the_dial_is_read_anew_for_each_request() -> None:
    now = ["exercise"]
    async with rig(rung=lambda: now[0]) as it:
        assert (await it.ask(it.site.url + "/x", "POST", "", b"a", "connection: close")).endswith(b"hello")
        for now[0], rule in (("observe", "dial"), ("stop", "stop")):
            assert await it.rule(it.site.url + "/x", "POST", "", b"a") == (403, rule)
        assert [got.body for got in it.site.got] == [b"a"]


@anyio
async def test_turns_come_in_order_and_are_spaced_and_nothing_is_saved_up() -> None:
    now, slept = [100.0], list[float]()

    async def sleep(seconds: float) -> None:
        slept.append(round(seconds, 6))
        now[0] += seconds
        await asyncio.sleep(0)

    pace, order = HostPace(10.0, clock=lambda: now[0], sleep=sleep), list[str]()

    async def take(name: str, key: str) -> None:
        await pace.turn(key)
        order.append(name)

    await asyncio.gather(*(take(f"a{n}", "a") for n in range(3)))
    assert (order, slept) == (["a0", "a1", "a2"], [0.1, 0.1])
    await take("b", "b")  # another host has turns of its own
    now[0] += 60.0
    await asyncio.gather(*(take(f"c{n}", "a") for n in range(3)))
    assert slept == [0.1] * 4


@anyio
async def test_who_leaves_while_waiting_takes_no_turn() -> None:
    paused: list[float] = []

    async def sleep(seconds: float) -> None:
        paused.append(seconds)
        await asyncio.Event().wait()

    pace = HostPace(0.5, clock=lambda: 100.0, sleep=sleep)
    await pace.turn("a")
    for _ in range(3):
        waiting = asyncio.create_task(pace.turn("a"))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
    assert paused == [2.0, 2.0, 2.0]


@anyio
async def test_jails_share_the_turns_of_a_host_and_a_late_one_is_our_trouble() -> None:
    shared = HostPace(0.01)
    async with rig(pace=shared) as one, rig(pace=shared, request_s=0.4) as two:
        assert (await one.ask(one.site.url + "/x", "GET", "", b"", "connection: close")).endswith(b"hello")
        broker = Broker(policy_for(one.site.url, pace=shared, request_s=0.4))
        with listener() as sock:
            async with broker.egress(sock):
                two.port = sock.getsockname()[1]
                assert await two.rule(one.site.url + "/x") == (429, "busy")
        assert len(one.site.got) == 1


def test_all_faces_have_one_turn() -> None:
    keys: list[object] = []

    class Seen(HostPace):
        async def turn(self, key: Hashable, share: float = 1.0) -> float:
            keys.append(key)
            return 0.0

    given = replace(policy("propose"), pace=Seen(1))
    urls = ("https://a.site.test/", "https://b.site.test/", "https://site.test/", "https://cdn.test/")

    async def turns() -> None:
        for url in urls:
            await given.turn(parse_target(url), "GET")

    asyncio.run(turns())
    assert (keys[0] == keys[1], len(set(map(str, keys)))) == (True, 3)


@anyio
async def test_a_client_that_waits_is_told_when_its_turn_came() -> None:
    async with rig() as it:
        answer = await it.ask(it.site.url + "/x", "GET", "", b"", "expect: 100-continue", "connection: close")
        assert answer.startswith(b"HTTP/1.1 100 0.000\r\n\r\nHTTP/1.1 200 X\r\n")
        assert "expect" not in it.site.got[0].headers
        refused = await it.ask("http://other.test/x", "GET", "", b"", "expect: 100-continue")
        assert verdict(refused) == (403, "host")


@anyio
async def test_several_calls_may_ask_and_receive_as_much_as_each_alone() -> None:
    small = policy_for("http://127.0.0.1:1", max_requests=10, max_total=100)
    assert (small.for_calls(3).max_requests, small.for_calls(3).max_total) == (30, 300)
    noted: list[EgressRecord] = []
    async with rig() as it:
        egress = way_out(policy_for(it.site.url, max_requests=1), Signer(), 2, noted.append)
        with listener() as sock:
            async with egress(sock):
                it.port = sock.getsockname()[1]
                for _ in range(2):
                    await it.ask(it.site.url + "/x", "GET", "", b"", "connection: close")
                assert await it.rule(it.site.url + "/x") == (429, "requests")
    assert [(one.verb, one.rule) for one in noted] == [("GET", ""), ("GET", ""), ("GET", "requests")]
