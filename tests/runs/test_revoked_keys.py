"""Under STOP the keys of a run that hold nothing are destroyed; those that hold something are kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from fleet.runs.settlement.settle import revoke
from tests.runs.table import RUN, persona, seated

pytestmark = pytest.mark.anyio


async def test_only_keys_that_hold_something_outlive_a_stop(tmp_path: Path) -> None:
    async with seated(tmp_path, persona()) as table:
        wallet, journal = table.drive.runner.session.wallet, table.world.journal
        name, paid, sent = f"qa-{RUN}-1", "caller", "other"
        for label in (name, paid, sent, "caller-1", f"qa-{RUN}-2"):
            wallet.keys.new(label)
            await journal.intend(RUN, "key", label, {})
        await journal.intend(RUN, "name", name, {"owner": "0x1"})
        given_up = await journal.intend(RUN, "name", f"qa-{RUN}-2", {"owner": "0x2"})
        await journal.resolve(given_up, "released")
        await journal.intend(RUN, "tx", "0x3", {"role": "sponsor", "purpose": f"stipend {paid}"})
        await journal.intend(RUN, "tx", "0x4", {"role": "throwaway", "key": sent, "purpose": "call"})
        kept = await revoke(table.world, RUN, table.drive.runner.stream, wallet)
        assert sorted(kept) == sorted([name, paid, sent]) == wallet.keys.labels()
        states = {one.ref: one.state for one in await journal.effects(RUN, ["key"])}
        assert states == {
            **dict.fromkeys((name, paid, sent), "open"),
            **dict.fromkeys(("caller-1", f"qa-{RUN}-2"), "released"),
        }
        [told] = table.said("keys.revoked")
        assert (told.revoked, set(told.kept)) == (("caller-1", f"qa-{RUN}-2"), set(kept))
        await revoke(table.world, RUN, table.drive.runner.stream, wallet)
        assert wallet.keys.labels() == sorted(kept)
