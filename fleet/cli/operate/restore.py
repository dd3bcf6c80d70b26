"""`fleet backup restore`: check a backup, or put it in place of the state directory."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from fleet.app.backup import JOURNAL, check_journal, check_place, difference, unpacked
from fleet.app.backup import restore as put_in_place
from fleet.cli.console import Json, make_app, put, run, state, who
from fleet.cli.operate.backup import asked
from fleet.clock import SystemClock
from fleet.config import load_fleet
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

    async def compare() -> dict[str, Any]:
        with unpacked(file, folder, secret, asked) as (unpacked_to, manifest):
            await check_place(manifest, place, file)
            changes = difference(unpacked_to, folder)
            await check_journal(unpacked_to)
        return {"restored": False, **manifest.model_dump(exclude={"files"}), **asdict(changes)}

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
        if data["restored"]:
            print("restored" + (f"; the state before it is in {data['old']}" if data["old"] else ""))
            return
        for key, words in (("new", "new"), ("changed", "other than here"), ("only_here", "moved aside")):
            print(f"{words}: {len(data[key])}")
            for name in data[key][:SHOWN]:
                print(f"  {clean(name)}")

    put(data, as_json=as_json, text=text)
