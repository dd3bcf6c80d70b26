"""Plain random exploration: the fleet's tools and oracles, without its explorers, probes and jails.

What it asks is drawn from what the documents name (paths, parameters, words) and a list of edge values; what
it is answered is judged by the same oracles. Nothing is proven, minimised or remembered.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import quote, urlsplit

from bench.findings.fleet_rounds import FinderOutcome
from bench.findings.rules import EvidenceCall, Posted
from fleet.chain.keys import address_of, auth_token
from fleet.config import Platform, parse
from fleet.devnet.devnet import COMPILER
from fleet.oracles.model import Exchange, Facts
from fleet.oracles.table import judge
from fleet.runs.call.wallet import SPREAD_S
from sandbox.chain.contract import VIEWS
from tests.devnet.probing import Keys, ProbingSession
from tests.platforms.stand import Stand

EDGES = (
    "",
    "'",
    '"',
    "\0",
    "-1",
    "0",
    "4294967296",
    "18446744073709551616",
    "é",
    "%",
    "[",
    "../../etc/passwd",
    "//evil.test/",
    "https://evil.test/",
    "{{7919*6841}}",
    "<script>qacanary</script>",
    '" onfocus="qacanary',
    "a" * 300,
    "a" * 2000,
)
ORIGINS = ("https://evil.test", "null", "http://127.0.0.1.evil.test", "http://localhost.evil.test")
_LINK = re.compile(r"""(?:href|src|action)=["']([^"'#]+)|(?:GET |https?://[^/\s]+)(/[^\s`|<>")]*)""")
_WORDS = re.compile(r"`([a-z][^`\n]{1,60})`|; ([a-z][a-z ]{2,40})")


class SignedKeys(Keys):
    """Throwaway keys that sign for any platform."""

    scope = ""

    async def token(self, key: str, route: str, age: int = 0) -> dict[str, Any]:
        """As the fleet's wallet gives them: no two of a key are of the same second."""
        secret, now = self.secrets[key], int(time.time())
        given = self.__dict__.setdefault("stamps", {}).setdefault(key, dict[int, int]())
        stamp = now - age if age else min(range(now, now - SPREAD_S, -1), key=lambda at: given.get(at, 0))
        given[stamp] = max(given.values(), default=0) + 1
        token = auth_token(self.scope, secret, stamp, route)
        return {"token": token, "address": address_of(secret)}


@dataclass(frozen=True, slots=True)
class Chance:
    """A finder that asks at random, as many calls as it is given."""

    calls: int
    seed: int = 1

    async def observe(self, folder: Path, stand: Stand) -> FinderOutcome:  # noqa: ARG002  the port's
        """Ask, judge each answer, and report each violation once."""
        platform = parse(Platform, stand.profile.read_text("utf-8"), file=str(stand.profile))
        keys = SignedKeys(stand.rpc)
        keys.scope = platform.web.auth_scope
        await stand.rpc.call("anvil_autoImpersonateAccount", [True])
        session = ProbingSession(platform, keys, (sys.executable, "-I", "-B", str(COMPILER / "rustlite")))
        asking, facts, outcome = (
            _Asking(platform, Random(f"chance/{self.seed}")),
            Facts.of(platform),
            FinderOutcome(),
        )
        started, seen = time.monotonic(), set[tuple[str, str]]()
        for _ in range(self.calls):
            tool, args = asking.next()
            result = (await session.call(tool, args)).result
            asking.learn(result)
            outcome.calls += 1
            for one in judge([Exchange(tool, args, result)], facts):
                key = (one.oracle, one.sighting.signature)
                if key in seen:
                    continue
                seen.add(key)
                outcome.first_s = outcome.first_s or time.monotonic() - started
                outcome.items.append(
                    Posted(title=one.sighting.title, calls=(EvidenceCall(tool, args, result),))
                )
        outcome.seconds = time.monotonic() - started
        return outcome


class _Asking:
    """Draws the next call from what was read so far."""

    def __init__(self, platform: Platform, chance: Random) -> None:
        self._platform, self._chance = platform, chance
        web = platform.web
        faces = [web.face.replace("{name}", name) for name in platform.call_targets if web.face]
        self._urls = [url for url in (f"{web.site}/", f"{web.site}/llms.txt", *faces) if web.site]
        self._words = ["help", "hello"]

    def next(self) -> tuple[str, dict[str, Any]]:
        """A tool and its arguments."""
        tools = ["qa_fetch"] * 6 * bool(self._urls) + ["qa_chain"]
        web = self._platform.web
        tools += ["qa_call"] * 3 if web.proxy and self._platform.call_targets and not web.unstated else []
        return {"qa_fetch": self._page, "qa_call": self._call, "qa_chain": self._view}[
            self._chance.choice(tools)
        ]()

    def learn(self, result: Mapping[str, Any]) -> None:
        """Take links and words from an answer."""
        text, site = f"{result.get('text', '')} {result.get('reply', '')}", self._platform.web.site
        for found in _LINK.finditer(text):
            path = urlsplit(found[1] or found[2]).path
            if path.startswith("/") and site and site + path not in self._urls and len(self._urls) < 300:
                self._urls.append(site + path)
                query = urlsplit(found[1] or found[2]).query
                self._urls += [f"{site}{path}?{query}"] if query else []
        for found in _WORDS.finditer(text):
            word = (found[1] or found[2]).strip()
            if word not in self._words and len(self._words) < 300:
                self._words.append(word)

    def _page(self) -> tuple[str, dict[str, Any]]:
        url, chance = self._chance.choice(self._urls), self._chance
        edge = chance.choice(EDGES)
        if "=" in url and chance.random() < 0.7:
            names = re.findall(r"[?&]([^=&]+)=", url)
            chosen = chance.choice(names)
            url = re.sub(rf"([?&]{re.escape(chosen)}=)[^&]*", lambda one: one[1] + quote(edge, safe=""), url)
        args: dict[str, Any] = {"url": url, "canary": "qacanary"}
        return "qa_fetch", args | ({"origin": chance.choice(ORIGINS)} if chance.random() < 0.3 else {})

    def _call(self) -> tuple[str, dict[str, Any]]:
        chance = self._chance
        words = chance.choice(self._words) + (f" {chance.choice(EDGES)}" if chance.random() < 0.4 else "")
        target = chance.choice(self._platform.call_targets)
        args: dict[str, Any] = {"target": target, "message": words, "stream": chance.random() < 0.4}
        if chance.random() < 0.2:
            args["claim_from"] = "0x00000000000000000000000000000000000051de"
        elif chance.random() < 0.2:
            args["raw"] = chance.choice(("{", '{"contents": []}', "[]", "null"))
        return "qa_call", args

    def _view(self) -> tuple[str, dict[str, Any]]:
        name = self._chance.choice(sorted(VIEWS))
        values = {"uint256": ["0", "1", str(2**255)], "string": ["", *self._platform.call_targets, "a" * 100]}
        drawn = [self._chance.choice(values.get(kind, ["0x" + "00" * 20])) for kind in VIEWS[name].takes]
        return "qa_chain", {"function": name, "args": drawn}
