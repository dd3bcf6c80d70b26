"""Faces, small reads and documents."""

from __future__ import annotations

import httpx
import pytest

from fleet.devnet.platform.chain import APP_WASM, PERSONA, PUBLIC_FACE, PUBLIC_HTML, DiamondDouble
from fleet.devnet.platform.site import CREDIT
from tests.devnet.platform_server import (
    Client,
    memory_chain,
)

PRICE = CREDIT // 100
WASM = b"\0asm\1\0\0\0"


@pytest.fixture(scope="module")
def chain() -> DiamondDouble:
    made = memory_chain()
    made.names["app-name"] = made.names["page-name"] = made.names["docs"]
    made.values = {
        (1, PERSONA): b"You are <b>claude</b>.",
        (3, PUBLIC_FACE): b"app",
        (3, APP_WASM): WASM,
        (4, PUBLIC_FACE): b"html",
        (4, PUBLIC_HTML): b"<h1>mine</h1><script>alert('x')</script>",
    }
    return made


def error_of(response: httpx.Response) -> str:
    return str(response.json()["error"])


def test_faces_by_kind(client: Client) -> None:
    pages = {name: client.get(f"/face/{name}/") for name in ("claude", "app-name", "page-name")}
    assert {page.status_code for page in pages.values()} == {200}
    assert {page.headers["content-type"] for page in pages.values()} == {"text/html; charset=utf-8"}
    assert "You are &lt;b&gt;claude&lt;/b&gt;." in pages["claude"].text
    assert "This face is an app." in pages["app-name"].text
    assert "<script>alert" not in pages["page-name"].text
    assert 'srcdoc="&lt;h1&gt;mine' in pages["page-name"].text


@pytest.mark.parametrize("name", ["nobody", "UPPER", "-x", "a" * 64, "%2e%2e"])
def test_an_unregistered_name_is_404(client: Client, name: str) -> None:
    for path in (
        f"/face/{name}/",
        f"/face/{name}/app.wasm",
        f"/face/{name}/greeting",
        f"/api/persona?name={name}",
    ):
        assert client.get(path).status_code == 404


def test_a_face_without_its_slash_redirects(client: Client) -> None:
    response = client.get("/face/claude")
    assert (response.status_code, response.headers["location"]) == (307, f"{client.url}/face/claude/")


@pytest.mark.parametrize("query", ["<script>x</script>", '"><img onerror=x>', "{{ 7 * 7 }}"])
def test_a_search_text_is_shown_escaped(client: Client, query: str) -> None:
    for name in ("claude", "page-name", "app-name"):
        page = client.http.get(f"/face/{name}/", params={"q": query}).text
        assert "Nothing here matches: " in page
        assert query not in page or "{{" in query
        assert "matches: 49" not in page


def test_published_bytes_come_back_unchanged(client: Client) -> None:
    response = client.get("/face/app-name/app.wasm")
    assert (response.content, response.headers["content-type"]) == (WASM, "application/wasm")
    missing = client.get("/face/claude/app.wasm")
    assert (missing.status_code, error_of(missing)) == (404, "this name has published no app")


def test_the_small_reads(client: Client) -> None:
    assert client.get("/api/app?name=page-name&kind=face").json()["value"] == "html"
    assert client.get("/api/app?name=claude&kind=face").json()["value"] == "directory"
    assert client.get("/api/app?name=page-name&kind=html").json()["value"].startswith("<h1>mine")
    assert client.get("/api/app?name=claude&kind=html").status_code == 404
    assert client.get("/api/app?name=claude&kind=x").status_code == 400
    assert client.get("/api/persona?name=claude").json()["persona"] == "You are <b>claude</b>."
    assert client.get("/api/status").json()["price_wei"] == str(PRICE)


@pytest.mark.parametrize(
    ("wei", "shown"),
    [(0, "0"), (1, "0.000000000000000001"), (PRICE, "0.01"), (CREDIT, "1"), (10 * CREDIT + PRICE, "10.01")],
)
def test_credit_is_shown_in_full(client: Client, chain: DiamondDouble, wei: int, shown: str) -> None:
    address = "0x" + "cd" * 20
    chain.credits[address] = wei
    answer = client.get(f"/api/credit?address={address.upper().replace('X', 'x')}").json()
    assert answer == {"address": address, "wei": str(wei), "display": f"{shown} credits"}


@pytest.mark.parametrize(
    "query", ["", "bytes=", "bytes=-1", "bytes=1e3", "bytes=1048577", "bytes=" + "9" * 5000]
)
def test_a_nonsense_estimate_is_400(client: Client, query: str) -> None:
    assert client.get(f"/api/estimate?{query}").status_code == 400


@pytest.mark.parametrize(
    ("size", "measured"),
    [(32, 77_660), (100, 146_178), (200, 215_109), (1000, 789_203), (16_384, 11_813_099)],
)
def test_the_estimate_is_near_what_a_write_was_measured_to_cost(
    client: Client, size: int, measured: int
) -> None:
    gas = client.get(f"/api/estimate?bytes={size}").json()["gas"]
    assert measured <= gas <= measured * 1.02


def test_both_documents_are_one_text(client: Client) -> None:
    llms, skill = client.get("/llms.txt").text, client.get("/skill.md").text
    assert skill.startswith("---\nname: ")
    assert skill.endswith(llms)
    assert "costs 0.01 credits" in llms
    assert len(skill) < 8000


def test_every_documented_get_answers(client: Client) -> None:
    """Whatever the guide names with GET must not be a 404 route or a 405."""
    lines = [line.split()[1] for line in client.get("/llms.txt").text.splitlines() if line.startswith("GET ")]
    fill = {
        "name>/app.wasm": "app-name/app.wasm",
        "<name>": "claude",
        "<address>": "0x" + "ab" * 20,
        "<n>": "5",
    }
    assert len(lines) == 8
    for line in lines:
        path = "/" + line.split("/", 3)[3].replace("html|face", "face").replace(
            "<name>/app.wasm", "app-name/app.wasm"
        )
        for mark, value in fill.items():
            path = path.replace(mark, value)
        assert client.get(path).status_code == 200, path
