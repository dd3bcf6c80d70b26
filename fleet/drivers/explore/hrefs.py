"""Pages that an answer names, spelled with placeholders as in a repro. Pure; answers are untrusted."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import urljoin

from fleet.config import WebSection

MOST = 60
"""Most pages taken from one answer."""
LONGEST = 200
"""Characters of a page's URL."""
_FACE = re.compile(r"\{face:([a-z0-9-]{1,63})\}")
_HREF = re.compile(r"(?:href|src)\s*=\s*[\"']([^\"'\s<>]{1,300})[\"']|\]\(([^)\s]{1,300})\)", re.I)
_PLAIN = re.compile(
    r"(?:\b(GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS)\s+|(?<=[\s\"'`(:=])|^)"
    r"(https?://[^\s\"'`)\]]{1,300}|/[A-Za-z0-9][A-Za-z0-9._~/%+:<>{}-]{0,200}(?:\?[A-Za-z0-9._~=&%+<>{}-]{1,200})?)",
    re.M,
)
_BLANK = re.compile(r"[<{]([A-Za-z_-]{1,30})[>}]|(?<=/):([a-z_]{1,30})|(?<=[?&])([a-z_]{1,30})=(?=&|$)")
"""A part of a route that its reader fills in: `<name>`, `{name}`, `:name`, or a parameter without a value."""
_NAMES = re.compile(r"name|agent|handle|slug|user|who", re.I)
_ADDRESSES = re.compile(r"addr|account|wallet|owner|caller", re.I)
NOBODY = "0x" + "00" * 20
_ACTS = re.compile(
    r"log-?out|sign-?out|delete|remove|reset|claim|burn|transfer|release|register|sign-?up|create|publish|send"
    r"|pay|buy|subscribe|webhook|cancel|revoke|stream|events?\b|\bws\b",
    re.I,
)
"""Words of routes that may act, or not end, although they are read with GET."""


@dataclass(frozen=True, slots=True)
class Spelling:
    """The base URLs without a slash at the end; `face` holds `{name}`, `name` is a standing one."""

    site: str
    proxy: str
    face: str
    name: str = ""

    @classmethod
    def of(cls, web: WebSection, name: str = "") -> Self:
        """The spelling of a profile."""
        return cls(str(web.site).rstrip("/"), str(web.proxy).rstrip("/"), web.face, name)

    def target(self, text: str) -> str:
        """A target of the profile as a page; "" if it is not one. A name is its face."""
        if text.startswith(("{site}", "{proxy}")):
            return self.spelled(self.absolute(text))
        if re.fullmatch(r"[a-z0-9-]{1,63}", text):
            return f"{{face:{text}}}" if self.face else ""
        return self.spelled(text)

    def spelled(self, url: str) -> str:
        """An absolute URL with placeholders; "" for one elsewhere."""
        url = url.partition("#")[0]
        before, _, after = self.face.partition("{name}")
        if self.face and (hit := re.match(f"{re.escape(before)}([a-z0-9-]{{1,63}}){re.escape(after)}", url)):
            return f"{{face:{hit[1]}}}{url[hit.end() :]}"
        for name, base in sorted((("site", self.site), ("proxy", self.proxy)), key=lambda one: -len(one[1])):
            if base and url.startswith(base) and url[len(base) : len(base) + 1] in ("", "/", "?"):
                return f"{{{name}}}{url[len(base) :] or '/'}"
        return ""

    def filled(self, route: str) -> str:
        """A route with the parts that its reader fills in: a standing name, an address, else the number 1."""

        def value(hit: re.Match[str]) -> str:
            word = hit[1] or hit[2] or hit[3]
            given = NOBODY if _ADDRESSES.search(word) else self.name if _NAMES.search(word) else "1"
            return f"{hit[3]}={given}" if hit[3] else given

        return _BLANK.sub(value, route)

    def absolute(self, page: str) -> str:
        """A spelled page as a URL."""
        page = _FACE.sub(lambda hit: self.face.replace("{name}", hit[1]), page)
        return page.replace("{site}", self.site).replace("{proxy}", self.proxy)

    def found(self, page: str, result: Mapping[str, Any]) -> Iterator[str]:
        """Pages of the platform that an answer to `page` links or writes down, and that GET only reads."""
        base = self.absolute(page)
        said = [result.get("text"), result.get("location"), *_listed(result.get("links"))]
        texts = "\n".join(str(one) for one in (*said, *_listed(result.get("routes"))) if one)
        known: dict[str, None] = {}
        for hit in (*_HREF.finditer(texts), *_PLAIN.finditer(texts)):
            if hit.re is _HREF:
                named = hit[1] or hit[2]
            elif hit[1] in (None, "GET"):
                named = self.filled(hit[2].rstrip(".,;:"))
            else:
                continue
            try:
                spelled = self.spelled(urljoin(base, named))
            except ValueError:
                continue
            if spelled and harmless(spelled):
                known.setdefault(spelled)
            if len(known) >= MOST:
                break
        yield from known


def harmless(page: object) -> bool:
    """Whether a page may be asked for repeatedly: spelled as ours are, and its words do not name an act."""
    if not isinstance(page, str) or len(page) > LONGEST or not page.isprintable():
        return False
    base = re.match(r"\{(?:site|proxy|face:[a-z0-9-]{1,63})\}", page)
    return base is not None and not re.search(r"[{}<>* ]", page[base.end() :]) and not _ACTS.search(page)


def _listed(value: object) -> list[object]:
    return list(value) if isinstance(value, list | tuple) else []
