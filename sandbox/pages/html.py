"""What a page's markup gives away: accessibility faults by rule id, and whether a canary could run as script.

Rule ids are axe-core's. A rule fires only on markup that is certainly wrong, so that a clean page gives none.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from html.parser import HTMLParser

from sandbox.pages.markup import MarkupReader

Attrs = dict[str, str]

CPU_S = 1.0
"""Processor time for one page: about 3 MB of ordinary markup."""

_UNLABELLED_TYPES = ("hidden", "submit", "reset", "button", "image")
_NAMED = {"button": "button-name", "a": "link-name"}
RULES = (
    "button-name",
    "frame-title",
    "html-lang",
    "image-alt",
    "input-image-alt",
    "label",
    "link-name",
    "meta-viewport",
    "select-name",
    "title",
)
"""Every rule of accessibility that is judged here."""
_URL_ATTRS = ("href", "src", "action", "formaction", "data")


@dataclass(frozen=True, slots=True)
class Analysis:
    """`judged` is false of a page that was too costly: then the other fields say nothing."""

    a11y: tuple[str, ...] = ()
    canary_executable: bool = False
    judged: bool = True


@dataclass(slots=True)
class _OpenElement:
    """An element whose accessible name is still being collected."""

    tag: str
    named: bool


@dataclass(slots=True)
class _HtmlReader:
    html_lang: bool | None = None
    title: str = ""
    scripts: bool = False
    words: bool = False
    """Whether scripts come from elsewhere, and whether its body says a word before they run."""
    fields: list[tuple[str, bool, str]] = field(default_factory=list)  # id, inside a label, rule
    labelled_ids: set[str] = field(default_factory=set)
    rules: set[str] = field(default_factory=set)


def read(markup: str, canary: str = "") -> tuple[Analysis, MarkupReader]:
    """Rules broken and the canary's fate, and what the page's elements refer to; never raises.

    A page that costs more than `CPU_S` is not judged: html.parser is worse than quadratic on what is
    never closed (20 kB of `<a ` were over 12 s), and that page's status and secrets must still be seen.
    """
    page = _Page(canary)
    try:
        with limited(CPU_S):
            page.feed(markup)
            page.close()
            return page.result(), page.refers
    except Costly:
        return Analysis(judged=False), MarkupReader()
    except (AssertionError, ValueError, RecursionError):  # html.parser's own on malformed declarations
        return page.result(), page.refers


class Costly(Exception):
    """The page's share of processor time is spent."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise Costly after this much processor time of this process; without a limit in any but the main
    thread, which a guest's is."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def spent(_signal: int, _frame: object) -> None:
        raise Costly

    before = signal.signal(signal.SIGVTALRM, spent)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


class _Page(HTMLParser):
    def __init__(self, canary: str) -> None:
        super().__init__(convert_charrefs=True)
        self._canary = canary
        self._hit = self._in_script = False
        self._stack: list[_OpenElement] = []
        self._in: dict[str, int] = dict.fromkeys(("script", "style", "title", "svg", "label", "noscript"), 0)
        self._seen = _HtmlReader()
        self.refers = MarkupReader()

    def result(self) -> Analysis:
        seen = self._seen
        shell = seen.scripts and not seen.words  # its scripts make the page: a browser judges that
        if seen.html_lang is False and not shell:
            seen.rules.add("html-lang")
        if seen.html_lang is not None and not shell and not seen.title.strip():
            seen.rules.add("title")
        seen.rules |= {
            rule for name, wrapped, rule in seen.fields if not wrapped and name not in seen.labelled_ids
        }
        for element in self._stack:
            self._judge(element)
        return Analysis(tuple(sorted(seen.rules)), self._hit)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given: Attrs = {}
        for name, value in attrs:
            given.setdefault(name.lower(), value or "")  # browsers keep the first
        self._canary_in(given)
        self.refers.start(tag, given)
        self._seen.scripts |= tag == "script" and bool(given.get("src"))
        if tag in self._in:
            self._in[tag] += 1
        check = _CHECKS.get(tag)
        if check is not None:
            check(self._seen, given, self._in["label"] > 0)
        if tag in _NAMED and (tag != "a" or "href" in given):
            self._stack.append(_OpenElement(tag, _has_name(given)))
        elif tag == "img" and given.get("alt", "").strip():
            self._name_open()

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)  # `/>` closes nothing in HTML but foreign elements
        if self._in["svg"]:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        self.refers.end(tag)
        if self._in.get(tag, 0) > 0:
            self._in[tag] -= 1
        if tag == "script":  # a script that is never closed is never run
            self._hit |= self._in_script
        for at in range(len(self._stack) - 1, -1, -1):
            if self._stack[at].tag == tag:
                self._judge(self._stack.pop(at))
                break

    def handle_data(self, data: str) -> None:
        self.refers.data(data)
        if self._in["script"]:
            self._in_script |= bool(self._canary) and self._canary in data
            return
        if self._in["title"] and not self._in["svg"]:
            self._seen.title += data[:200]
        if data.strip() and not self._in["style"]:
            self._name_open()
            self._seen.words |= not self._in["title"] and not self._in["noscript"]

    def _name_open(self) -> None:
        for element in self._stack:
            element.named = True

    def _judge(self, element: _OpenElement) -> None:
        if not element.named:
            self._seen.rules.add(_NAMED[element.tag])

    def _canary_in(self, given: Attrs) -> None:
        if not self._canary:
            return
        for name, value in given.items():
            handler = name.startswith("on") and len(name) > 2
            script_url = name in _URL_ATTRS and "".join(value.split()).lower().startswith("javascript:")
            if (handler or script_url or name == "srcdoc") and self._canary in value:
                self._hit = True


def _has_name(given: Attrs) -> bool:
    return bool(
        given.get("aria-label", "").strip() or given.get("aria-labelledby") or given.get("title", "").strip()
    )


def _html(seen: _HtmlReader, given: Attrs, _: bool) -> None:
    seen.html_lang = bool(given.get("lang", "").strip())


def _img(seen: _HtmlReader, given: Attrs, _: bool) -> None:
    hidden = given.get("role") in ("presentation", "none") or given.get("aria-hidden") == "true"
    if "alt" not in given and not hidden and not _has_name(given):
        seen.rules.add("image-alt")


def _field(seen: _HtmlReader, given: Attrs, in_label: bool) -> None:
    if given.get("type", "").lower() == "image" and not given.get("alt", "").strip() and not _has_name(given):
        seen.rules.add("input-image-alt")
    if given.get("type", "").lower() not in _UNLABELLED_TYPES and not _has_name(given):
        seen.fields.append((given.get("id", ""), in_label, "label"))


def _select(seen: _HtmlReader, given: Attrs, in_label: bool) -> None:
    if not _has_name(given):
        seen.fields.append((given.get("id", ""), in_label, "select-name"))


def _label(seen: _HtmlReader, given: Attrs, _: bool) -> None:
    if given.get("for"):
        seen.labelled_ids.add(given["for"])


def _iframe(seen: _HtmlReader, given: Attrs, _: bool) -> None:
    if not _has_name(given) and given.get("aria-hidden") != "true":
        seen.rules.add("frame-title")


def _meta(seen: _HtmlReader, given: Attrs, _: bool) -> None:
    content = given.get("content", "").replace(" ", "").lower()
    if given.get("name", "").lower() == "viewport" and "user-scalable=no" in content:
        seen.rules.add("meta-viewport")


_CHECKS = {
    "html": _html,
    "img": _img,
    "input": _field,
    "select": _select,
    "textarea": _field,
    "label": _label,
    "iframe": _iframe,
    "meta": _meta,
}
