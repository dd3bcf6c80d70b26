"""The oracles: properties of one answer of any healthy platform to any request. Pure.

Each judges one answer of one tool, to any driver: a probe, a model, an outside agent. It may only require
what no choice of arguments can make false on a healthy platform, so it first removes what a caller can put
there (a secret in its own page, an echoed text, its own deadline). A violation is named after the
observation, and its signature is the defect's identity.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

from fleet.findings.sighting import Sighting, lead, template
from fleet.oracles import traces
from fleet.personas.model import Severity, Surface
from fleet.personas.needs import strings
from fleet.text import line
from sandbox.tools import TOOLS

ELSEWHERE = frozenset({501, 502, 503, 504, 507})
"""Server statuses that do not blame the page: not offered, a gateway's outage, a full disk."""
PLAIN = 2_000
"""Characters: a longer text of status 200 may well be a document about errors."""
SHORTEST_S = 1.0
"""A compile with a shorter deadline proves nothing when it does not end."""

_OWN = re.compile(r"\bqa-[a-z0-9]{4,40}-\d{1,4}\b|\{name\}")


@dataclass(frozen=True, slots=True)
class Violation:
    """One answer that no healthy platform gives. `fields` are the result's fields that show it.

    `forgeable`: a malicious driver could have put there what it shows (a name's greeting, say), so a person
    reviews it if a driver chose the calls.
    """

    oracle: str
    severity: Severity
    surface: Surface
    sighting: Sighting
    fields: frozenset[str]
    forgeable: bool = False


Args = Mapping[str, Any]
Judge = Callable[[str, Args, Args], Iterator[Violation]]
"""What was asked in a few words, the arguments as the repro has them, and the result."""


def judge(tool: str, args: Args, result: Args) -> tuple[Violation, ...]:
    """Judge one answer by every oracle, each defect once: a trace says more than its status."""
    spec = TOOLS.get(tool)
    oracles = [oracle for word in (spec.judged_as if spec else ()) for oracle in ORACLES[word]]
    found = tuple(one for oracle in oracles for one in oracle(lead(tool, args), args, result))
    told = {one.oracle for one in found}
    return tuple(one for one in found if one.oracle != "server-error" or "trace" not in told)


def _broken_compiler(asked: str, args: Args, result: Args) -> Iterator[Violation]:
    outcome = result.get("outcome")
    if outcome not in ("panic", "crash"):
        return
    said = line(str(result.get("error", "")), 140)
    how = f"{asked} ends in a {outcome} (status {result.get('exit_code')}): {said}".rstrip(": ")
    known = template(said)
    seen = Sighting(how, f"compiler-broken {asked} {outcome} {known}", whole=bool(known))
    yield Violation("compiler-broken", "high", "compiler", seen, frozenset({"outcome"}))


def _endless_compiler(asked: str, args: Args, result: Args) -> Iterator[Violation]:
    if result.get("outcome") == "hang" and float(args.get("timeout_s", 5.0)) >= SHORTEST_S:
        seen = Sighting(f"{asked} does not end on this input", f"compiler-endless {asked}")
        yield Violation("compiler-endless", "high", "compiler", seen, frozenset({"outcome"}))


def _invalid_module(asked: str, args: Args, result: Args) -> Iterator[Violation]:
    if result.get("outcome") == "accepted" and args.get("source") and result.get("valid") is False:
        size = result.get("size", 0)
        title = f"the compiler accepts a program and writes a module of {size} bytes that does not validate"
        yield Violation(
            "module-invalid", "high", "compiler", Sighting(title, "module-invalid"), frozenset({"valid"})
        )


def _server_error(asked: str, args: Args, result: Args) -> Iterator[Violation]:
    status = result.get("status", 0)
    if not isinstance(status, int) or status < 500 or status in ELSEWHERE:
        return
    seen = Sighting(f"{asked} answers {status}", f"server-error {_route(args)} {status}", whole=True)
    yield Violation("server-error", "medium", "ux", seen, frozenset({"status"}))


def _secret(asked: str, args: Args, result: Args) -> Iterator[Violation]:
    """A private key in a public answer; except in a page of a name that a run minted, where the driver may
    put one."""
    kinds = result.get("secrets", ())
    if "private-key" not in kinds or any(_OWN.search(text) for text in strings(args)) or _long_hex(args):
        return
    seen = Sighting(f"{asked} shows a private key", f"secret {_route(args)} private-key", whole=True)
    yield Violation("secret", "critical", "security", seen, frozenset({"secrets"}), forgeable=True)


def _fetch_trace(asked: str, args: Args, result: Args) -> Iterator[Violation]:
    text = str(result.get("text", ""))
    if int(result.get("status", 0)) >= 400 or (
        "html" not in str(result.get("content_type", "")) and len(text) < PLAIN
    ):
        yield from _trace(asked, _route(args), args, result, text)


def _call_trace(asked: str, args: Args, result: Args) -> Iterator[Violation]:
    if int(result.get("status", 0)) >= 400:
        text = f"{result.get('error', '')}\n{result.get('reply', '')}"
        yield from _trace(asked, "call", args, result, text)


def _trace(asked: str, where: str, args: Args, result: Args, text: str) -> Iterator[Violation]:
    found = traces.find(text)
    if found is None or any(found.words in unquote(given) for given in strings(args)):
        return
    mild = found.kind == "an operating-system error" and int(result.get("status", 0)) < 500
    severity: Severity = "low" if mild else "medium"
    title = f"{asked} answers {result.get('status')} with {found.kind}: {line(found.words, 80)}"
    key = f"trace {where} {found.kind} {template(found.words)}"
    fields = frozenset({"text", "error", "reply"})
    yield Violation("trace", severity, "ux", Sighting(title, key, whole=True), fields, forgeable=True)


def _paid_refusal(asked: str, args: Args, result: Args) -> Iterator[Violation]:
    status, charged = result.get("status", 0), result.get("charged", 0)
    if status >= 400 and charged > 0:
        title = f"{asked} is refused with {status}, and {charged} wei of credit are charged"
        seen = Sighting(title, f"paid-refusal {status}")
        yield Violation("paid-refusal", "high", "on-chain", seen, frozenset({"charged"}))


def _lost_publish(asked: str, args: Args, result: Args) -> Iterator[Violation]:
    if result.get("published") and not result.get("app_read_back"):
        seen = Sighting("a publish is reported, and the app does not read back", "lost-publish", whole=True)
        yield Violation("lost-publish", "high", "on-chain", seen, frozenset({"app_read_back"}))


def _route(args: Args) -> str:
    """A URL without its query: the page, not the question."""
    parts = urlsplit(_OWN.sub("{name}", str(args.get("url", ""))))
    return f"{parts.scheme}://{parts.netloc}{parts.path}" if parts.scheme else parts.path


def _long_hex(args: Args) -> bool:
    """Whether an argument contains a possible key: an echo of it is not a leak."""
    return any(re.search(r"[0-9a-fA-F]{64}|PRIVATE", unquote(text)) for text in strings(args))


ORACLES: Mapping[str, tuple[Judge, ...]] = {
    "program": (_broken_compiler, _endless_compiler, _invalid_module),
    "page": (_server_error, _secret, _fetch_trace),
    "reply": (_paid_refusal, _call_trace),
    "publication": (_lost_publish,),
}
"""By the word of a tool's `judged_as`."""
