"""What discovery finds on small servers of this process, and that a hostile one costs and moves nothing."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

import pytest

from fleet.app.discovery.discover import Discovery, NamedTargets, discover
from fleet.app.discovery.profile import ProfileContext, profile_text
from fleet.app.discovery.visitor import Unanswered, Visitor, is_ours, origin_of
from fleet.config import Platform, parse
from fleet.config.authorisation import AuthorisationSection
from fleet.devnet.surfaces.harbour import open_office
from fleet.devnet.surfaces.herbarium_wires import open_herbarium
from fleet.errors import UsageError
from tests.sandbox.doubles import Got, Server, http_answer, json_answer

pytestmark = pytest.mark.anyio
OPENAPI = {
    "openapi": "3.1.0",
    "info": {"title": "Pets\n[web]\nsite = 1", "version": "1"},
    "paths": {"/pets": {"get": {"responses": {}}, "post": {"responses": {}}}},
    "components": {"securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "x-key"}}},
}
CARD = {"name": "Moss", "url": "http://x", "skills": [{}, {}]}
HOME = http_answer(
    200, b"<html><a href='/a'>a</a></html>", "content-type: text/html", "server: small\x1b[31m"
)
MCP = {"protocolVersion": "2025-06-18", "serverInfo": {"name": "tiles"}, "capabilities": {}}
ADDRESS = "0x" + "ab" * 20


def site(pages: Mapping[str, bytes], missing: bytes = http_answer(404, b"no")) -> Server:
    """A site of these pages, by path."""
    return Server(lambda got: {"/": HOME, **pages}.get(got.path, missing) if got.method == "GET" else missing)


def rpc(results: Mapping[str, object], get: int = 405) -> Callable[[Got], bytes]:
    """Answers of a JSON-RPC service that refuses GET."""

    def answer(got: Got) -> bytes:
        if got.method != "POST":
            return http_answer(get, b"")
        asked = json.loads(got.body)
        key = asked["params"][0]["data"] if asked["method"] == "eth_call" else asked["method"]
        said = {"result": results[key]} if key in results else {"error": {"code": -32601, "message": "no"}}
        return json_answer(200, {"jsonrpc": "2.0", "id": 1, **said})

    return answer


async def found(*words: str, seconds: float = 20.0) -> Discovery:
    return await discover(NamedTargets.of(words), "qa-test", seconds=seconds)


PLACES = [
    ("/openapi.json", json_answer(200, OPENAPI), "description", "2 operations, 1 that read"),
    ("/apispec_1.json", json_answer(200, OPENAPI), "description", "2 operations, 1 that read"),
    ("/llms.txt", http_answer(200, b"# Moss\n\nHello", "content-type: text/plain"), "guide", "3 lines"),
    ("/robots.txt", http_answer(200, b"User-agent: *\nDisallow: /a\n"), "robots", "1 path disallowed"),
    ("/sitemap.xml", http_answer(200, b"<urlset><loc>/a</loc></urlset>"), "sitemap", "a sitemap of 1 page"),
    ("/.well-known/security.txt", http_answer(200, b"Contact: mailto:a@b.c\n"), "security", "mailto:a@b.c"),
    ("/.well-known/agent-card.json", json_answer(200, CARD), "agent-card", "'Moss', 2 skills"),
    (
        "/.well-known/agent-registration.json",
        json_answer(200, {"registrations": [{"agentId": 7, "agentRegistry": "eip155:1:0xab"}, 7]}),
        "registration",
        "agent 7 of eip155:1:0xab; [erc8004] would have it looked at",
    ),
]


@pytest.mark.parametrize(("path", "answer", "role", "how"), PLACES, ids=[one[0] for one in PLACES])
async def test_a_document_is_found_where_it_is_usual(path: str, answer: bytes, role: str, how: str) -> None:
    async with site({path: answer}) as server:
        (one,) = (await found(server.url)).sites
        assert [(doc.role, urlsplit(doc.url).path) for doc in one.documents] == [(role, path)]
        assert one.documents[0].how.endswith(how)
        assert {got.method for got in server.got} == {"GET"}
        assert {got.headers["user-agent"] for got in server.got} == {"qa-test"}


async def test_a_description_is_found_below_the_page_that_was_named() -> None:
    async with site({"/v1/": json_answer(200, {}), "/v1/__api__": json_answer(200, OPENAPI)}) as server:
        (one,) = (await found(f"{server.url}/v1/")).sites
        assert [urlsplit(doc.url).path for doc in one.documents] == ["/v1/__api__"]


async def test_a_registration_leads_to_mcp_servers_of_its_own_host_alone() -> None:
    initialize = {"protocolVersion": "2025-06-18", "serverInfo": {"name": "tiles"}, "capabilities": {}}
    service = rpc({"initialize": initialize})
    async with Server() as other, Server() as server:
        ends = [f"{other.url}/tools", f"{server.url}/agents/tools", "javascript:x", 7]
        said = {"services": [{"name": "MCP", "endpoint": one} for one in ends] + ["x"], "registrations": 7}
        page, missing = json_answer(200, said), http_answer(404, b"no")
        pages = {"/": HOME, "/.well-known/agent-registration.json": page}
        server.answer = lambda got: (
            service(got) if got.path == "/agents/tools" else pages.get(got.path, missing)
        )
        (one,) = (await found(server.url)).sites
        assert [(doc.role, urlsplit(doc.url).path) for doc in one.documents] == [("mcp", "/agents/tools")]
        assert not other.got


@pytest.mark.parametrize(
    "page", [b"<script>ui({url: '/odd/v9/openapi'})</script>", b'<a href="odd/v9/openapi">']
)
async def test_a_description_is_found_where_a_page_links_to_it(page: bytes) -> None:
    async with site(
        {"/docs": http_answer(200, page), "/odd/v9/openapi": json_answer(200, OPENAPI)}
    ) as server:
        (one,) = (await found(server.url)).sites
        assert [(doc.role, urlsplit(doc.url).path) for doc in one.documents] == [
            ("description", "/odd/v9/openapi")
        ]
        assert one.ways_in == ("header x-key",)


MOVED = http_answer(303, b"", "location: /for/developers")
NAMED = http_answer(200, b'<p>See <a href="/odd/v9/openapi.json">the description</a>')


async def test_a_description_is_found_by_a_page_that_the_first_one_names_be_it_by_a_redirect() -> None:
    home = http_answer(200, b'<a href="/boats">Boats</a> <a href="/go?to=/developers">Developers</a>')
    pages = {"/": home, "/go?to=/developers": MOVED, "/for/developers": NAMED}
    async with site(pages | {"/odd/v9/openapi.json": json_answer(200, OPENAPI)}) as server:
        (one,) = (await found(server.url)).sites
        assert [urlsplit(doc.url).path for doc in one.documents] == ["/odd/v9/openapi.json"]
        assert "/boats" not in {got.path for got in server.got}


@pytest.mark.parametrize(
    ("wire", "name", "path", "model"),
    [("a2a-1.0", "fern", "/a2a", ""), ("a2a-0.3", "fern", "/a2a", ""), ("chat", "fern", "/v1", "fern")],
)
async def test_an_agent_is_found_by_its_card_or_by_the_list_of_models(
    wire: str, name: str, path: str, model: str
) -> None:
    with open_herbarium(wire) as office:
        told = await found(office.url)
        text = profile_text(told, ProfileContext("x", "fleet look x", "2026-11-27", AuthorisationSection()))
        platform = parse(Platform, text, file="x.toml")
        (one,) = platform.agents.values()
        assert (list(platform.agents), one.wire, one.url, one.model) == (
            [name],
            wire,
            f"{{site}}{path}",
            model,
        )
        assert office.agent.asked == 0  # nothing was said to it


def card(*ways: tuple[object, object, object], **more: object) -> dict[str, object]:
    keys = ("url", "protocolBinding", "protocolVersion")
    return {
        "name": "Moss",
        "supportedInterfaces": [dict(zip(keys, way, strict=True)) for way in ways],
        **more,
    }


@pytest.mark.parametrize(
    ("said", "agents", "notes"),
    [
        (card(("HERE/a", "JSONRPC", "1.0"), ("HERE/b", "JSONRPC", "0.3")), ["a2a-1.0 HERE/a"], 0),
        (card(("HERE", "JSONRPC", "1.0.1")), ["a2a-1.0 HERE/"], 0),
        (card(url="HERE/c", protocolVersion="0.3.0"), ["a2a-0.3 HERE/c"], 0),
        (card(("HERE/a", "GRPC", "1.0"), ("HERE/b", "HTTP+JSON", "1.0")), [], 2),
        (card(("HERE/a", "JSONRPC", "0.2.5"), ("HERE/a", "JSONRPC", "10.0")), [], 2),
        (card(("http://127.0.0.1:1/a", "JSONRPC", "1.0")), [], 1),
        (card(("http://[", "JSONRPC", "1.0"), ("HERE/a?x=1", "JSONRPC", "1.0")), [], 2),
        (card(("HERE/{a}", "JSONRPC", "1.0"), ('HERE/"]\n[x', "JSONRPC", "1.0")), [], 2),
        (card((7, None, ["1.0"])), [], 0),
        ({"name": "Moss", "supportedInterfaces": 7, "url": 7}, [], 0),
    ],
)
async def test_a_card_names_an_agent_of_its_own_host_alone(
    said: dict[str, object], agents: list[str], notes: int
) -> None:
    async with Server() as server:
        body = json.dumps(said).replace("HERE", server.url).encode()
        page = http_answer(200, body, "content-type: application/json")
        missing = http_answer(404, b"no")
        server.answer = lambda got: page if got.path == "/.well-known/agent-card.json" else missing
        told = await found(server.url)
        (one,) = told.sites
        seen = [f"{agent.wire} {agent.url}".replace(server.url, "HERE") for agent in one.agents]
        assert (seen, len(one.notes)) == (agents, notes)
        profile_text(told, ProfileContext("x", "fleet look x", "2026-11-27", AuthorisationSection()))


LIES = {
    "one page for everything": http_answer(200, b"<html>app</html>", "content-type: text/html"),
    "one text for everything": http_answer(200, b"all is well"),
    "one JSON for everything": json_answer(200, {"openapi": "3.1.0", "paths": {"/a": {"get": {}}}}),
    "a description that goes on in itself": json_answer(200, {"openapi": "3.1.0", "paths": []}),
    "deep JSON": http_answer(200, b'{"openapi": "3.0.0", "paths": ' + b"[" * 50_000),
    "not what it says": http_answer(200, b"\xff\xfe\x00gzip", "content-encoding: gzip"),
}


@pytest.mark.parametrize("answer", LIES.values(), ids=LIES)
async def test_what_answers_to_everything_has_no_documents(answer: bytes) -> None:
    async with site({}, missing=answer) as server:
        (one,) = (await found(server.url)).sites
        assert one.documents == ()


async def test_ten_megabytes_are_not_read() -> None:
    large = http_answer(200, json.dumps(OPENAPI).encode() + b" " * 10_000_000)
    async with site({"/openapi.json": large, "/llms.txt": http_answer(200, b"# Moss")}) as server:
        (one,) = (await found(server.url)).sites
        assert [doc.role for doc in one.documents] == ["guide"]


async def test_a_body_without_end_is_read_to_a_limit() -> None:
    sent = 0

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        path = (await reader.readuntil(b"\r\n\r\n")).split(b" ")[1]
        writer.write(b"HTTP/1.1 200 X\r\n\r\n" if path == b"/llms.txt" else http_answer(404, b""))
        while path == b"/llms.txt":
            writer.write(b"a" * 65_536)
            sent += 65_536
            await writer.drain()

    async with Server(raw=answer) as server:
        assert (await found(server.url)).sites[0].documents == ()
    assert sent < 30_000_000  # the limit, and what the sockets hold


async def test_a_slow_answer_ends_with_the_time_for_everything() -> None:
    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        while True:
            writer.write(b"x")
            await asyncio.sleep(0.05)

    async with Server(raw=drip) as server:
        assert (await found(server.url, seconds=0.4)).silent == ((f"{server.url}/", "no answer in time"),)


async def test_the_first_answer_of_a_host_may_come_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that is just beginning; once it has answered, a page that does not is no matter."""
    monkeypatch.setattr("fleet.app.discovery.visitor.ANSWER_S", 0.3)
    asked: list[str] = []

    async def late(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append((await reader.readuntil(b"\r\n\r\n")).split()[1].decode())
        try:
            await asyncio.sleep(0.9)
            writer.write(HOME)
        finally:  # many are cut off in their sleep
            writer.close()

    async with Server(raw=late) as server:
        seen = await found(server.url)
    assert seen.silent == ()
    assert seen.sites[0].documents == ()
    assert (asked[0], len(asked) > 1) == ("/", True)


async def test_a_redirect_to_another_host_is_named_and_not_followed() -> None:
    async with (
        Server() as other,
        Server(lambda _: http_answer(302, b"", f"location: {other.url}/x")) as server,
    ):
        (one,) = (await found(server.url)).sites
        assert other.got == []
        assert one.notes == (
            f"{server.url}/ redirects to {other.url}/x: another host, asked only if it is named too",
        )


async def test_a_redirect_on_the_host_is_followed_and_a_circle_is_left() -> None:
    moved = {"/": http_answer(301, b"", "location: /here"), "/here": HOME}
    async with site({**moved, "/llms.txt": http_answer(302, b"", "location: /llms.txt")}) as server:
        (one,) = (await found(server.url)).sites
        assert one.how.startswith(f"GET {server.url}/ answered 200")
        assert len([got for got in server.got if got.path == "/llms.txt"]) == 5


@pytest.mark.parametrize(
    ("results", "how"),
    [
        ({"eth_getCode": "0x60"}, "eth_getCode answered 1 byte; no loupe"),
        ({"eth_getCode": "0x60", "0x7a0ed627": "0x12"}, "eth_getCode answered 1 byte; no loupe"),
        ({"eth_getCode": "0x"}, ""),
        ({"eth_getCode": 7}, ""),
    ],
)
async def test_an_address_is_looked_up_on_the_node_beside_it(results: dict[str, object], how: str) -> None:
    async with Server(rpc({"eth_chainId": "0x7a69", **results})) as node:
        told = await found(ADDRESS, node.url)
        assert told.sites == ()
        assert told.node is not None
        assert (told.node.id, told.contract.how if told.contract else "") == (31337, how)


async def test_only_a_place_that_refuses_get_is_posted_to_and_an_mcp_server_is_found_there() -> None:
    service = rpc({"initialize": MCP})
    async with Server(lambda got: service(got) if got.path == "/mcp" else HOME) as server:
        (one,) = (await found(server.url)).sites
        assert {got.path for got in server.got if got.method == "POST"} == {"/mcp"}
        assert [(doc.role, doc.how) for doc in one.documents] == [
            ("mcp", "an MCP server 'tiles', protocol 2025-06-18")
        ]


@pytest.mark.parametrize("session", ["a1", ""])
async def test_no_session_of_an_mcp_server_is_left_behind(session: str) -> None:
    said = {"jsonrpc": "2.0", "id": 1, "result": MCP}
    begun = json_answer(200, said, *([f"mcp-session-id: {session}"] if session else []))
    refused = http_answer(405, b"")
    async with Server(
        lambda got: HOME if got.path != "/mcp" else begun if got.method == "POST" else refused
    ) as server:
        (one,) = (await found(server.url)).sites
        assert [doc.role for doc in one.documents] == ["mcp"]
        ended = [got.headers.get("mcp-session-id") for got in server.got if got.method == "DELETE"]
        assert ended == [session] * bool(session)


@pytest.mark.parametrize(
    ("refused", "posted"), [(b"Invalid or missing session ID", True), (b"<h1>Bad request</h1>", False)]
)
async def test_a_sentence_that_a_framework_calls_html_is_no_page(refused: bytes, posted: bool) -> None:
    service = rpc({"initialize": MCP})
    html = http_answer(400, refused, "content-type: text/html; charset=utf-8")
    pages = {"/mcp": html}
    async with Server(
        lambda got: service(got) if got.method == "POST" else pages.get(got.path, HOME)
    ) as server:
        (one,) = (await found(server.url)).sites
        assert [doc.role for doc in one.documents] == ["mcp"] * posted
        assert any(got.method == "POST" for got in server.got) is posted


async def test_an_mcp_server_at_the_root_has_an_endpoint_that_a_profile_takes() -> None:
    async with Server(rpc({"initialize": MCP})) as server:
        told = await found(server.url)
        text = profile_text(told, ProfileContext("x", "fleet look x", "2026-11-27", AuthorisationSection()))
        assert parse(Platform, text, file="x").mcp_urls == (f"{server.url}/",)


@pytest.mark.parametrize(
    ("wire", "protected", "how"),
    [
        ("old stream", False, "an MCP server 'harbour', protocol 2025-06-18"),
        ("new", False, "an MCP server 'harbour', protocol 2026-07-28"),
        ("old", False, "an MCP server 'harbour', protocol 2025-06-18"),
        ("old", True, "it refuses a stranger as an MCP server does, and names its metadata"),
    ],
)
async def test_an_mcp_server_of_each_kind_is_written_into_a_profile(
    wire: str, protected: bool, how: str
) -> None:
    with open_office(wire=wire[:3], stream="stream" in wire, protected=protected) as office:
        told = await found(f"{office.url}/mcp")
        text = profile_text(told, ProfileContext("x", "fleet look x", "2026-11-27", AuthorisationSection()))
        assert f"# {how}" in text
        read = parse(Platform, text, file="x")
        assert (read.mcp_urls, read.targets) == ((f"{office.url}/mcp",), {"start": "{site}/mcp"})


async def test_what_does_not_answer_is_silent_and_another_scheme_is_tried() -> None:
    async with Server() as server:
        gone = server.port
    async with site({}) as server:
        told = await found(f"127.0.0.1:{gone}", f"127.0.0.1:{server.port}")
        assert told.silent == ((f"http://127.0.0.1:{gone}/", "connection refused"),)
        assert [one.origin for one in told.sites] == [server.url]


async def test_a_host_that_was_not_named_is_not_asked() -> None:
    async with Server() as server, Visitor(frozenset({origin_of("http://127.0.0.1:9")}), "qa") as visitor:
        with pytest.raises(Unanswered, match="was not named"):
            await visitor.get(server.url)
        assert server.got == []


OURS = {
    "http://127.0.0.1:8000": True,
    "http://localhost:8000": True,
    "https://[::1]": True,
    "http://10.1.2.3": True,
    "http://192.168.0.9": True,
    "https://1.1.1.1": False,
    "http://169.254.169.254": False,
    "http://[fd00:ec2::254]": False,
    "http://100.100.100.200": False,
    "http://0.0.0.0": False,
}


@pytest.mark.parametrize(("url", "ours"), OURS.items())
async def test_what_needs_no_consent_is_this_machine_or_a_private_network(url: str, ours: bool) -> None:
    assert await is_ours(origin_of(url)) is ours


WRONG = [
    "ftp://host/",
    "http://",
    "http://user@host",
    "a b",
    "http://h:99999",
    "0x" + "ab" * 20,
    "http://a%20b",
]


@pytest.mark.parametrize("word", WRONG)
def test_a_word_that_is_no_address_is_refused(word: str) -> None:
    with pytest.raises(UsageError):
        NamedTargets.of([word])
