"""What a call may do to a platform at worst: its technique, by confidentiality, integrity and availability.

The scores stand in the spec of each tool (`impacts`); `docs/reference/tools.md` shows them all. A call
without them is refused. Each dimension says what is left of it at worst, from 10 (nothing is lost) to 0; the
lowest one decides the level. What hangs on the host lowers them (`[hosts]` of a profile). Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from typing import Any
from urllib.parse import unquote, unquote_plus, urlsplit

from fleet.config.escalation import Level
from fleet.config.scope import Criticality
from fleet.findings.instructions import instructions, texts_of
from sandbox.spec import SAFE, Effect, ToolSpec
from sandbox.tools import TOOLS

REVIEWED = date(2026, 11, 28)
"""When a person last read these scores against the tools: each quarter, and with each new one."""
REVIEW_DAYS = 92
_FLOORS: tuple[tuple[int, Level], ...] = ((8, "low"), (6, "medium"), (3, "high"), (0, "critical"))
_WEIGHTS = (0.3, 0.4, 0.3)
FILE, ATTACK = "file", "attack"
_FILES = re.compile(
    r"(?i)(?:^|[/\\])(?:\.(?!well-known(?:[/\\]|$))[a-z][\w.-]*|id_(?:rsa|dsa|ecdsa|ed25519)|wp-config[\w.-]*"
    r"|web\.config|passwd|shadow|etc/group|host\.conf|debug/vars|metrics|heapdump"
    r"|actuator/(?:env|configprops|httptrace))(?:[/\\\x00]|$)"
    r"|\.(?:sql|sqlite3?|db|bak|backup|old|orig|save|swp|dump|log|pem|key|p12|pfx|kdbx|env|ini|conf|tfstate"
    r"|tar|tgz|gz|7z|rar|zip|mbox|pst)$|~$"
)
"""Settings, keys, copies, logs, and what holds other people's data or mail."""
_PAYLOAD = re.compile(
    r"<[A-Za-z!?/]|javascript:|\bon[a-z]{4,12}=|\.\.[/\\;]|%2e%2e|\$[({]|\{\{|#\{|<%|\[\[|[\r\n\x00]|\bevil"
    r"|['\"] (?:and|or) ['\"]?\d|\b(?:and|or) \d+=|[;|] ?(?:expr|curl|wget)\b|__proto__|\bpasswd\b|\.test\b",
    re.IGNORECASE,
)
_ODD = re.compile(r"['\"<>{}|\\^`;$\x00-\x1f\u202e]|" + _PAYLOAD.pattern, re.IGNORECASE)


_CHANGING = re.compile(
    r"(?i)\b(?:delete|remove|wipe|drop|burn|release|transfer|send|pay|withdraw|grant|revoke|set|reset|publish"
    r"|deploy|write)_[a-z]+"
)
"""Names of tools that change something."""


@dataclass(frozen=True, slots=True)
class Technique:
    """One thing that a call can be, with its scores and how it is undone."""

    name: str
    confidentiality: int
    integrity: int
    availability: int
    undone: str
    why: str

    @property
    def scores(self) -> tuple[int, int, int]:
        return self.confidentiality, self.integrity, self.availability

    @property
    def level(self) -> Level:
        """By the dimension of which least is left."""
        return next(level for floor, level in _FLOORS if min(self.scores) >= floor)

    def __str__(self) -> str:
        return f"{self.level} {'/'.join(map(str, self.scores))}"

    @property
    def weighted(self) -> float:
        """The mean by weights, for comparing techniques of one level."""
        return round(sum(score * weight for score, weight in zip(self.scores, _WEIGHTS, strict=True)), 1)

    def at(self, criticality: Criticality, effect: Effect) -> Technique:
        """The same at a host on which more hangs: acts count one worse in production, everything two worse
        where a host is critical."""
        less = (
            2 if criticality == "critical" else int(effect is Effect.ACT and criticality != "non-production")
        )
        kept = [max(0, score - less) for score in self.scores]
        return replace(self, confidentiality=kept[0], integrity=kept[1], availability=kept[2])


def techniques() -> tuple[Technique, ...]:
    """Everything that the fleet can do, by tools."""
    return tuple(_technique(spec, made) for spec in TOOLS.values() for made in spec.impacts)


def technique_of(tool: str, effect: Effect, args: Mapping[str, Any]) -> Technique | None:
    """What a call is, the worst where it is several things; None when nobody has classified it."""
    spec = TOOLS.get(tool)
    method, kind = str(args.get("method", "GET")), "act" if effect is Effect.ACT else "look"
    if effect is Effect.ACT and method in SAFE:  # a header makes it another one
        method = "DELETE"
    made = next((made for made in ("", method, kind) if spec and made in spec.impacts), None)
    if spec is None or made is None:
        return None
    shape = shape_of(args) if ATTACK in spec.impacts else ""
    return min((_technique(spec, one) for one in (made, shape or made)), key=lambda one: min(one.scores))


def shape_of(args: Mapping[str, Any]) -> str:
    """What is asked of a page, an agent or a server of tools, by what is written into the request: FILE for
    what is not for visitors, ATTACK for what no visitor writes, "" for neither. Spelled as a server may read
    it, in two layers of escapes. Careful rather than exact: a person is asked once too often."""
    url = urlsplit(str(args.get("url", "")))
    body = unquote_plus(unquote_plus(str(args.get("body", ""))))
    pieces = [piece.partition("=")[2] or piece for piece in url.query.split("&")]
    path, *values = (unquote(unquote(one)) for one in (url.path, *pieces, url.fragment))
    sent, fields = (
        {str(k).lower(): str(v) for k, v in given.items()} if isinstance(given, Mapping) else {}
        for given in (args.get("headers"), args.get("fields"))
    )
    values += (unquote(unquote(one)) for one in fields.values())
    given = [unquote(unquote(one)) for one in texts_of(args.get("arguments"), 8)]
    if any(_FILES.search(one) for one in (path, *values, body, *given)):
        return FILE
    elsewhere = any("://" in one and urlsplit(one.strip()).netloc != url.netloc for one in values)
    odd = elsewhere or any(_ODD.search(one) for one in (path, *values)) or _PAYLOAD.search(body) is not None
    forged = "authorization" in sent or "host" in sent or any(map(_PAYLOAD.search, sent.values()))
    return ATTACK if odd or forged or any(map(_ODD.search, given)) or steers(args) else ""


def steers(args: Mapping[str, Any]) -> bool:
    """Whether what is said to an agent is more than a question: an order to a machine, a tool that changes
    something, markup and commands, or another identity than the caller's own."""
    said = str(args.get("message", ""))
    return bool(
        args.get("token", "good") != "good"
        or any(args.get(name) for name in ("claim_from", "claim_fields", "claim_headers", "unsigned"))
        or _CHANGING.search(said)
        or _PAYLOAD.search(said.replace("\n", " "))
        or instructions(said)
    )


def _technique(spec: ToolSpec, made: str) -> Technique:
    one = spec.impacts[made]
    name = f"{spec.name} {made}".strip()
    return Technique(name, one.confidentiality, one.integrity, one.availability, one.undone, one.why)


def reviewed(today: date) -> str:
    """When the scores were reviewed last, and whether that is more than a quarter ago."""
    late = (today - REVIEWED).days > REVIEW_DAYS
    rest = f", more than {REVIEW_DAYS} days ago: look for a newer release" if late else ""
    return f"reviewed on {REVIEWED}{rest}"
