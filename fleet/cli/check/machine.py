"""`fleet check machine`: check this machine by behaviour, with a remedy for each failure."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from pathlib import Path
from time import time
from typing import Annotated, Any, Literal

import anyio
import typer

from fleet.app.bootstrap import SPOOL, image
from fleet.app.halts import record_halt
from fleet.app.journal import known_journal
from fleet.app.persona_sets import roster
from fleet.app.sbom import NAME, altered, other_versions, risks, shipped_parts
from fleet.app.storage import encrypted_by, stale_keys
from fleet.chain.keys import address_of, load_key
from fleet.chain.node.abi_file import read_functions
from fleet.chain.node.hexes import as_bytes
from fleet.chain.node.rpc import Rpc
from fleet.chain.signing import payment
from fleet.chain.signing.sponsor import in_force
from fleet.cli.console import Json, make_app, put, run, state, table
from fleet.cli.daemon_page import daemon_of
from fleet.clock import SystemClock
from fleet.config import Platform, key_file, load_fleet, load_platform
from fleet.config.files import beside, fetched, how_to_fetch
from fleet.config.parts import in_short, not_configured
from fleet.disk_reserve import room
from fleet.errors import FleetError, RpcError
from fleet.files import SHIPPED
from fleet.gate.dial import DIAL, read_dial
from fleet.gate.impact import reviewed
from fleet.gate.model import Rung
from fleet.gate.stop import fence_failed
from fleet.http_client import HttpFailure, open_client, send
from fleet.jail.battery.record import NEVER, outdated, read_record
from fleet.jail.battery.record import save as save_record
from fleet.jail.battery.report import try_fence
from fleet.jail.choice import left_over, open_jail, why_no_jail
from fleet.jail.locate import BROWSER, browser_rules
from fleet.jail.model import Image, Jail
from fleet.jail.toolcheck import try_browser, try_programs
from fleet.oracles.statistics import ranks
from fleet.runs.call.halt import Halt
from fleet.runs.settlement.lost_runs import keys_without_runs
from fleet.runs.survey import look_at, page_urls
from fleet.service.advisories import FOLDER, known_here
from fleet.store.location import shown, store_place
from fleet.text import counted
from sandbox.browser.devtools import installed

app = make_app()
Row = tuple[str, bool, str]
"""Name of a check, whether it is well, what was seen."""
REPORT_BYTES = 2_048
"""Most bytes of a report on the log."""
APART_S = 60.0
"""Seconds that this machine's clock may be off; a platform refuses a call token that is off by more."""
COIN = 10**18
"""Wei."""
Role = Literal["identity", "sponsor"]


