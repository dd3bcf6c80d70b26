"""`fleet version`."""

from __future__ import annotations

import platform

import typer

from fleet import __version__
from fleet.cli.shell import Json, put

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def version(as_json: Json = False) -> None:
    """Print the version."""
    data = {"fleet": __version__, "python": platform.python_version()}
    put(data, as_json=as_json, text=lambda: print(f"fleet {data['fleet']} (Python {data['python']})"))
