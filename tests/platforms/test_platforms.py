"""The stand itself: each platform has what it says, lacks what it says it lacks, and its profile agrees."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from fleet.chain.node.abi import TABLE
from fleet.devnet import artifact
from fleet.devnet.seeded_names import SEEDED_NAMES
from tests.platforms import bare, server
from tests.platforms.full import PARTS, without
from tests.platforms.profile import lessened
from tests.platforms.stand import Stand

pytestmark = [pytest.mark.anyio, pytest.mark.devnet]

PATHS = (
    "/",
    "/settings",
    "/llms.txt",
    "/skill.md",
    "/client.js",
    "/mark.svg",
    "/face/docs/",
    "/face/claude/",
    "/api/status",
    "/api/app?name=docs&kind=html",
    "/api/persona?name=docs",
    "/api/estimate?bytes=1",
    "/api/credit?address=0x" + "11" * 20,
)
CALL = "/v1beta/models/gemini-flash:generateContent"


async def statuses(stand: Stand) -> dict[str, int]:
    """What the platform answers to a look at each of its pages; a call without a token is 401."""
    async with httpx.AsyncClient(base_url=stand.web.url, trust_env=False, verify=False) as http:
        found = {path: (await http.get(path)).status_code for path in PATHS}
        return found | {CALL: (await http.post(CALL, json={})).status_code}


async def text(url: str) -> str:
    async with httpx.AsyncClient(trust_env=False, verify=False) as http:
        answer = await http.get(url)
    assert answer.status_code == 200
    return answer.text


async def test_the_full_devnet_answers_everything(full_stand: Stand) -> None:
    assert await statuses(full_stand) == dict.fromkeys(PATHS, 200) | {CALL: 401}
    assert set(full_stand.data["web"]) == {"site", "face", "proxy", "model", "auth_scope", "route"}
    assert full_stand.data["call_targets"] == ["claude", "docs"]
    assert {"command", "loader"} <= set(full_stand.data["compiler"])
    for standing in SEEDED_NAMES:
        assert await full_stand.rpc.view(full_stand.diamond, "isTaken", standing.name)
    assert await full_stand.entries() == []


LOST_PATHS = {
    "site": {"/", "/settings", "/llms.txt", "/skill.md", "/mark.svg", *PATHS[9:11]},
    "faces": {"/face/docs/", "/face/claude/"},
    "proxy": {"/api/status", *PATHS[11:], CALL},
    "credits": {PATHS[12]},
    "targets": {"/face/docs/", "/face/claude/", *PATHS[9:11]},
}
LOST_FUNCTIONS = {"credits": "CreditFacet", "main": "MainIdentityFacet"}


@pytest.fixture(params=PARTS)
async def reduced(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[tuple[str, Stand]]:
    async with without(request.param, tmp_path / "platform") as stand:
        yield request.param, stand


@pytest.mark.sampled(3)
async def test_a_devnet_without_a_part_is_without_it_and_with_the_rest(reduced: tuple[str, Stand]) -> None:
    part, stand = reduced
    gone = {path for path, status in (await statuses(stand)).items() if status == 404}
    assert gone == LOST_PATHS.get(part, set())
    lost = set()
    for function in ("creditOf", "claimDaily", "mainOf", "registerMain", "register", "submitFeedback"):
        if not await stand.offers(function):
            lost.add(function)
    facet = LOST_FUNCTIONS.get(part)
    names = {name.partition("(")[0] for name in artifact.load(facet).selectors()} if facet else set()
    assert lost == names & {"creditOf", "claimDaily", "mainOf", "registerMain"}
    assert await stand.rpc.view(stand.diamond, "isTaken", "docs") == (part != "targets")
    assert missing(stand.data) == {"credits": set(), "main": set()}.get(part, {part})


def missing(profile: dict[str, Any]) -> set[str]:
    """The parts that a profile does not have."""
    has = {
        "site": "site" in profile["web"],
        "faces": "face" in profile["web"],
        "proxy": "proxy" in profile["web"],
        "compiler": "compiler" in profile,
        "loader": "loader" in profile.get("compiler", {"loader": ""}),
        "targets": "call_targets" in profile,
        "calls": "proxy" not in profile["web"] or "route" in profile["web"],
        "metadata": "metadata" in profile,
        "codes": "compiler" not in profile or "no_entry_code" in profile["compiler"],
    }
    return {part for part, there in has.items() if not there}


async def test_documents_do_not_speak_of_what_is_gone(full_stand: Stand) -> None:
    whole = await text(full_stand.web.url + "/llms.txt")
    assert server.guide(whole, frozenset()) == whole
    words = {"faces": "/face/", "proxy": "/v1beta/", "credits": "/api/credit", "targets": '"docs"'}
    for part, word in words.items():
        assert word in whole
        assert word not in server.guide(whole, frozenset((part,)))
    assert "/api/status" not in server.guide(whole, frozenset(("proxy",)))
    assert "/api/status" in server.guide(whole, frozenset(("faces",)))


async def test_the_bare_platform_is_a_registry_a_log_and_three_pages(bare_stand: Stand) -> None:
    offered = {one.name for one in TABLE if await bare_stand.offers(one.name)}
    functions = {name.partition("(")[0] for facet in bare.FACETS for name in artifact.load(facet).selectors()}
    assert offered == (functions & {one.name for one in TABLE}) - bare.LEFT_OUT
    assert offered.isdisjoint({"creditOf", "claimDaily", "mainOf", "diamondCut", "owner", "clearFeedback"})
    assert (await bare_stand.rpc.view(bare_stand.diamond, "isTaken", "claude")) is False
    profile = bare_stand.data
    assert set(profile) == {"name", "chain", "web"}
    assert (set(profile["web"]), set(profile["chain"])) == ({"site"}, {"rpc", "id", "diamond"})
    found = await statuses(bare_stand)
    assert {path for path, status in found.items() if status == 200} == {"/", "/llms.txt"}
    assert bare_stand.diamond in await text(profile["web"]["site"] + "/llms.txt")
    assert await bare_stand.entries() == []


async def test_an_unknown_part_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="unknown parts: sight"):
        async with without("sight", tmp_path):
            raise AssertionError("it started")


def test_roles_that_point_at_what_is_gone_go_with_it() -> None:
    def profile() -> dict[str, Any]:
        roles = {"agent": "claude", "guide": "{site}/llms.txt", "status": "{proxy}/api/status"}
        roles["persona"] = "{site}/api/persona?name=docs"
        web = {"site": "http://s", "face": "http://s/{name}", "proxy": "http://p"}
        return {"call_targets": ["claude"], "web": web, "targets": roles, "facts": {"call_price_wei": 1}}

    def left(part: str) -> set[str]:
        return set(lessened(profile(), frozenset((part,)))["targets"])

    assert left("main") == {"agent", "guide", "status", "persona"}
    assert left("site") == {"agent", "status"}
    assert left("proxy") == {"agent", "guide", "persona"}
    assert left("targets") == {"guide", "status"}
    assert lessened(profile(), frozenset(("credits",)))["facts"] == {}
