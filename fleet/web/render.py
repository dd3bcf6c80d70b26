"""Templates and headers of the pages. Every text that a template prints is cleaned, then escaped."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, pass_context
from jinja2.runtime import Context
from markupsafe import Markup, escape
from starlette.responses import HTMLResponse, Response

from fleet.clock import minute, span
from fleet.events.daemon_words import soon
from fleet.severity import UNKNOWN, WEIGHTS
from fleet.text import clean, counted, line, spoken
from fleet.triage.outputs.html_page import FILTERS, TEMPLATES

HERE = Path(__file__).parent
STATIC: Mapping[str, tuple[Path, str]] = {
    "base.css": (TEMPLATES / "page.css", "text/css"),
    "pages.css": (HERE / "static" / "pages.css", "text/css"),
    "pages.js": (HERE / "static" / "pages.js", "text/javascript"),
}
"""What a page may load, and its type: nothing from another place, no script inside a page."""
HEADERS: Mapping[str, str] = {
    "content-security-policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src data:;"
        " form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "cache-control": "no-store",
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
"""Of every answer; `no-referrer` would hide the origin of our own forms from us."""
BLOCK = 40_000
"""Characters of a text of several lines."""


def page(template: str, context: Mapping[str, Any], *, status: int = 200) -> Response:
    """One page of a template."""
    text = _environment().get_template(template).render(context)
    return HTMLResponse(text, status_code=status, headers=dict(HEADERS))


def asset(name: str) -> Response:
    """A style or script of ours; 404 for anything else."""
    if name not in STATIC:
        return Response(status_code=404, headers=dict(HEADERS))
    path, kind = STATIC[name]
    headers = dict(HEADERS) | {"cache-control": "no-cache", "content-type": f"{kind}; charset=utf-8"}
    return Response(path.read_bytes(), headers=headers)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader((HERE / "templates", TEMPLATES)),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= FILTERS
    environment.filters |= {
        "block": lambda text: Markup(escape(clean(str(text), BLOCK, newlines=True))),
        "life": _life,
        "minute": minute,
        "spoken": spoken,
        "ago": lambda at, now: span(at, now) if at and at <= now else "",
        "soon": lambda at, now: soon(now, at),
        "severity": lambda word: word if word in WEIGHTS else UNKNOWN,
        "counted": counted,
        "short": lambda value: line(json.dumps(value, ensure_ascii=False, default=str), 120),
        "titled": lambda text: line(str(text)) or "(no title)",
    }
    return environment


def _shown(value: object) -> object:
    return value if isinstance(value, Markup) else clean(str(value))


@pass_context
def _life(context: Context, _: object) -> object:
    """The life of the page's item, with its runs and decisions; the static page has only the list's."""
    return context["life"]
