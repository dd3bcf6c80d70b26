"""Skies of the long form: a platform, what befalls requests to it and to its node, and its planted defects.

All of it follows from one number.
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from fleet.chain.node.digest import metadata_key
from fleet.devnet.defects import ALL_IDS
from fleet.devnet.deploy import DEPLOYER
from fleet.devnet.node import invoke
from tests.acceptance.faulty_node import FaultyNode, before
from tests.platforms.bare import bare
from tests.platforms.front import Weather
from tests.platforms.full import full
from tests.platforms.profile import written
from tests.platforms.stand import NO_FRONTS, Stand, everywhere
from tests.platforms.test_any_platform import GUIDE

QUOTING = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>What errors mean</title>
</head>
<body>
<main>
<h1>What errors mean</h1>
<p>You have an error in your SQL syntax; check the manual that corresponds to your MySQL server version for
the right syntax to use near ''1''' at line 1: a quotation mark was not escaped.</p>
<p>ORA-01756: quoted string not properly terminated, and ERROR: unterminated quoted string at or near "'":
the same of other databases.</p>
<pre>Traceback (most recent call last):
  File "/srv/app.py", line 12, in view
    return rows[request.args["id"]]
KeyError: 'id'</pre>
<p>Permission denied (os error 13): a file that the server may not read.</p>
<p>Fatal error: Uncaught TypeError: Unsupported operand types in /var/www/html/index.php:7</p>
</main>
</body>
</html>
"""
"""A static page about errors, which has none."""
NODE = ("429", "retry-after", "-32005", "html", "header not found", "502", "cut", "lag")
MEASURED = frozenset(("latency-regression",))
"""What a bad way hides or feigns: late answers."""
EXPLORING = ("qa-security", "qa-fuzz", "qa-ux", "qa-perf")
"""Personas with explorers."""
WORLDS = ("calm", "bare", "disturbed", "planted")
"""In turn. All but the first have weather; the last is a disturbed devnet with planted defects."""


@dataclass(frozen=True, slots=True)
class Sky:
    """One stand, and the personas' explorers that ask there."""

    world: str
    web: Weather
    node: tuple[str, ...]
    """What befalls requests to the node; nothing when empty."""
    share: float
    """Of requests to the node."""
    quotes: bool
    planted: tuple[str, ...]
    exploring: tuple[str, ...]
    seed: int


def drawn(number: int, seed: int) -> Sky:
    """The sky of this number; those of one seed differ."""
    chance = random.Random(f"{seed}:{number}")
    world = WORLDS[number % len(WORLDS)]
    calm = world == "calm"
    web = Weather(
        delay_s=chance.choice((0.0, 0.05, 0.1)),
        jitter_s=0.05,
        bad=chance.choice((0.0, 0.02)),
        reset=chance.choice((0.0, 0.02)),
        limited=chance.choice((0.0, 0.05)),
        interim=chance.choice((0.0, 0.3)),
        blocks=chance.random() < 0.4,
        ban_s=chance.choice((0.0, 0.0, 2.0, 8.0)),
        seed=chance.randrange(1_000),
    )
    planted = chance.sample(sorted(ALL_IDS - MEASURED), 6) if world == "planted" else ()
    return Sky(
        world=world,
        web=Weather() if calm else web,
        node=() if calm else tuple(chance.sample(NODE, 4)),
        share=chance.choice((0.02, 0.05, 0.1)),
        quotes=calm or chance.random() < 0.5,
        planted=tuple(planted),
        exploring=tuple(chance.sample(EXPLORING, 2)),
        seed=chance.randrange(1_000),
    )


@asynccontextmanager
async def under(sky: Sky, folder: Path) -> AsyncIterator[Stand]:
    """Its platform, by way of its weather."""
    fronts = NO_FRONTS if sky.world == "calm" else everywhere(sky.web)
    async with AsyncExitStack() as stack:
        if sky.world == "bare":
            stand = await stack.enter_async_context(bare(folder, fronts=fronts, more=GUIDE))
        else:
            stand = await stack.enter_async_context(full(folder, fronts=fronts, defects=sky.planted))
        if sky.quotes:
            await _quote(stand, folder)
        if sky.node:
            faulty = FaultyNode(stand.rpc, share=sky.share, kinds=sky.node, seed=sky.seed)
            await stack.enter_async_context(before(faulty))
            profile = stand.data
            profile["chain"]["rpc"] = faulty.url
            stand.profile.write_text(written(profile), "utf-8")
        yield stand


async def _quote(stand: Stand, folder: Path) -> None:
    """A static page that quotes errors: a file and a link to it, or the page of a name."""
    if stand.name == "bare":
        (folder / "site" / "errors.html").write_text(QUOTING, "utf-8")
        index = folder / "site" / "index.html"
        link = '<p><a href="errors.html">What errors mean</a></p>\n</main>'
        index.write_text(index.read_text("utf-8").replace("</main>", link), "utf-8")
        return
    owned = await stand.rpc.view(stand.diamond, "idOfName", "docs")
    key = metadata_key("localharness.public.html")
    await invoke(stand.rpc, DEPLOYER, stand.diamond, "setMetadata", owned, key, QUOTING.encode())
