"""`fleet check posture`, over a journal that a real watch has written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from typer.testing import CliRunner

from fleet.app.status import gather
from fleet.chain.node.rpc import Rpc
from fleet.cli.check import posture
from fleet.cli.operate.status_page import page
from fleet.config.platform import ChainSection, Platform
from fleet.config.watch import WatchSection
from fleet.devnet import node
from fleet.devnet.anvil import Anvil
from fleet.devnet.surfaces.posture import encoded, owned_by
from fleet.store.journal import Journal
from fleet.triage.outputs.document import WorklistDocument
from fleet.triggers.chain.posture_watch import PostureWatch
from tests.doubles.triggers import FiringRecorder
from tests.triggers.watched import watched

pytestmark = pytest.mark.devnet

ANN, BEN, EVE = ("0x" + one * 20 for one in ("a1", "b2", "e3"))


def test_posture_and_changes_are_shown_and_one_is_announced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path))

    def said(*words: str) -> dict[str, Any]:
        done = CliRunner().invoke(posture.app, [*words, "--json"])
        assert done.exit_code == 0, done.output
        return dict(json.loads(done.stdout))

    assert "nothing was watched" in str(CliRunner().invoke(posture.app, []).exception)

    async def life() -> str:
        async with Anvil(tmp_path / "chain.json") as anvil, Rpc(anvil.url) as rpc:
            sender = (await rpc.call("eth_accounts"))[0]
            contract = await watched(rpc, sender)
            await node.transact(rpc, sender, contract, encoded(owned_by(ANN)))
            chain, section = ChainSection(rpc=rpc.url, id=31337), WatchSection(contracts=(contract,))
            profile = Platform(name="devnet", chain=chain, watch=section, log="file")
            async with await Journal.open(tmp_path / "fleet.db") as journal:
                watch = PostureWatch(profile, rpc, journal, FiringRecorder(), lambda _: ())
                await watch.look()
                await node.transact(rpc, sender, contract, encoded(owned_by(BEN)))
                await watch.look()
                words = ("--announce", f"{contract} owner {EVE}", "--reason", "ticket 7")
                await anyio.to_thread.run_sync(lambda: said(*words))
                await node.transact(rpc, sender, contract, encoded(owned_by(EVE)))
                await watch.look()
                data = await gather(tmp_path, "2020-01-01T00:00:00Z", {}, WorklistDocument())
                assert [one["number"] for one in data["posture"]] == [2, 1]
                lines = [one.text for one in page(data, width=400, height=60)]
                shown = f"posture   block 3, silent: {contract} owner: {ANN} → {BEN}"
                assert any(text == shown for text in lines), lines
            return contract

    contract = anyio.run(life)
    data = said()
    assert data["parts"][f"{contract} owner"] == EVE
    assert [(one["number"], one["after"], one["judged"], one["by"]) for one in data["changes"]] == [
        (2, EVE, "announced", "a person (ticket 7)"),
        (1, BEN, "silent", ""),
    ]
    assert [one["part"] for one in data["announced"]] == [f"{contract} owner {EVE}"]
    assert said("--after", "1")["parts"][f"{contract} owner"] == BEN
    text = CliRunner().invoke(posture.app, []).stdout
    assert f"{contract} owner\t{ANN} → {BEN}" in text
    assert "(ticket 7)" in text
    for words, why in (
        (("--after", "3"), "there is no change 3"),
        (("--announce", "x y"), "needs a reason"),
        (("--announce", "owner", "--reason", "x"), "is not a part"),
        (("--announce", "x y", "--reason", "x", "--for", "soon"), "is not a duration"),
    ):
        assert why in str(CliRunner().invoke(posture.app, list(words)).exception)
