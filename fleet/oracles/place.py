"""Where a defect is: the parts of its kind's place, by which two observations are one defect. Pure.

An oracle states in `observed(..., where={"parameter": "q"})` the parts that its last exchange does not tell,
in the words of `kinds.Part`; all other parts of the kind's `place` are read from that exchange (`_READ`). A
part that neither has is the observation's signature: what was two defects before stays two.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from fleet.findings.kinds import Part, kinds
from fleet.findings.sighting import Sighting, lead
from fleet.oracles.echoes import family
from fleet.oracles.model import Exchange, Facts

_CANARIES = ("canary", "script_canary")
_LISTED: Mapping[Part, str] = {"rule": "a11y", "secret": "secrets"}
"""Fields of results whose values are a part of a place."""
SEVERAL = ", "
"""Between several values of such a part."""
_CUT = re.compile(r"\b\d+ cut$")
"""A module whose last section is cut off: whatever its kind, the same code reads its length (shapes.py)."""
_OF_AXE = {"html-lang": "html-has-lang", "title": "document-title"}
"""What axe-core calls the rules of `qa_fetch` that have another name there."""


def placed(sighting: Sighting, kind: str, last: Exchange, facts: Facts) -> Sighting:
    """The sighting with its kind, and every part of the kind's place."""
    parts: dict[str, str] = {}
    for part in kinds()[kind].place:
        found = sighting.where.get(part)
        if found is None and (read := _READ.get(part)):
            found = read(last, facts)
        whole = _CUT.sub("cut", sighting.signature) if found is None else found
        if part == "route":  # one page, whatever its value looks like
            whole = whole.replace("{value}", "{n}")
        parts[part] = " ".join(own(word, facts) for word in whole.split(" "))
    return replace(sighting, kind=kind, where=parts)


def route(call: Exchange, facts: Facts) -> str | None:
    """The page of a call without its values, and its method if that is another one than GET."""
    if "url" not in call.args or "account" in call.kinds:  # the URL of an account's tool is where it begins
        return None
    method = str(call.args.get("method", "GET"))
    return ("" if method in ("GET", "HEAD") else f"{method} ") + own(family(call.args), facts)


def own(url: str, facts: Facts) -> str:
    """A URL with one spelling for each address of the platform: `{site}`, `{proxy}`, `{face}`."""
    bases = (("{site}", facts.site.rstrip("/")), ("{proxy}", facts.proxy.rstrip("/")))
    for word, base in sorted(bases, key=lambda one: -len(one[1])):
        if base and (url + "/").startswith(base + "/"):
            url = word + url.removeprefix(base)
    before, _, after = facts.face.partition("{name}")
    if before:
        url = re.sub(rf"^{re.escape(before)}[a-z0-9-]{{1,63}}{re.escape(after)}", "{face}", url)
    return facts.folded(url if url.endswith("/") else url + "/").rstrip("/") if url[:1] == "{" else url


def met_at(tool: str, args: Mapping[str, Any]) -> str:
    """Where a call met something, for a person: the page without its values, or the call in a few words."""
    return family(args) if "url" in args else lead(tool, args)


def within(part: str, mine: str, theirs: str) -> bool:
    """Whether a place says more than another one of its kind: all its values and further ones that one look
    showed; or, of the constructs of an input, fewer that show the same."""
    if part == "input":
        (said, _, few), (same, _, many) = mine.rpartition(" of "), theirs.rpartition(" of ")
        return bool(said) and said == same and set(few.split()) < set(many.split())
    return part in _LISTED and set(theirs.split(SEVERAL)) < set(mine.split(SEVERAL))


def host_of(call: Exchange, facts: Facts) -> str | None:
    """The host of a call, by the word for it: a face is the site where both have one address."""
    if "url" not in call.args:
        return "{proxy}" if "reply" in call.kinds else None
    url = str(call.args["url"])
    spelled, site = own(url, facts), urlsplit(facts.site).netloc
    for word, address in (("{site}", facts.site), ("{proxy}", facts.proxy), ("{face}", facts.face)):
        if spelled.startswith(word):
            return "{site}" if site and urlsplit(address).netloc == site else word
    return urlsplit(url).netloc or url.partition("/")[0]


def _endpoint(call: Exchange, facts: Facts) -> str | None:
    """Of a call of an agent the way by which all of them are called: its check is missing for all of them."""
    if call.result.get("wire"):
        return f"agent {call.args.get('target')}"
    return route(call, facts) if "url" in call.args else call.tool.removeprefix("qa_")


def _claim(call: Exchange, _facts: Facts) -> str | None:
    """In which part of a request a sender is claimed: the check of each is code of its own."""
    if "reply" not in call.kinds:
        return None
    return "header" if call.args.get("claim_headers") and not call.args.get("claim_fields") else "field"


def _parameter(call: Exchange, _facts: Facts) -> str | None:
    if "url" not in call.args:
        return None
    query = parse_qsl(urlsplit(str(call.args["url"])).query, keep_blank_values=True)
    inputs = [(f"parameter {name}", value) for name, value in query]
    inputs += [(f"field {name}", str(value)) for name, value in dict(call.args.get("fields") or {}).items()]
    canary = next((str(call.args[name]) for name in _CANARIES if call.args.get(name)), "")
    marked = [name for name, value in inputs if canary and canary in unquote(value)]
    return ", ".join(sorted(dict.fromkeys(marked or [name for name, _ in inputs])))


def _field(call: Exchange, _facts: Facts) -> str | None:
    return ", ".join(sorted(map(str, call.args.get("fields") or ()))) or None


def _function(call: Exchange, _facts: Facts) -> str | None:
    named = call.args.get("function") or call.args.get("simulate")
    return str(named) if named else None if call.tool == "qa_chain" else call.tool.removeprefix("qa_")


def _listed(part: Part) -> Callable[[Exchange, Facts], str | None]:
    def read(call: Exchange, _facts: Facts) -> str | None:
        found = call.result.get(_LISTED[part])
        names = {str(one) for one in found} if isinstance(found, list | tuple) else set()
        return SEVERAL.join(sorted(_OF_AXE.get(one, one) for one in names)) or None

    return read


_READ: Mapping[Part, Callable[[Exchange, Facts], str | None]] = {
    "host": host_of,
    "route": route,
    "endpoint": _endpoint,
    "claim": _claim,
    "parameter": _parameter,
    "field": _field,
    "function": _function,
    "link": lambda call, facts: own(family(call.args), facts) if "url" in call.args else None,
    **{part: _listed(part) for part in _LISTED},
}
