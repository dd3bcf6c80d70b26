"""The agent-call proxy over real HTTP: status table, tokens, billing order, origins."""

from __future__ import annotations

import httpx
import pytest

from fleet.chain.keys import address_of, auth_token
from fleet.devnet.platform.app import create_app
from fleet.devnet.platform.auth import BadToken, verify
from fleet.devnet.platform.chain import DiamondDouble
from fleet.devnet.platform.site import CREDIT, RateLimiter, Settings
from fleet.errors import TxFailed, Unreachable
from tests.devnet.platform_server import (
    CALLER,
    GENERATE,
    OTHER,
    STREAM,
    Client,
    FixedClock,
    memory_chain,
    platform,
    saying,
)

PRICE = CREDIT // 100
EMPTY = "contents must not be empty"


def error_of(response: httpx.Response) -> str:
    return str(response.json()["error"])


def test_a_good_call_answers_and_is_charged_once(client: Client, chain: DiamondDouble) -> None:
    chain.metered.clear()
    response = client.say("hello")
    assert response.status_code == 200
    body = response.json()
    assert body["candidates"][0]["content"]["parts"] == [{"text": "claude heard you say: hello"}]
    assert body["candidates"][0]["finishReason"] == "STOP"
    assert (body["caller"], body["turns"]) == (address_of(CALLER), 1)
    assert body["usageMetadata"]["totalTokenCount"] == 6
    assert chain.metered == [(address_of(CALLER), PRICE)]


@pytest.mark.parametrize(
    ("path", "body", "status", "error"),
    [
        ("/v1beta/models/a_b:generateContent", saying("x"), 400, "unsupported path"),
        ("/v1beta/models/gemini:embedContent", saying("x"), 400, "unsupported path"),
        ("/v1beta/", saying("x"), 400, "unsupported path"),
        (GENERATE, b"{", 400, "invalid JSON"),
        (GENERATE, b"[" * 100_000, 400, "invalid JSON"),
        (GENERATE, b"\xff\xfe", 400, "invalid JSON"),
        (GENERATE, b"[]", 400, "invalid JSON: an object is expected"),
        (GENERATE, {"agent": "claude"}, 400, EMPTY),
        (GENERATE, {"agent": "claude", "contents": []}, 400, EMPTY),
        (GENERATE, {"agent": "claude", "contents": ["x", None]}, 400, EMPTY),
        (GENERATE, {"agent": "claude", "contents": [{"parts": [{"text": 5}]}]}, 400, EMPTY),
        (GENERATE, saying(" \n "), 400, EMPTY),
        (STREAM, saying(""), 400, EMPTY),
        (GENERATE, saying("x", "nobody"), 404, '"nobody" is not a registered agent'),
        (GENERATE, saying("x", "../etc"), 404, '"../etc" is not a registered agent'),
        (GENERATE, {"contents": saying("x")["contents"]}, 404, '"None" is not a registered agent'),
    ],
)
def test_refusals_are_free(
    client: Client, chain: DiamondDouble, path: str, body: object, status: int, error: str
) -> None:
    chain.metered.clear()
    response = client.post(body, path)
    assert (response.status_code, error_of(response)) == (status, error)
    assert chain.metered == []


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH"])
def test_other_methods_are_405(client: Client, method: str) -> None:
    response = client.http.request(method, GENERATE)
    assert (response.status_code, error_of(response)) == (405, "method not allowed")


def test_posting_to_a_read_is_405_in_json(client: Client) -> None:
    response = client.http.post("/api/status")
    assert (response.status_code, error_of(response)) == (405, "method not allowed")


def test_a_body_over_the_limit_is_413() -> None:
    chain = memory_chain()
    with platform(chain=chain, settings=Settings(max_body=1000)) as client:
        assert client.post(b"x" * 1001).status_code == 413
        assert client.post(b"x" * 1000).status_code == 400
    assert chain.metered == []


def test_without_credit_402_and_no_answer() -> None:
    chain = memory_chain(credit=PRICE - 1)
    with platform(chain=chain) as client:
        response = client.say("hello")
    assert (response.status_code, error_of(response)) == (402, "no active session or credit")
    assert chain.metered == []


def test_too_many_calls_are_429_until_the_minute_is_over() -> None:
    clock = FixedClock()
    with platform(settings=Settings(calls_per_minute=2), clock=clock) as client:
        assert [client.say("x").status_code for _ in range(3)] == [200, 200, 429]
        assert client.say("x").json()["retryAfterSeconds"] == 60
        other = client.post(saying("x"), token=client.token(OTHER))
        clock.at += 61
        assert (other.status_code, client.say("x").status_code) == (402, 200)