@app.command()
def machine(
    platform: Annotated[
        str | None, typer.Option(help="Profile to check; default the configured one.")
    ] = None,
    fence: Annotated[
        bool,
        typer.Option("--fence", help="Run the escape battery instead and keep its record; a leak sets STOP."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Check jail, chain, pages, programs, keys, balances, journal, disk, clock, browser and personas."""
    data = examined(run(try_battery) if fence else run(lambda: examine(platform)))
    put(data, as_json=as_json, text=lambda: print_checks(data))
    if not data["ok"]:
        raise typer.Exit(4)


def examined(rows: Sequence[Row]) -> dict[str, Any]:
    """The checks as data, with the command to run next."""
    return {
        "ok": all(good for _, good, _ in rows),
        "checks": [dict(zip(KEYS, row, strict=True)) for row in rows],
        "next": upcoming(rows),
    }


def print_checks(data: Mapping[str, Any]) -> None:
    """A line for each check, the fences of a jail in one while they hold, and what to do next."""
    rows = [(one["check"], one["ok"], one["seen"]) for one in data["checks"]]
    held = counted(sum(name.startswith(INSIDE) and good for name, good, _ in rows), "fence")
    shown = [
        (name, "ok" if good else "NO", f"{seen}: {held} tried and held" if name == "jail" and good else seen)
        for name, good, seen in rows
        if not (name.startswith(INSIDE) and good)
    ]
    table(KEYS, shown)
    print(f"next: {data['next']}")


BATTERY = "escape battery"
FILES_NAMED = 5
"""Altered files that a line names."""
KEYS = ("check", "ok", "seen")
INSIDE = "jail: "
"""Begin of the names of what a jail's self-check tried: shown to a person only where it failed."""


async def examine(platform: str | None) -> list[Row]:
    """Every check, ordered so that the first failure explains the later ones."""
    rows: list[Row] = []
    first: dict[str, str] = {}
    for name, check in CHECKS.items():
        try:
            rows += await check(platform)
        except FleetError as error:
            said = f"{error}; try: {error.remedy}" if error.remedy else str(error)
            before = first.setdefault(said, name)
            rows.append((name, False, said if before == name else f"not looked at: see {before}"))
    return rows


async def state_directory(_: str | None) -> list[Row]:
    folder = state()
    info = folder.stat()
    private = info.st_uid == os.geteuid() and not info.st_mode & 0o077
    dial = read_dial(folder / DIAL)
    return [
        (
            "state directory",
            private,
            f"{folder}, mode {info.st_mode & 0o777:o}" + ("" if private else ": chmod 700"),
        ),
        ("dial", not dial.fault, f"{dial.rung}{': ' + dial.why if dial.why else ''}"),
    ]


async def personas(_: str | None) -> list[Row]:
    found, errors = roster()
    return [("personas", not errors, str(errors[0]) if errors else ", ".join(sorted(found)))]


async def jail(platform: str | None) -> list[Row]:
    section = load_fleet().jail
    if why := why_no_jail(section):
        return [("jail", False, why)]
    try:
        shown = image(*load_platform(platform or load_fleet().platform, state()))
    except FleetError:
        shown = Image()
    jail = open_jail(section, shown, pool=0, spool=_spool())
    try:
        tier = await jail.probe()
    finally:
        await jail.aclose()
    head: Row = ("jail", tier.ok, f"{tier.backend}, {tier.tier}")
    rows = [head, *((f"{INSIDE}{name}", good, seen) for name, good, seen in tier.checks)]
    left = await left_over(section)
    return [*rows, ("jail: containers", True, left)] if left else rows


async def battery(_: str | None) -> list[Row]:
    """What the escape battery showed when it was last run here, and whether that still counts."""
    config = load_fleet().jail
    if (record := read_record(state())) is None:
        return [(BATTERY, True, NEVER)]
    why = outdated(record, config, datetime.now(UTC))
    return [(BATTERY, record.holds and not why, why or record.words())]


async def impact(_: str | None) -> list[Row]:
    """How long ago a person read the table of what each call may do."""
    return [("classes of impact", True, reviewed(datetime.now(UTC).date()))]


async def try_battery() -> list[Row]:
    """Run the escape battery, a row for each attempt that did not hold; a leak sets STOP."""
    folder, clock = state(), SystemClock()
    record = await try_fence(load_fleet().jail, clock)
    save_record(folder, record)
    if record.failed:
        why = "; ".join(f"{name}: {seen}" for name, seen in record.failed.items())[:500]
        reading = fence_failed(folder, "battery", why, clock)
        await record_halt(folder, Halt("stop", "the fleet, whose battery failed", reading.why))
    bad = [(f"{BATTERY}: {name}", False, f"LEAKS: {seen}") for name, seen in record.failed.items()]
    bad += [(f"{BATTERY}: {name}", False, f"not tried: {seen}") for name, seen in record.untried.items()]
    return [(BATTERY, record.holds, record.words()), *bad]


def _make() -> Callable[[Image], Jail]:
    return partial(open_jail, load_fleet().jail, pool=0, spool=_spool())


def _spool() -> Path:
    spool = state() / SPOOL
    spool.mkdir(mode=0o700, exist_ok=True)
    return spool


async def programs(platform: str | None) -> list[Row]:
    """The compiler on the profile's sample, the loader on its module; no line for a platform without them."""
    profile, path = load_platform(platform or load_fleet().platform, state())
    tried = await try_programs(image(profile, path), profile.compiler.program, _make())
    return [(one.name, one.ok, ("could not look: " if one.ours else "") + one.seen) for one in tried]


async def browser(_: str | None) -> list[Row]:
    """Whether pages can be opened in a browser; without one, what needs it is not applicable."""
    program = installed()
    if not program:
        return [
            ("browser", True, f"none: pages are not opened in one (not applicable); to get it: {BROWSER}")
        ]
    rules = browser_rules(fetched())
    missing = f"no axe-core: accessibility is not judged; to get it: {how_to_fetch('axe-core')}"
    judged = "axe-core" if rules else missing
    jail = _make()(Image(guest="sandbox.browser.check"))
    try:
        seen = await try_browser(jail)
    finally:
        await jail.aclose()
    return [("browser", not seen, f"{seen or 'it starts in a jail'}: {program}, {judged}")]


async def store(_: str | None) -> list[Row]:
    place = store_place(load_fleet().store, state())
    kind = "SQLite" if isinstance(place, Path) else "PostgreSQL"
    journal = await known_journal(state())
    keys = sorted(folder.parent.name for folder in state().glob("runs/*/keys"))
    if journal is None:
        lost = f", but keys of {', '.join(keys)} exist: was it lost?" if keys else ""
        return [("store", not keys, f"{kind}, {shown(place)}: not created yet{lost}")]
    async with journal:
        faults = await journal.faults()
        seen = "; ".join(faults) + "; restore a backup" if faults else f"schema {await journal.get('schema')}"
        lost = ", ".join(await keys_without_runs(state(), journal))
        told = f"the journal does not know {lost}: was it lost? `fleet up` settles them" if lost else "none"
    return [("store", not faults, f"{kind}, {shown(place)}: {seen}"), ("keys without runs", not lost, told)]


async def disk(_: str | None) -> list[Row]:
    good, seen = room(state())
    crypt, keep = encrypted_by(state()), load_fleet().keep
    how = f"{crypt} (dm-crypt)" if crypt else "not by dm-crypt"
    stale = stale_keys(keep, datetime.now(UTC).date())
    renew = ": make new ones, fleet runs vault --reseal, and keep.keys_since"
    return [
        ("disk", good, seen if good else f"{seen}: no run starts; free space, fleet runs prune"),
        ("encryption of the disk", bool(crypt) or not keep.encrypted, how),
        ("keys of what is sealed", not stale, f"{stale}{renew}" if stale else "none is due"),
    ]


async def installation(_: str | None) -> list[Row]:
    """Whether the files are as the wheel had them, and the packages those of its bill of materials."""
    changed = altered()
    if changed is None:
        return [("installation", True, "a checkout: git says what was changed")]
    if changed:
        few = ", ".join(changed[:FILES_NAMED])
        why = f"{counted(len(changed), 'file')} not as in the wheel: {few}: install it anew"
        return [("installation", False, why)]
    others = other_versions(SHIPPED)
    seen = f"; {counted(len(others), 'package')} of another version than {NAME} has" if others else ""
    return [("installation", True, f"every file is as in the wheel{seen}")]


async def dependencies(_: str | None) -> list[Row]:
    """What is known of the packages here: vulnerabilities, and how risky the pins of the bill are."""
    good, seen = known_here(state() / FOLDER, datetime.now(UTC))
    rows = [("known vulnerabilities", good, seen)]
    found = risks(shipped_parts(SHIPPED), datetime.now(UTC).date())
    if found:
        worst = [
            f"{name} ({risk})" for name, risk in sorted(found.items(), key=lambda one: -one[1]) if risk > 5
        ]
        few = f": {', '.join(worst[:FILES_NAMED])}" if worst else ""
        told = f"{counted(len(worst), 'package')} of {len(found)} with a risk over 5 of 9{few}"
        rows.append(("dependencies", True, told))
    return rows


async def measurements(_: str | None) -> list[Row]:
    """Without the extra the fleet still works: latency is not applicable."""
    why = ranks.missing()
    return [("measurements", True, f"not applicable: {why}" if why else "latency is judged by ranks")]


def profile(name: str | None) -> Platform:
    """The profile of this name, or the configured one."""
    return load_platform(name or load_fleet().platform, state())[0]


async def target(name: str | None) -> list[Row]:
    """The node, its chain and the diamond, as the profile has them; and what each missing part costs."""
    found, path = load_platform(name or load_fleet().platform, state())
    async with Rpc(found.chain.rpc) as rpc:
        await rpc.check_target(found)
    if found.chain.abi:
        read_functions(beside(path, found.chain.abi))
    missing = [(name, True, why) for name, why in not_configured(found).items()]
    return [("platform", True, f"{found.name}: {in_short(found)} ({path})"), *missing]


async def pages(name: str | None) -> list[Row]:
    """Site, faces and proxy, as far as the profile names them."""
    looks = [await look_at(part, url) for part, url in page_urls(profile(name)).items() if url]
    return [(one.part, not one.is_bad, one.seen) for one in looks]


async def keys(name: str | None) -> list[Row]:
    """Whether the keys can be read, and only by this user; nothing is signed without a contract."""
    platform, config = profile(name), load_fleet()
    if not platform.signs:
        return [("keys", True, "not configured: nothing is signed without chain.diamond or a log on chain")]
    load_key(key_file(config, "identity", state()))
    if not platform.chain.diamond:
        return [("keys", True, "identity is readable, and only by this user")]
    load_key(key_file(config, "sponsor", state()))
    return [("keys", True, "identity and sponsor are readable, and only by this user")]


async def balances(name: str | None) -> list[Row]:
    """Whether each key can pay for one act of its own at the node's price of gas."""
    platform, config = profile(name), load_fleet()
    gas: dict[Role, int] = {}
    if platform.signs:
        gas["identity"] = platform.gas.feedback_base + REPORT_BYTES * platform.gas.feedback_per_byte
    if platform.chain.diamond:
        gas["sponsor"] = platform.gas.register_name
    if not gas:
        return []
    posts, acts = platform.logs_on_chain, read_dial(state() / DIAL).rung is not Rung.OBSERVE
    needed, rows = {"identity": posts, "sponsor": acts}, []
    async with Rpc(platform.chain.rpc) as rpc:
        price = int(await rpc.call("eth_gasPrice"), 16)
        for role, limit in gas.items():
            address = address_of(load_key(key_file(config, role, state())))
            held = await rpc.balance(address)
            rows.append(_balance(role, address, held, limit * price, needed=needed[role]))
            if role == "sponsor" and platform.sponsor.mode == "sponsored":
                seen = await in_force(rpc, platform.sponsor.mode, address)
                rows.append(("throwaway keys", True, seen))
    return rows


async def purse(name: str | None) -> list[Row]:
    """Whether the purse can pay, holds no more than it may, and signs for the token that is there."""
    platform, limits = profile(name), profile(name).payments
    if not limits.resources:
        return []
    address = address_of(load_key(key_file(load_fleet(), "purse", state())))
    async with Rpc(platform.chain.rpc) as rpc:
        asked = [payment.balance(limits, address), payment.separator(limits)]
        balance, separator = await rpc.batch(asked)
    words = [None if isinstance(one, RpcError) else as_bytes(one) for one in (balance, separator)]
    if words[0] is None or len(words[0]) != 32:
        return [("purse", False, f"payments.asset, {limits.asset}, says no balance: it is not a token")]
    if words[1] and words[1] != payment.domain(limits, platform.chain.id):
        why = "its domain (EIP-712) is another: see its name() and version()"
        return [
            ("purse", False, f"payments.name and payments.version are not those of {limits.asset}: {why}")
        ]
    held = int.from_bytes(words[0])
    seen = f"{address} holds {held} units; payments.holds is {limits.holds}"
    if held > limits.holds:
        return [("purse", False, f"{seen}: nothing is signed until some are taken out")]
    if held < limits.most:
        return [("purse", False, f"{seen}: send it {limits.most} units or more of {limits.asset}")]
    return [("purse", True, seen)]


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
    seen: list[tuple[str, float]] = []  # each other clock and how far ours is after it
    if (site := await _date(platform.web.site)) is not None:
        seen.append(("the site's", time() - site))
    if platform.chain.rpc:
        async with Rpc(platform.chain.rpc) as rpc:
            block = await rpc.call("eth_getBlockByNumber", ["latest", False])
        if (behind := int(block["timestamp"], 16) - time()) > 0:
            seen.append(("the newest block's", -behind))  # only what is sure to be wrong of it
    worst = max((abs(off) for _, off in seen), default=0.0)
    words = ", ".join(f"{abs(off):.0f} s {'before' if off < 0 else 'after'} {who}" for who, off in seen)
    told = words or "there is no clock to compare with"
    return [("clock", worst <= APART_S, told if worst <= APART_S else f"{told}: set the time (NTP)")]


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


CHECKS: dict[str, Callable[[str | None], Awaitable[list[Row]]]] = {
    "jail": jail,
    BATTERY: battery,
    "classes of impact": impact,
    "platform": target,
    "pages": pages,
    "programs": programs,
    "keys": keys,
    "balances": balances,
    "purse": purse,
    "store": store,
    "disk": disk,
    "clock": clock,
    "browser": browser,
    "state directory": state_directory,
    "personas": personas,
    "measurements": measurements,
    "installation": installation,
    "dependencies": dependencies,
}
"""What no run can do without comes first; a later check may fail for an earlier one's reason."""


def upcoming(rows: Sequence[Row]) -> str:
    """The command to run next."""
    bad = {name for name, good, _ in rows if not good}
    if bad:
        return "fleet check machine, once the first NO is put right"
    if daemon_of(state()):
        return "fleet status"
    known = any(name == "store" and "not created yet" not in seen for name, _, seen in rows)
    return "fleet up --dry-run, then fleet up" if known else "fleet run qa-smoke --dry-run, then without it"
