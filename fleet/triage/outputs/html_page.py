"""The worklist as one static page: no request, no script but its own; every text is cleaned and escaped."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from fleet.clock import minute
from fleet.severity import UNKNOWN, WEIGHTS, weight
from fleet.text import clean, spoken
from fleet.triage.items.worklist import WorklistItem
from fleet.triage.outputs.document import WorklistHeader, audited, closed, opened, proven, sentence, standing
from fleet.triage.outputs.item_page import NO_PAGES, ItemPage, also_seen, item_page, life, waits
from fleet.triage.outputs.repro_shell import ShellPlace

TEMPLATES = Path(__file__).parent
"""`item.html.jinja` here is the page of one item, for the daemon's pages too."""
_PAGE, _STYLE, _SCRIPT = "page.html.jinja", "page.css", "page.js"
FILTERS: Mapping[str, Callable[[Any], object]] = MappingProxyType(
    {
        "shown": lambda text: clean(str(text)),
        "block": lambda text: clean(str(text), 40_000, newlines=True),
        "standing": standing,
        "also": also_seen,
        "life": life,
        "minute": minute,
        "spoken": spoken,
        "waits": waits,
        "colour": lambda item: item.severity if item.severity in WEIGHTS else UNKNOWN,
        "grave": lambda item: f"{100 - weight(item.severity):.2f}",
        "sides": lambda page: [
            side
            for side in ("expected", "observed", "compared")
            if any(getattr(one, side) for one in page.fields)
        ],
    }
)
"""What the templates here use."""


def to_html(
    items: Sequence[WorklistItem], header: WorklistHeader, pages: Mapping[str, ItemPage] = NO_PAGES
) -> bytes:
    """UTF-8. The page's policy (CSP) permits its own style and script, by hash, and pictures inside it."""
    style, script = ((TEMPLATES / name).read_text("utf-8") for name in (_STYLE, _SCRIPT))
    page = _environment(pages).get_template(_PAGE)
    listed = opened(items)
    text = page.render(
        header=header,
        age=sentence(header.as_of),
        open=listed,
        closed=closed(items),
        proven=proven(listed),
        audited=audited(header.audit),
        style=Markup(style),  # our own files; escaping would change what the hashes are of
        style_hash=_hash(style),
        script=Markup(script),
        script_hash=_hash(script),
    )
    return text.encode()


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _environment(pages: Mapping[str, ItemPage]) -> Environment:
    loader = FileSystemLoader(TEMPLATES)
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, keep_trailing_newline=True
    )
    environment.filters |= FILTERS
    environment.filters["page"] = lambda item: pages.get(item.fingerprint) or _bare(item)
    return environment


def _bare(item: WorklistItem) -> ItemPage:
    """What an item alone says; a stranger's title names no kind."""
    return item_page(item.title, item.repro, ShellPlace()) if item.trusted else ItemPage()
