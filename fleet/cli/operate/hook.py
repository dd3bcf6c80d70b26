"""`fleet service hook list|new|send`: webhooks, and a test delivery by hand."""

from __future__ import annotations

import secrets
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from fleet.app.persona_sets import roster
from fleet.chain.keys import write_new
from fleet.cli.console import DryRun, Json, make_app, note, put, state, table
from fleet.cli.daemon_client import ask
from fleet.config import FleetConfig, hook_files, load_fleet, parse, sink_file
from fleet.errors import ConfigError, UsageError
from fleet.triggers.hooks.secret import hook_secrets
from fleet.triggers.hooks.webhook import EVENT, LARGEST, headers

app = make_app(group=True)
Name = Annotated[str, typer.Argument(help="Name of a webhook: the word after `hook:` in a persona's `on`.")]


@app.callback()
def _group() -> None:
    """List webhooks, create a secret, send a delivery."""


@app.command("list")
def list_hooks(as_json: Json = False) -> None:
    """List every webhook, whether its secret is valid, and the personas that it starts."""
    config, (found, _) = load_fleet(), roster()
    on: dict[str, list[str]] = {name: [] for name in config.hooks}
    for one in found.values():
        for trigger in one.persona.triggers:
            if (trigger.on or "").startswith(EVENT):
                on.setdefault(str(trigger.on).removeprefix(EVENT), []).append(one.persona.name)
    rows: list[dict[str, Any]] = []
    for name, names in sorted(on.items()):
        try:
            secret = f"valid, {len(hook_secrets(config, name, state()))}"
        except ConfigError as error:
            secret = f"bad: {error}"
        if name not in config.hooks:
            secret = f"none: no [hooks.{name}] in fleet.toml"
        rows.append({"hook": name, "secret": secret, "personas": sorted(names)})
    lines = ([row["hook"], row["secret"], " ".join(row["personas"])] for row in rows)
    put(rows, as_json=as_json, text=lambda: table(("hook", "secret", "personas"), lines, empty="no webhooks"))


@app.command()
def new(
    name: Name,
    sink: Annotated[
        bool, typer.Option("--sink", help="Create the secret of the sink of this name instead.")
    ] = False,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Create the secret of a webhook; never overwrites one."""
    config, kind = load_fleet(), "sinks" if sink else "hooks"
    if name not in getattr(config, kind):
        url = 'url = "https://…"\n' if sink else ""
        config = parse(FleetConfig, f"[{kind}.{name}]\n{url}", file=f"the name {name!r}")
        note(f"add to fleet.toml: [{kind}.{name}]")
    path = sink_file(config, name, state()) if sink else hook_files(config, name, state())[0]
    if not dry_run:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_new(path, secrets.token_hex(32).encode() + b"\n")
    data = {kind[:-1]: name, "secret_file": str(path), "written": not dry_run}
    put(data, as_json=as_json, text=lambda: print(f"{'would write' if dry_run else 'wrote'} {path}"))


@app.command()
def send(
    name: Name,
    file: Annotated[
        Path | None, typer.Option(help="File that holds the body, - for standard input; default: empty.")
    ] = None,
    delivery: Annotated[str, typer.Option(help="Id of the delivery; default: a new one.")] = "",
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Sign a delivery and send it to the local daemon; with --dry-run only print the request."""
    config = load_fleet()
    if name not in config.hooks:
        raise UsageError(f"no [hooks.{name}] in fleet.toml", remedy=f"fleet service hook new {name}")
    body = _body(file)
    secret = hook_secrets(config, name, state())[0]
    signed = headers(secret, delivery or secrets.token_hex(8), int(time.time()), body)
    data: dict[str, Any] = {"path": f"/hooks/{name}", "headers": signed, "bytes": len(body)}
    if not dry_run:
        said = ask(state(), f"/hooks/{name}", body, signed).check()
        data |= {"status": said.status, "runs": said.body.get("runs", [])}

    def text() -> None:
        if "status" not in data:
            print(f"POST {data['path']}")
            print("\n".join(f"{key}: {value}" for key, value in signed.items()))
            return
        note("accepted" if data["status"] == 202 else "delivered before: nothing new starts")
        lines = ([row["persona"], row["run"], row["key"]] for row in data["runs"])
        table(("persona", "run", "key"), lines, empty="no persona uses it")

    put(data, as_json=as_json, text=text)


def _body(file: Path | None) -> bytes:
    try:
        if file is None:
            return b""
        if str(file) == "-":
            return sys.stdin.buffer.read(LARGEST + 1)
        with file.open("rb") as handle:
            return handle.read(LARGEST + 1)
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror}") from None
