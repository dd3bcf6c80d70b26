"""`fleet runs vault`: the credentials that runs found, for whoever has the key."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from fleet.app.halts import record_vault
from fleet.app.sealed import opened
from fleet.cli.console import Json, make_app, put, run, state, table, who
from fleet.cli.operate.backup import asked
from fleet.clock import SystemClock
from fleet.config import load_fleet
from fleet.errors import ConfigError, UsageError
from fleet.runs.vault import SealedCredential, Vault
from fleet.text import clean, counted

app = make_app()


@app.command()
def vault(
    name: Annotated[str, typer.Argument(help="Open or destroy this one; default: list all.")] = "",
    key: Annotated[
        list[Path] | None,
        typer.Option(
            help="The key of `[keep] sealed_for`, under a passphrase; and again that of `second_for`."
        ),
    ] = None,
    reseal: Annotated[
        bool,
        typer.Option("--reseal", help="Seal all anew for the keys of fleet.toml: after a change of them."),
    ] = False,
    reason: Annotated[str, typer.Option(help="Why: it is kept with who asks.")] = "",
    destroy: Annotated[
        bool, typer.Option("--destroy", help="Destroy it, or without a name all; a record of it is left.")
    ] = False,
    as_json: Json = False,
) -> None:
    """List the credentials that runs found, open one, or destroy them.

    The fleet cannot read them: the key's file and its passphrase do. Who opens or destroys one, when and why
    is on record before it is done."""
    here = Vault(state(), "", SystemClock())
    known = [one for one in here.known() if name in ("", one.name)]
    if name and not known:
        raise UsageError(f"no credential {name!r} is kept", remedy="fleet runs vault")
    if not (destroy or reseal or name):
        rows = [asdict(one) for one in known]
        heads = ("name", "at", "level", "kind", "persons", "place", "run")
        cells = ([str(row[head]) for head in heads] for row in rows)
        put(rows, as_json=as_json, text=lambda: table(heads, cells, empty="no credential is kept"))
        return
    if not reason:
        raise UsageError("say why", remedy='--reason "what it is needed for"')
    if destroy:
        _record(f"destroys {counted(len(known), 'credential')}", reason)
        record = here.destroy([one.name for one in known], who(), reason)
        data = {"destroyed": len(known), "record": str(record or "")}
        put(
            data,
            as_json=as_json,
            text=lambda: print(f"destroyed {len(known)}: {record or 'there were none'}"),
        )
        return
    if not key:
        raise UsageError("say which key", remedy="--key FILE")
    if reseal:
        keep = load_fleet().keep
        now = Vault(state(), keep.sealed_for, SystemClock(), second=keep.second_for, escrow=keep.escrow)
        plain = {one.name: _value(here, one, key) for one in known}
        _record(f"seals {counted(len(plain), 'value')} anew for the keys of fleet.toml", reason)
        for each, text in plain.items():
            now.reseal(each, text)
        put({"resealed": len(plain)}, as_json=as_json, text=lambda: print(f"sealed anew: {len(plain)}"))
        return
    value = _value(here, known[0], key)
    _record(f"opens the credential {name} ({known[0].kind} at {known[0].place})", reason)
    if sys.stdout.isatty():  # a stranger's text: no terminal reads it as commands
        print(clean(value.decode("utf-8", "replace"), len(value), newlines=True))
    else:
        sys.stdout.buffer.write(value + b"\n")


def _value(vault: Vault, one: SealedCredential, keys: list[Path]) -> bytes:
    """What was sealed, by both keys where it was sealed for two persons. ConfigError, UsageError."""
    if len(keys) < one.persons:
        raise UsageError("it was sealed for two persons", remedy="--key FILE --key FILE of the other one")
    value = vault.sealed(one.name) or b""
    for key in reversed(keys[: one.persons]):
        value = opened(value, key.absolute(), asked)
    return value


def _record(act: str, why: str) -> None:
    if failed := run(lambda: record_vault(state(), act, who(), why)):
        raise ConfigError(f"it cannot be put on record: {failed}", remedy="mend the journal first")
