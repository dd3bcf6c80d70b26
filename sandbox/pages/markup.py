"""What the elements of a page refer to, collected while it is parsed."""

from __future__ import annotations

from dataclasses import dataclass, field

MAX_TEXT = 200_000
"""Characters of a page that are searched."""
MAX_FIELDS = 24
MAX_VALUE = 60

_LINK_ATTRS = {"a": "href", "area": "href", "link": "href", "object": "data"} | dict.fromkeys(
    ("script", "img", "iframe", "frame", "source", "embed", "video", "audio"), "src"
)
_HEADINGS = frozenset(f"h{level}" for level in range(1, 7))
_BREAKS = _HEADINGS | frozenset(
    ("p", "div", "li", "tr", "pre", "br", "ul", "ol", "table", "section", "dt", "dd", "script", "style")
)
"""Elements that begin and end a line."""


@dataclass(frozen=True, slots=True)
class Form:
    """A form of a page, or a JSON body as a document writes it: names of fields, and the values there.

    With `json` the values are JSON.
    """

    method: str
    """HTTP method that it is sent by."""
    action: str
    """URL that it is sent to."""
    fields: dict[str, str] = field(default_factory=dict)
    """Value by name of a field."""
    json: bool = False
    """Whether the values are JSON."""


@dataclass(slots=True)
class MarkupReader:
    """Collects what a page's elements refer to, and its words with a line for each block."""

    links: list[str] = field(default_factory=list)
    forms: list[Form] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    base: str = ""
    _size: int = 0
    _form: Form | None = None
    _select: str = ""
    _option: bool = False

    def start(self, tag: str, attrs: dict[str, str]) -> None:
        if tag in _BREAKS:
            self.data("\n")
        elif tag in ("td", "th"):
            self.data(" ")
        if tag == "base":
            self.base = self.base or attrs.get("href", "")
        if tag == "meta" and attrs.get("http-equiv", "").lower() == "refresh":
            self._link(attrs.get("content", "").partition("=")[2].strip("'\" "))
        self._link(attrs.get(_LINK_ATTRS.get(tag, "formaction"), ""))
        if tag == "form":
            method = attrs.get("method", "get").upper()
            self._form = Form(method if method == "POST" else "GET", attrs.get("action", ""))
            if len(self.forms) < MAX_FIELDS:
                self.forms.append(self._form)
        elif self._form is not None:
            fields = self._form.fields
            name = attrs.get("name", "")
            if tag == "option" and self._select in fields:
                self._option = "value" not in attrs and not fields[self._select]
                fields[self._select] = fields[self._select] or attrs.get("value", "")[:MAX_VALUE]
            if (
                tag in ("input", "select", "textarea")
                and 0 < len(name) <= MAX_VALUE
                and len(fields) < MAX_FIELDS
            ):
                self._select = name if tag == "select" else ""
                if attrs.get("type", "").lower() not in ("submit", "button", "reset", "image", "file"):
                    value = attrs.get("value", "")
                    fields.setdefault(name, value if len(value) <= MAX_VALUE else "")

    def end(self, tag: str) -> None:
        if tag == "form":
            self._form = None
        if tag in _BREAKS:
            self.data("\n")

    def data(self, text: str) -> None:
        if self._option and self._form is not None and text.strip():
            self._form.fields[self._select] = text.strip()[:MAX_VALUE]
            self._option = False
        if self._size < MAX_TEXT:
            self.words.append(text)
            self._size += len(text)

    def _link(self, target: str) -> None:
        if target and len(self.links) < 2_000:
            self.links.append(target)
