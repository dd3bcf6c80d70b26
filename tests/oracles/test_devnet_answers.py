"""The oracles on real answers of the bundled platform: clean it gives nothing, and its defects are seen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from random import Random
from typing import Any

import pytest

from fleet.drivers.desk import Question
from fleet.drivers.explore.origins import origins
from fleet.drivers.explore.web.attacks import questions
from fleet.drivers.explore.web.points import Point
from fleet.oracles import table
from fleet.oracles.model import Exchange, Facts
from fleet.personas.model import Step
from sandbox.pages import html
from sandbox.text import clean, mask
from tests.devnet.platform_server import Client, platform

PAGES = (
    "",
    "settings",
    "llms.txt",
    "skill.md",
    "client.js",
    "mark.svg",
    "api/status",
    "face/docs/",
    "nothing",
)
POINTS = (
    Point("{site}/face/docs/?q=moss", "query", "q", "moss"),
    Point("{site}/face/docs/greeting?of=moss", "query", "of", "moss"),
    Point("{site}/face/docs/", "path", "2", "docs"),
    Point("{site}/face/docs/app.wasm", "path", "2", "docs"),
    Point("{site}/api/app?name=docs&kind=face", "query", "kind", "face"),
    Point("{site}/api/persona?name=docs", "query", "name", "docs"),
    Point("{site}/api/estimate?bytes=32", "query", "bytes", "32"),
    Point("{site}/api/credit?address=0x00", "query", "address", "0x00"),
)


def result(client: Client, args: Mapping[str, Any]) -> dict[str, Any]:
    sent = {"origin": args["origin"]} if args.get("origin") else {}
    got = client.http.get(str(args["url"]).replace("{site}", client.url), headers=sent)
    said = got.text.replace("http://127.0.0.1/", f"{client.url}/")  # its public address, but for the port
    text, secrets = mask(said)
    kind = got.headers.get("content-type", "")
    return {
        "status": got.status_code,
        "content_type": kind,
        "bytes": len(got.content),
        "headers": dict(got.headers),
        "allow_origin": got.headers.get("access-control-allow-origin", ""),
        "location": got.headers.get("location", ""),
        "text": clean(text, 8_000),
        "secrets": list(secrets),
        "canary_executable": "html" in kind
        and html.read(got.text, str(args.get("canary", "")))[0].canary_executable,
    }


def asked(client: Client) -> Iterator[Question]:
    documents = [Step(tool="qa_fetch", args={"url": "{site}/" + path}) for path in PAGES]
    yield Question((*documents, *(Step(tool="qa_fetch", args={"url": point.url}) for point in POINTS)))
    yield from origins("{site}/api/status", [client.url], Random(1))
    for point in POINTS:
        yield from questions(point, Random(point.url))


def said(*defects: str) -> set[str]:
    found = set()
    with platform(*defects) as client:
        facts = Facts(site=client.url, proxy=client.url, face=client.url + "/face/{name}/", chain_id=31337)
        for question in asked(client):
            seen: list[Exchange] = []
            for step in question.steps:
                seen.append(Exchange("qa_fetch", step.args, result(client, step.args)))
                found |= {one.oracle for one in table.judge(seen, facts)}
    return found


def test_the_clean_platform_gives_nothing() -> None:
    assert said() == set()


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("defect", "oracles"),
    [
        ("script-in-face", {"script-injection"}),
        ("origin-prefix", {"foreign-origin"}),
        ("os-error-leak", {"trace"}),
        ("sponsor-key-exposed", {"secret"}),
        ("method-405", {"documented-route"}),
        ("confusing-copy", {"disagreement"}),
    ],
)
def test_a_seeded_defect_is_seen_by_its_oracle_alone(defect: str, oracles: set[str]) -> None:
    assert said(defect) == oracles
