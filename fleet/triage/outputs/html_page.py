"""The worklist as one static page: no script, no link, no request; every text is cleaned and escaped."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from pathlib import Path

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from fleet.findings.kinds import kind_titled
from fleet.text import clean
from fleet.triage.items.worklist import WorklistItem
from fleet.triage.outputs.document import WorklistHeader, audited, closed, opened, proven, sentence, standing

_HERE = Path(__file__).parent
_PAGE, _STYLE = "page.html.jinja", "page.css"


def to_html(items: Sequence[WorklistItem], header: WorklistHeader) -> bytes:
    """UTF-8. The page's policy (CSP) permits its own style, by hash, and nothing else."""
    style = (_HERE / _STYLE).read_text("utf-8")
    page = _environment().from_string((_HERE / _PAGE).read_text("utf-8"))
    listed = opened(items)
    text = page.render(
        header=header,
        age=sentence(header.as_of),
        open=listed,
        closed=closed(items),
        proven=proven(listed),
        audited=audited(header.audit),
        style=Markup(style),  # our own file; escaping would change what the hash is of
        style_hash="sha256-" + base64.b64encode(hashlib.sha256(style.encode()).digest()).decode(),
    )
    return text.encode()


def _environment() -> Environment:
    environment = Environment(autoescape=True, undefined=StrictUndefined, keep_trailing_newline=True)
    environment.filters["shown"] = lambda text: clean(str(text))
    environment.filters["standing"] = standing
    environment.filters["kind"] = lambda item: kind_titled(item.title) if item.trusted else None
    return environment
