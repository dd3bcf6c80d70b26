"""What the explorer of payments finds in generated tollhouses: each defect at each place, by seeds of its
own.

    make bench-payments [ARGS="--seed 1000 --clean 20 --only race,replayed"]

A defect is found when its kind is reported at the resource that has it, by one visit, without a proof. What
is reported at another resource of the same house, or of a clean one, is false. docs/bench/payments.md has the
first results.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from fleet.devnet.surfaces.tollhouse import DEFECTS, MESSAGE, TOOL, Tollhouse, served
from tests.drivers.pay_visits import PAYEE, Mint, door, minted, profile, visited, way_out

PLACES = 3
ORACLES: Mapping[str, str] = {
    **dict.fromkeys(DEFECTS[:6], "unpaid-service"),
    **dict.fromkeys(("replayed", "replayed-elsewhere", "race"), "payment-reused"),
    **dict.fromkeys(("settled-first", "settled-before-failure"), "payment-kept"),
    **dict.fromkeys(("price-differs", "body-differs", "payee-differs"), "payment-terms"),
    **dict.fromkeys(("document-differs", "card-differs", "list-differs"), "payment-terms"),
    **dict.fromkeys(("receipt-invented", "receipt-denies"), "payment-receipt"),
    "name-ignored": "payment-named",
}
"""The oracle that reports a defect."""


def look(mint: Mint, seed: int, defects: Mapping[str, int]) -> list[tuple[str, str]]:
    """Oracle and path of everything that one visit reports."""
    house = Tollhouse(mint.rpc.url, mint.token, PAYEE, seed, defects, mixed=True, wired=True)
    with served(house) as site:
        platform = profile(site, mint, house)
        with way_out(platform, door(platform, mint)):
            found, _, _ = visited(platform, seed=seed)
    return [(one.oracle, one.sighting.where.get("route", "").removeprefix("{site}")) for one in found]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1_000)
    parser.add_argument("--clean", type=int, default=20)
    parser.add_argument("--only", default="")
    chosen = parser.parse_args()
    named = chosen.only.split(",") if chosen.only else DEFECTS
    started, hit, missed, false = time.monotonic(), 0, list[str](), list[str]()
    with tempfile.TemporaryDirectory() as folder:
        for number, (defect, place) in enumerate((one, at) for one in named for at in range(PLACES)):
            seed = chosen.seed + number
            with minted(Path(folder) / str(number)) as mint:
                house = Tollhouse(
                    mint.rpc.url, mint.token, PAYEE, seed, {defect: place}, mixed=True, wired=True
                )
                found = look(mint, seed, {defect: place})
            one = house.sold[place]
            name = one.path.rsplit("/", 1)[-1]
            path = {TOOL: f"/mcp tool {name}", MESSAGE: "/a2a"}.get(one.wire, one.path)
            ok = (ORACLES[defect], path) in found
            hit += ok
            missed += [] if ok else [f"{defect} at {place}, seed {seed}"]
            false += [f"{defect} seed {seed}: {one}" for one in found if one[1] != path]
            print("found " if ok else "MISSED", defect, place, one.wire, seed, flush=True)
        for number in range(chosen.clean):
            with minted(Path(folder) / f"clean{number}") as mint:
                found = look(mint, chosen.seed + 500 + number, {})
            false += [f"clean seed {chosen.seed + 500 + number}: {one}" for one in found]
    all_of = len(named) * PLACES
    print(json.dumps({"found": hit, "of": all_of, "missed": missed, "false": false}))
    print(f"{hit}/{all_of}, {len(false)} false, {time.monotonic() - started:.0f} s")
    sys.exit(bool(false))


if __name__ == "__main__":
    main()
