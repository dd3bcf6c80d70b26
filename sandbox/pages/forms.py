"""The forms of a page as a browser knows them: read, filled in and encoded. Pure; the page is hostile."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urlencode, urljoin

from sandbox.pages.html import CPU_S, Costly, limited
from sandbox.spec import Mistake

MAX_MARKUP = 400_000
MAX_FORMS = 40
MAX_CONTROLS = 40
MAX_LINKS = 400
MULTIPART = "multipart/form-data"
_BUTTONS = frozenset(("submit", "button", "reset", "image"))
_RANDOM = re.compile(r"(?=[^0-9]*[0-9])(?=[^A-Za-z]*[A-Za-z])[\w+/=.:|~-]{16,4000}", re.ASCII)
_DEFAULTS = {
    "email": "{email}",
    "password": "{phrase}",
    "url": "https://example.com/",
    "number": "1",
    "range": "1",
    "tel": "+15550100",
    "date": "2030-05-01",
    "time": "12:00",
    "datetime-local": "2030-05-01T12:00",
    "color": "#336699",
}
_TITLES = frozenset(("title", "h1", "h2", "legend"))


@dataclass(slots=True)
class FormControl:
    """One field; `kind` is its type in lower case, `textarea` or `select`."""

    name: str
    kind: str
    value: str = ""
    required: bool = False
    checked: bool = False
    options: list[str] = field(default_factory=list)

    @property
    def is_token(self) -> bool:
        """Whether it is hidden and looks random."""
        return self.kind == "hidden" and bool(_RANDOM.fullmatch(self.value))


@dataclass(slots=True)
class PageForm:
    """`action` is absolute; `plain`: it has a button without a name, which is the one that is pressed."""

    method: str
    action: str
    multipart: bool = False
    controls: list[FormControl] = field(default_factory=list)
    plain: bool = False

    def entries(self, given: Mapping[str, Any]) -> list[tuple[str, Any]]:
        """What a person sends who fills in `given`, and else only what must be; texts may hold words such as
        {handle}."""
        sent: list[tuple[str, Any]] = []
        left = dict(given)
        pressed = self.plain
        for one in self.controls:
            if one.name in left:
                sent.append((one.name, left.pop(one.name)))
            elif one.name in given:
                continue
            elif one.kind in _BUTTONS:
                if one.kind == "submit" and not pressed:
                    pressed = True
                    sent.append((one.name, one.value))
            elif (value := self._default(one)) is not None:
                sent.append((one.name, value))
        return [*sent, *left.items()]

    def _default(self, one: FormControl) -> str | None:
        if one.kind == "file":
            return None
        if one.kind == "select":
            chosen = one.value or next(filter(None, one.options), "")
            return chosen if one.options else None
        if one.kind in ("checkbox", "radio"):
            alike = [other for other in self.controls if other.name == one.name]
            first = one is alike[0] and one.required and not any(other.checked for other in alike)
            return (one.value or "on") if one.checked or first else None
        if one.required and not one.value and one.kind != "hidden":
            return _DEFAULTS.get(one.kind, "{handle}")
        return one.value


@dataclass(slots=True)
class ReadPage:
    """`titles` are the words of its title and headings."""

    forms: list[PageForm] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    titles: str = ""


def read_page(markup: str, url: str) -> ReadPage:
    """The forms and links of a page, absolute; what a costly page began with. Never raises."""
    reader = _FormReader(url)
    try:
        with limited(CPU_S):
            reader.feed(markup[:MAX_MARKUP])
            reader.close()
    except (Costly, AssertionError, ValueError, RecursionError):
        pass
    return reader.page


class _FormReader(HTMLParser):
    def __init__(self, url: str) -> None:
        super().__init__(convert_charrefs=True)
        self.page, self._base = ReadPage(), url
        self._form: PageForm | None = None
        self._control: FormControl | None = None
        self._option = self._titled = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        target = given.get("href") if tag in ("a", "area", "link") else given.get("src", given.get("data"))
        if target and tag != "script" and len(self.page.links) < MAX_LINKS and (url := self._url(target)):
            self.page.links.append(url)
        if tag == "base" and given.get("href"):
            self._base = self._url(given["href"]) or self._base
        elif tag == "form" and len(self.page.forms) < MAX_FORMS:
            method = "POST" if given.get("method", "").upper() == "POST" else "GET"
            multipart = given.get("enctype", "").lower() == MULTIPART
            self._form = PageForm(method, self._url(given.get("action", "")) or self._base, multipart)
            self.page.forms.append(self._form)
        elif self._form is not None:
            self._field(self._form, tag, given)
        self._titled = self._titled or tag in _TITLES

    def _field(self, form: PageForm, tag: str, given: Mapping[str, str]) -> None:
        name = given.get("name", "")
        if tag == "option" and self._control is not None and self._control.kind == "select":
            self._control.options.append(given.get("value", ""))
            self._option = "value" not in given
            if "selected" in given:
                self._control.value = given.get("value", "")
        kind = (given.get("type", "").lower() or {"input": "text", "button": "submit"}.get(tag, "")) or tag
        known = tag in ("input", "button", "textarea", "select")
        form.plain |= tag in ("input", "button") and kind == "submit" and not name
        if not known or not name or "disabled" in given or len(form.controls) >= MAX_CONTROLS:
            return
        one = FormControl(name, kind, given.get("value", ""), "required" in given, "checked" in given)
        form.controls.append(one)
        self._control = one if tag in ("textarea", "select") else self._control

    def handle_endtag(self, tag: str) -> None:
        self._form = None if tag == "form" else self._form
        self._control = None if tag in ("textarea", "select", "form") else self._control
        self._titled = self._titled and tag not in _TITLES

    def handle_data(self, data: str) -> None:
        if self._titled and len(self.page.titles) < 2_000:
            self.page.titles += f" {data}"
        if self._control is not None and self._control.kind == "textarea":
            self._control.value += data
        elif self._control is not None and self._option and self._control.options and data.strip():
            self._control.options[-1], self._option = data.strip(), False

    def _url(self, target: str) -> str:
        try:
            return urljoin(self._base, target.strip())
        except ValueError:
            return ""


def encoded(entries: list[tuple[str, Any]], *, multipart: bool) -> tuple[bytes, str]:
    """A form's body and its Content-Type. A file is a list of its name, its type and its text."""
    for name, value in entries:
        a_file = (
            isinstance(value, list | tuple) and len(value) == 3 and all(isinstance(v, str) for v in value)
        )
        if not (a_file and multipart) and not isinstance(value, str | int | float):
            raise Mistake(f"/args/steps: the field {name[:60]} is not a text, or a file where none is taken")
    if not multipart:
        return urlencode([(name, str(value)) for name, value in entries]).encode(), (
            "application/x-www-form-urlencoded"
        )
    mark = "qa" + os.urandom(12).hex()
    parts = [_part(mark, name, value) for name, value in entries]
    return "".join([*parts, f"--{mark}--\r\n"]).encode("utf-8", "replace"), f"{MULTIPART}; boundary={mark}"


def _part(mark: str, name: str, value: Any) -> str:  # noqa: ANN401  any JSON
    head = f'--{mark}\r\nContent-Disposition: form-data; name="{_quoted(name)}"'
    if isinstance(value, list | tuple):
        file, kind, text = value
        return f'{head}; filename="{_quoted(file)}"\r\nContent-Type: {_quoted(kind)}\r\n\r\n{text}\r\n'
    return f"{head}\r\n\r\n{value}\r\n"


def _quoted(text: str) -> str:
    """As browsers write a name (HTML, 4.10.21.8)."""
    return text.replace("\r", "%0D").replace("\n", "%0A").replace('"', "%22")
