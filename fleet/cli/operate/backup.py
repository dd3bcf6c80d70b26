"""`fleet backup`: a consistent copy of the state directory in one file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from fleet.app.backup import back_up, dump_line
from fleet.app.sealed import create_key, public_of
from fleet.cli.console import Json, make_app, note, put, run, state, who
from fleet.clock import SystemClock
from fleet.config import load_fleet
from fleet.runs.call.decision_file import Decision, DecisionFile
from fleet.store.location import store_place
from fleet.text import counted

app = make_app(
    group=True,
    default="write",
    default_takes=True,
    lazy={"restore": ("operate.restore", "Restore the state directory from a backup, or only check one.")},
)


@app.callback()
def _group() -> None:
    """Write a backup of the state directory: fleet backup FILE; check or restore one."""


def asked() -> str:
    """The passphrase of a key, typed by a person and not shown."""
    return str(typer.prompt("passphrase of the key", hide_input=True))


@app.command("key")
def make_key(
    file: Annotated[Path, typer.Argument(help="Where to write it, mode 0600; keep it elsewhere than here.")],
    passphrase: Annotated[
        bool,
        typer.Option("--passphrase", help="Ask for one: what runs found is opened with such a key only."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Make or read the age key of sealed backups; its public half is `[keep] sealed_for` in fleet.toml."""
    path = file.absolute()
    if path.exists():
        public = public_of(path, asked)
    else:
        word = typer.prompt("passphrase", hide_input=True, confirmation_prompt=True) if passphrase else ""
        public = create_key(path, word)
        made = Decision(
            f"{who()} makes a key for what is sealed",
            "keep the present one, or make another",
            public,
            "keep.sealed_for, second_for or escrow",
            "nothing uses it until fleet.toml names it",
            charter="the operator's",
        )
        DecisionFile(state(), SystemClock()).record(made, run="none", turn=0)
    put({"file": str(file), "sealed_for": public}, as_json=as_json, text=lambda: print(public))


@app.command("write")
def write_backup(
    file: Annotated[Path, typer.Argument(help="The tar to write, mode 0600; never overwritten.")],
    without_keys: Annotated[
        bool, typer.Option("--without-keys", help="Leave out the folder of keys.")
    ] = False,
    all_runs: Annotated[
        bool, typer.Option("--all-runs", help="Also folders of runs that owe nothing and found nothing.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Write a backup of the state directory; a daemon may be running."""
    folder, config = state(), load_fleet()
    place = store_place(config.store, folder)

    async def work() -> dict[str, Any]:
        made = await back_up(
            folder, file.absolute(), config, place, SystemClock(), keys=not without_keys, all_runs=all_runs
        )
        return {"file": str(file), "files": len(made.files), **made.model_dump(exclude={"files"})}

    data = run(work)
    made = Decision(
        f"{who()} writes a backup",
        "go without, or write one",
        f"{file.name}, {counted(data['files'], 'file')}",
        "what is older than keep.loss_hours is lost with this machine",
        "remove the file",
        charter="[keep] loss_hours",
    )
    DecisionFile(folder, SystemClock()).record(made, run="none", turn=0)
    if not isinstance(place, Path):
        note(f"the journal is on {data['journal']} and not in it: dump it before each backup")
        note(dump_line(place, file))
    keys = "" if data["keys"] else ", without keys"
    put(data, as_json=as_json, text=lambda: print(f"wrote {file}: {counted(data['files'], 'file')}{keys}"))
