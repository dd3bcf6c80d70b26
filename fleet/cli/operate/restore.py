"""`fleet backup restore`: check a backup, or put it in place of the state directory."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from fleet.app.archive import Manifest
from fleet.app.backup import JOURNAL, check_journal, check_place, difference, unpacked
from fleet.app.backup import restore as put_in_place
from fleet.cli.console import Json, make_app, put, run, state, who
from fleet.cli.operate.backup import asked
from fleet.clock import SystemClock
from fleet.config import load_fleet
from fleet.config.fleet import KeepSection
from fleet.runs.call.decision_file import NAME, Decision, DecisionFile
from fleet.store.location import store_place
from fleet.text import clean

app = make_app()
SHOWN = 10
"""Names of each kind that are printed."""


@app.command()
def restore(
    file: Annotated[Path, typer.Argument(help="A file that `fleet backup` wrote.")],
    check: Annotated[
        bool, typer.Option("--check", help="Only check it, and show what would change.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Move a state that is there aside.")] = False,
    keep_dial: Annotated[
        bool, typer.Option("--keep-dial", help="Restore the dial as it was; default: observe.")
    ] = False,
    key: Annotated[Path | None, typer.Option("--key", help="The key of a sealed backup.")] = None,
    as_json: Json = False,
) -> None:
    """Restore the state directory from a backup; no daemon may be running."""
    place = store_place(load_fleet().store, state())
    folder, secret = state(), key.absolute() if key else None

    keep, clock = load_fleet().keep, SystemClock()

    async def compare() -> dict[str, Any]:
        began = clock.monotonic()
        with unpacked(file, folder, secret, asked) as (unpacked_to, manifest):
            await check_place(manifest, place, file)
            changes = difference(unpacked_to, folder)
            await check_journal(unpacked_to)
        drill = _tried(file.name, folder, manifest, keep, clock.monotonic() - began)
        return {"restored": False, **manifest.model_dump(exclude={"files"}), **asdict(changes), **drill}

    async def put_back() -> dict[str, Any]:
        manifest, aside = await put_in_place(
            file, folder, place, SystemClock(), who(), force=force, keep_dial=keep_dial, key=secret, ask=asked
        )
        return {"restored": True, "old": aside, **manifest.model_dump(exclude={"files"})}

    data = run(compare if check else put_back)

    def text() -> None:
        print(clean(f"a backup of {data['at']}, {data['platform']}, version {data['version']}: whole"))
        if data["journal"] != JOURNAL:
            print(clean(f"journal: on {data['journal']}; that it is as old as the backup is not checked"))
        for why in data.get("beyond", ()):
            print(f"beyond: {why} ([keep] recovery_hours, loss_hours)")
        if data["restored"]:
            print("restored" + (f"; the state before it is in {data['old']}" if data["old"] else ""))
            return
        for key, words in (("new", "new"), ("changed", "other than here"), ("only_here", "moved aside")):
            print(f"{words}: {len(data[key])}")
            for name in data[key][:SHOWN]:
                print(f"  {clean(name)}")

    put(data, as_json=as_json, text=text)
    if data.get("beyond"):
        raise typer.Exit(1)


def _tried(name: str, folder: Path, manifest: Manifest, keep: KeepSection, took_s: float) -> dict[str, Any]:
    """What trying a backup came to, beside the times that it may take; on record where a fleet is."""
    clock = SystemClock()
    lost_h = (clock.now() - datetime.fromisoformat(manifest.at)).total_seconds() / 3_600
    late = []
    if took_s > 3_600 * keep.recovery_hours:
        late.append(f"it took {took_s / 3_600:.1f} hours, of {keep.recovery_hours:g}")
    if lost_h > keep.loss_hours:
        late.append(f"{lost_h:.1f} hours of work are not in it, of {keep.loss_hours:g}")
    drill = {"took_s": round(took_s, 3), "lost_hours": round(lost_h, 3), "beyond": late}
    one = Decision(
        f"{who()} tries to restore {name}",
        "rely on it, or make another",
        "whole, each sum and the journal checked; " + ("; ".join(late) or "within both times"),
        f"{took_s:.1f} s to unpack and check {len(manifest.files)} files, {lost_h:.1f} hours old",
        "fleet backup",
        charter="[keep] recovery_hours, loss_hours",
    )
    if (folder / NAME).exists():  # else a place that is to stay empty
        DecisionFile(folder, clock).record(one, run="none", turn=0)
    return drill
