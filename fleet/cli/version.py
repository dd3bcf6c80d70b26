"""`fleet version`."""

from __future__ import annotations

import platform

from fleet import __version__
from fleet.cli.console import Json, make_app, put

app = make_app()


@app.command()
def version(as_json: Json = False) -> None:
    """Print the version."""
    data = {"fleet": __version__, "python": platform.python_version()}
    put(data, as_json=as_json, text=lambda: print(f"fleet {data['fleet']} (Python {data['python']})"))
