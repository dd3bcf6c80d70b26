"""What `fleet doctor` asks of a platform and its chain: target, pages, both balances, clocks."""

from __future__ import annotations

from collections.abc import AsyncIterator
from email.utils import parsedate_to_datetime
from time import time
from typing import Literal

import anyio

from fleet.chain.keys import address_of, load_key
from fleet.chain.node.rpc import Rpc
from fleet.cli.console import state
from fleet.config import Platform, key_file, load_fleet, load_platform
from fleet.gate.dial import DIAL, read_dial
from fleet.gate.model import Rung
from fleet.http_client import HttpFailure, open_client, send
from fleet.runs.survey import look_at, page_urls

Row = tuple[str, bool, str]
"""Name of a check, whether it is well, what was seen."""
REPORT_BYTES = 2_048
"""Most bytes of a report on the log."""
APART_S = 60.0
"""Seconds that this machine's clock may be off; a platform refuses a call token that is off by more."""
COIN = 10**18
"""Wei."""
Role = Literal["identity", "sponsor"]


def profile(name: str | None) -> Platform:
    """The profile of this name, or the configured one."""
    return load_platform(name or load_fleet().platform, state())[0]


async def target(name: str | None) -> list[Row]:
    """The node, its chain and the diamond, as the profile has them."""
    found, path = load_platform(name or load_fleet().platform, state())
    async with Rpc(found.chain.rpc) as rpc:
        await rpc.check_target(found)
    return [("platform", True, f"{found.name}: chain {found.chain.id} at {found.chain.rpc} ({path})")]


async def pages(name: str | None) -> list[Row]:
    """Site, faces and proxy; what the profile leaves out is fine."""
    looks = [await look_at(part, url) for part, url in page_urls(profile(name)).items()]
    return [(one.part, not one.is_bad, one.seen) for one in looks]


async def keys(_: str | None) -> list[Row]:
    """Whether both keys can be read, and only by this user."""
    config = load_fleet()
    load_key(key_file(config, "identity", state()))
    load_key(key_file(config, "sponsor", state()))
    return [("keys", True, "identity and sponsor are readable, and only by this user")]


async def balances(name: str | None) -> list[Row]:
    """Whether each key can pay for one act of its own at the node's price of gas."""
    platform, config = profile(name), load_fleet()
    gas: dict[Role, int] = {
        "identity": platform.gas.feedback_base + REPORT_BYTES * platform.gas.feedback_per_byte,
        "sponsor": platform.gas.register_name,
    }
    posts, acts = platform.chain.log == "chain", read_dial(state() / DIAL).rung is not Rung.OBSERVE
    needed, rows = {"identity": posts, "sponsor": acts}, []
    async with Rpc(platform.chain.rpc) as rpc:
        price = int(await rpc.call("eth_gasPrice"), 16)
        for role, limit in gas.items():
            address = address_of(load_key(key_file(config, role, state())))
            held = await rpc.balance(address)
            rows.append(_balance(role, address, held, limit * price, needed=needed[role]))
    return rows


def _balance(role: Role, address: str, held: int, cost: int, *, needed: bool) -> Row:
    act = "a report" if role == "identity" else "a name"
    seen = f"{address} has {held / COIN:.6g} coins"
    if held >= cost:
        return (f"balance of {role}", True, f"{seen}; {act} costs at most {cost / COIN:.2g}")
    why = f"{seen}, {act} may cost {cost / COIN:.2g}: send it funds"
    unused = "nothing is posted on chain" if role == "identity" else "not needed while the dial is at observe"
    return (f"balance of {role}", not needed, why if needed else f"{why}; {unused}")


async def clock(name: str | None) -> list[Row]:
    """This machine's clock beside the site's, and beside the newest block, which is never of the future."""
    platform = profile(name)
    seen = [one async for one in _clocks(platform)]
    worst = max((abs(off) for _, off in seen), default=0.0)
    words = ", ".join(f"{abs(off):.0f} s {'before' if off < 0 else 'after'} {who}" for who, off in seen)
    told = words or "there is no clock to compare with"
    return [("clock", worst <= APART_S, told if worst <= APART_S else f"{told}: set the time (NTP)")]


async def _clocks(platform: Platform) -> AsyncIterator[tuple[str, float]]:
    """Each other clock and how far ours is after it; only what is sure to be wrong of a block's."""
    if (site := await _date(platform.web.site)) is not None:
        yield "the site's", time() - site
    async with Rpc(platform.chain.rpc) as rpc:
        block = await rpc.call("eth_getBlockByNumber", ["latest", False])
    if (behind := int(block["timestamp"], 16) - time()) > 0:
        yield "the newest block's", -behind


async def _date(url: str) -> float | None:
    """The Date of an answer in Unix seconds; None without one."""
    if not url:
        return None
    try:
        with anyio.fail_after(APART_S / 6):
            async with open_client(url) as client:
                headers = (await send(client, "GET", url, b"", {}, limit=0))[1]
        return parsedate_to_datetime(headers["date"]).timestamp()
    except (HttpFailure, TimeoutError, KeyError, ValueError):
        return None
