"""Each output of the worklist, and what in it would act on its reader."""

from __future__ import annotations

import csv
import io
import json
import pkgutil
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from html.parser import HTMLParser
from importlib import import_module
from inspect import signature
from typing import Any
from xml.etree import ElementTree

from markdown_it import MarkdownIt

from fleet.files import ROOT
from fleet.triage.items.worklist import WorklistItem
from fleet.triage.outputs.digest import DailyDigest, daily_digest, digest_json, digest_markdown
from fleet.triage.outputs.document import WorklistHeader

OUTPUTS = "fleet.triage.outputs"
Render = Callable[[Sequence[WorklistItem]], bytes]


def formats() -> dict[str, Render]:
    """Every format that the worklist is written in, by the name of its function."""
    head = WorklistHeader()
    found: dict[str, Render] = {}
    for info in pkgutil.iter_modules(import_module(OUTPUTS).__path__):
        for name, one in vars(import_module(f"{OUTPUTS}.{info.name}")).items():
            if name.startswith("to_") and callable(one):
                more = (head,) if len(signature(one).parameters) > 1 else ()
                found[name] = partial(_written, one, *more)
    assert {"to_json", "to_markdown", "to_html", "to_csv", "to_junit", "to_sarif"} <= set(found)
    return found | {one.__name__: partial(_digested, one) for one in (digest_json, digest_markdown)}


def _digested(render: Callable[[DailyDigest], bytes], items: Sequence[WorklistItem]) -> bytes:
    """The digest since before the first of them."""
    return render(daily_digest(items, WorklistHeader(), ""))


def _written(render: Callable[..., bytes], *given: Any) -> bytes:
    *more, items = given
    return render(items, *more)


FORMATS = formats()


def strings(value: Any) -> Iterator[str]:
    """Every string in a parsed document, keys as well."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from (key, *strings(inner))
    elif isinstance(value, list):
        for inner in value:
            yield from strings(inner)


def visible(text: str) -> bool:
    return all(char.isprintable() or char in "\n\r" for char in text)


def live_json(data: bytes) -> list[str]:
    return [text for text in strings(json.loads(data)) if not visible(text)]


def reader() -> MarkdownIt:
    """CommonMark with all that may act: raw HTML, tables, automatic links, and links to any scheme."""
    options = {"html": True, "linkify": True}
    made = MarkdownIt("commonmark", options).enable(["table", "linkify", "strikethrough"])
    made.validateLink = lambda url: True  # type: ignore[method-assign]  # others take `javascript:` as well
    return made


def live_markdown(data: bytes) -> list[str]:
    """Tokens that a reader of Markdown would act on."""
    return [
        f"{one.type} {one.content[:80]} {one.attrs}"
        for token in reader().parse(data.decode())
        for one in (token, *(token.children or ()))
        if one.type in _ACTS
    ]


_ACTS = {
    "html_block",
    "html_inline",
    "image",
    "link_open",
    "fence",
    "code_block",
    "blockquote_open",
    "hr",
} | {
    "em_open",
    "strong_open",
    "s_open",
    "ordered_list_open",
    "softbreak",
    "hardbreak",
}


def live_csv(data: bytes) -> list[str]:
    rows = list(csv.reader(io.StringIO(data.decode(), newline="")))
    assert len({len(row) for row in rows}) == 1
    return [
        cell
        for row in rows
        for cell in row
        if cell.lstrip()[:1] in tuple("=+-@\t\r＝＋－＠") and cell.strip()
    ]


def live_junit(data: bytes) -> list[str]:
    assert b"<!DOCTYPE" not in data
    root = ElementTree.fromstring(data)
    return [one.tag for one in root.iter() if one.tag not in _JUNIT]


_JUNIT = {"testsuites", "testsuite", "properties", "property", "testcase", "failure", "skipped", "system-out"}


class Tags(HTMLParser):
    """What a page consists of: names of elements, and attributes with their values."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes |= {name for name, _ in attrs}


def live_html(data: bytes) -> list[str]:
    script = (ROOT / "fleet/triage/outputs/page.js").read_text("utf-8")
    tags = Tags()
    tags.feed(data.decode().replace(f"<script>{script}</script>", "", 1))  # our own, by its hash
    acting = {name for name in tags.attributes if name.startswith("on")} | ({"href", "src"} & tags.attributes)
    return sorted((tags.names & _RUNS) | acting)


_RUNS = {"a", "audio", "base", "button", "embed", "form", "iframe", "img", "input"} | {
    "link",
    "math",
    "object",
    "script",
    "svg",
    "textarea",
    "video",
}

LIVE: dict[str, Callable[[bytes], list[str]]] = {
    "to_json": live_json,
    "to_sarif": live_json,
    "to_markdown": live_markdown,
    "digest_json": live_json,
    "digest_markdown": live_markdown,
    "to_csv": live_csv,
    "to_junit": live_junit,
    "to_html": live_html,
}
