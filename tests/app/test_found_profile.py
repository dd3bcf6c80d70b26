"""The profile of what was found: valid, each key explained, and a stranger's text stays in its comment."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fleet.app.discovery.profile import ProfileContext, profile_text
from fleet.config import Platform, parse
from fleet.config.authorisation import AuthorisationSection
from tests.app.test_discover import OPENAPI, found, site
from tests.sandbox.doubles import http_answer, json_answer

pytestmark = pytest.mark.anyio
WORD = AuthorisationSection(by="ada@office", on="2026-11-27", hosts=("example.org",))


async def test_a_profile_says_of_each_key_how_it_was_found_and_what_another_would_bring() -> None:
    pages = {"/openapi.json": json_answer(200, OPENAPI), "/llms.txt": http_answer(200, b"# Moss")}
    async with site(pages) as server:
        told = await found(f"{server.url}/start?a=1")
        text = profile_text(
            told, ProfileContext("x", "fleet look x\n[web]", "2026-11-27", AuthorisationSection())
        )
        read = parse(Platform, text, file="x")
        assert (read.web.site, read.web.act_paths) == (server.url, ())
        assert read.targets == {
            "start": "{site}/start?a=1",
            "description": "{site}/openapi.json",
            "guide": "{site}/llms.txt",
        }
        assert "# OpenAPI 3.1.0 'Pets [web] site = 1': 2 operations, 1 that read\ndescription =" in text
        assert "\x1b" not in text
        keys = [line for line in text.splitlines() if " = " in line and line[0] != "#"]
        above = [text.splitlines()[text.splitlines().index(line) - 1] for line in keys[1:]]
        assert all(line.startswith("# ") for line in above)
        acting = profile_text(
            told, ProfileContext("x", "fleet look x", "2026-11-27", WORD, gentle=True, exercise=True)
        )
        read = parse(Platform, acting, file="x")
        assert (read.web.act_paths, read.web.requests_per_second) == (("{site}/",), 5.0)
        assert read.authorisation == WORD
        assert read.hosts == {}  # this machine's own need no word
        away = replace(
            told, sites=tuple(replace(one, origin="https://example.org:8443") for one in told.sites)
        )
        context = ProfileContext("x", "fleet look x", "2026-11-27", WORD, gentle=True, exercise=True)
        read = parse(Platform, profile_text(away, context), file="x")
        [(host, one)] = read.hosts.items()
        assert (host, one.criticality, one.approved) == (
            "example.org:8443",
            "production",
            "ada@office, --exercise on 2026-11-27",
        )
        assert read.care.bars("https://example.org:8443/a") == ""
        assert read.care.bars("https://example.org/a")
