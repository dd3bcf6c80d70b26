"""Input points of a platform's pages: where a value of ours can go. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import quote, urlsplit, urlunsplit

from fleet.personas.model import Step

Kind = Literal["query", "path", "fragment", "tail", "header", "field", "form", "body"]


@dataclass(frozen=True, slots=True)
class Point:
    """One input: a query parameter, a path segment, a fragment, what stands below a folder (a tail), a
    header, a field of a JSON body, one of a form, or a body whole.

    `url` is spelled with placeholders as in a repro (`{site}/search?q=moss`); `name` is the parameter, the
    header or the field, for a path the number of the segment: of one like `file=moss` what stands behind the
    sign is the value, for a body its Content-Type. `value` is what a benign caller sends there. A tail is
    sent as it is written.
    """

    url: str
    kind: Kind
    name: str
    value: str
    method: str = "GET"

    def step(self, value: str, **more: object) -> Step:
        """The call of a page with this value in this place; `more` are further arguments of the tool."""
        args: dict[str, Any] = {"url": self._url_with(value), **more}
        if self.method != "GET":
            args["method"] = self.method
        if self.kind == "header":
            args["headers"] = {**args.get("headers", {}), self.name: value}
        if self.kind == "field":
            args["fields"] = {**args.get("fields", {}), self.name: value}
        return Step(tool="qa_fetch", args=args)

    def _url_with(self, value: str) -> str:
        """The URL with the value in its place, percent-encoded; every other byte as it was."""
        if self.kind == "tail":
            return self.url + value
        if self.kind == "fragment":
            return f"{self.url}#{encoded(value)}"
        if self.kind not in ("query", "path"):
            return self.url
        scheme, netloc, path, query, fragment = urlsplit(self.url)
        if self.kind == "path":
            parts = path.split("/")
            name, named, _ = parts[int(self.name)].partition("=")
            parts[int(self.name)] = f"{name}=" * bool(named) + encoded(value)
            return urlunsplit((scheme, netloc, "/".join(parts), query, fragment))
        pairs = [pair.partition("=") for pair in query.split("&") if pair]
        name = quote(self.name, safe="")
        kept = [(key, text) for key, _, text in pairs if key not in (name, self.name)]
        query = "&".join(f"{key}={text}" for key, text in [*kept, (name, encoded(value))])
        return urlunsplit((scheme, netloc, path, query, fragment))


def encoded(value: str) -> str:
    """A value percent-encoded, but for the platform's own site and the fleet's listener, which a repro spells
    as placeholders."""
    return quote(value, safe="").replace("%7Bsite%7D", "{site}").replace("%7Blistener%7D", "{listener}")