def test_the_limiter_forgets_addresses_that_went_quiet() -> None:
    clock = FixedClock()
    limiter = RateLimiter(1, clock)
    assert [limiter.retry_after("a"), limiter.retry_after("b"), limiter.retry_after("a")] == [0, 0, 60]
    clock.at += 60
    assert [limiter.retry_after("a"), len(limiter._seen)] == [0, 1]


def test_without_a_meter_key_503_and_no_free_answer() -> None:
    with platform(settings=Settings(metering=False)) as client:
        response = client.say("hello")
    assert (response.status_code, response.json()["code"]) == (503, "LH_PROXY_MISCONFIG")


def test_a_failed_debit_is_502_and_no_answer() -> None:
    class Broke(DiamondDouble):
        async def meter(self, address: str, wei: int) -> None:
            raise TxFailed("NotMeter()", kind="reverted")

    chain = Broke(credits={address_of(CALLER): CREDIT}, names={"claude": "0x" + "ab" * 20})
    with platform(chain=chain) as client:
        response = client.say("hello")
    assert (response.status_code, error_of(response)) == (502, "metering failed: NotMeter()")


def test_a_silent_chain_is_503() -> None:
    class Silent(DiamondDouble):
        async def id_of_name(self, name: str) -> int:
            raise Unreachable("no answer")

    with platform(chain=Silent()) as client:
        answers = [client.get("/face/docs/"), client.say("hello"), client.get("/api/status")]
    assert [answer.status_code for answer in answers] == [503, 503, 200]


def test_an_unknown_defect_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown defects: nonsense"):
        create_app(memory_chain(), frozenset({"nonsense"}), Settings())


def test_tokens_with_and_without_a_route_are_taken(client: Client) -> None:
    for route in ("gemini", ""):
        assert client.post(saying("x"), token=client.token(route=route)).status_code == 200


def test_bad_tokens_are_401_with_their_reason(client: Client) -> None:
    good = client.token()
    address, stamp, signature = good.split(":")
    wrong = {
        "": "missing or malformed auth token",
        "a:b": "missing or malformed auth token",
        good + ":x": "missing or malformed auth token",
        f"{address}:{stamp}x:{signature}": "malformed auth token",
        f"{address[:-1]}:{stamp}:{signature}": "malformed auth token",
        f"{address}:{stamp}:{signature[:-2]}": "malformed auth token",
        client.token(age=400): "stale or future timestamp",
        client.token(age=-400): "stale or future timestamp",
        f"{address}:{stamp}:{signature[:-2]}05": "bad signature: recovery id",
        f"{address}:{stamp}:0x{'00' * 64}1b": "bad signature: cannot be recovered",
        f"{address_of(OTHER)}:{stamp}:{signature}": "signature does not match address",
        client.token(route="sponsor"): "signature does not match address",
    }
    seen = {token: client.post(saying("x"), token=token) for token in wrong}
    assert {token: error_of(answer) for token, answer in seen.items()} == wrong
    assert {answer.status_code for answer in seen.values()} == {401}


def test_a_token_is_good_for_exactly_the_freshness() -> None:
    def check(now: float) -> str:
        return verify(token, scope="s", route="r", now=now, freshness_s=300)

    token = auth_token("s", CALLER, 1000, "r")
    assert check(700) == check(1300) == address_of(CALLER)
    for now in (699, 1301):
        with pytest.raises(BadToken, match="stale"):
            check(now)


def test_a_signature_with_a_high_s_is_refused() -> None:
    order = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
    address, stamp, signature = auth_token("s", CALLER, 1000, "r").split(":")
    s, v = int(signature[66:130], 16), int(signature[130:], 16)
    twin = f"{signature[:66]}{order - s:064x}{27 if v == 28 else 28:02x}"
    with pytest.raises(BadToken, match="high s"):
        verify(f"{address}:{stamp}:{twin}", scope="s", route="r", now=1000, freshness_s=300)


ORIGINS = {
    "http://localhost": True,
    "http://localhost:5173": True,
    "http://127.0.0.1:8000": True,
    "http://localhost.evil.test": False,
    "http://localhost@evil.test": False,
    "http://evil.test@localhost": False,
    "http://localhost/": False,
    "https://localhost": False,
    "http://evil.test": False,
    "http://[": False,
    "null": False,
}


@pytest.mark.parametrize(("origin", "allowed"), ORIGINS.items())
def test_only_exact_origins_are_echoed(client: Client, origin: str, allowed: bool) -> None:
    expected = origin if allowed else None
    preflight = client.http.options(GENERATE, headers={"origin": origin})
    answers = [preflight, client.get("/api/status", origin=origin), client.get("/nowhere", origin=origin)]
    assert [answer.status_code for answer in answers] == [204, 200, 404]
    assert {answer.headers.get("access-control-allow-origin") for answer in answers} == {expected}
    assert all("origin" in answer.headers["vary"] for answer in answers)
