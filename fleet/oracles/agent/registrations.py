"""Oracles of how an agent is registered (ERC-8004): its file, and what that says beside what is there. Pure.

A question is [what a service answered, the registration that names it], or the registration alone. What a
file does not say, and what could not be looked at, is no finding.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from fleet.oracles.model import Exchange, Facts, Observation, Oracle, observed
from fleet.severity import Severity
from fleet.text import counted, line
from sandbox.tools.qa_registry import REGISTRATION_PAGE, names_back

oracle = partial(Oracle, judges=("registration",), surface="on-chain")
GONE = (404, 410)
SHUT = (401, 403)
_REGISTRY, _PAYEE, _OTHER = f"eip155:1:0x{'a' * 40}", "0x" + "ab" * 20, "0x" + "cd" * 20
_CARD = "{site}/.well-known/agent-card.json"
_SERVICE = {"name": "A2A", "endpoint": _CARD, "version": "1.0"}


def _registered(**result: object) -> Exchange:
    """An exchange of an example."""
    said = {"ok": True, "registry": _REGISTRY, "file_read": True, "services": [_SERVICE]}
    return Exchange("qa_registry", {"agent": 7}, said | result)


def _fetched(status: int, text: str = "", url: str = _CARD) -> Exchange:
    return Exchange("qa_fetch", {"url": url}, {"ok": status < 400, "status": status, "text": text})


def _quoted(payee: str = _PAYEE) -> Exchange:
    terms = {"ok": True, "status": 402, "quoted": True, "payee": payee, "amount": 9}
    return Exchange("qa_pay", {"url": "{site}/reports"}, terms)


def _agent(last: Exchange) -> str:
    return f"agent {last.args.get('agent')}"


def _seen(seen: Sequence[Exchange], title: str, key: str, *fields: str, claim: str = "") -> Observation:
    where = {"route": _agent(seen[-1])} | ({"claim": claim} if claim else {})
    led = tuple(range(len(seen) - 1))
    return observed(
        f"{_agent(seen[-1])}{title}",
        f"{key} {_agent(seen[-1])} {claim}".strip(),
        *fields,
        led=led,
        where=where,
    )


def _object(text: object) -> Mapping[str, Any]:
    try:
        said = json.loads(str(text))
    except (ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}


def _service(seen: Sequence[Exchange], facts: Facts) -> Mapping[str, Any] | None:
    """The service that the call before the registration asked for; None for another call."""
    if len(seen) < 2 or not {"page", "mcp"} & set(seen[-2].kinds):
        return None
    asked = facts.actual(str(seen[-2].args.get("url", ""))).rstrip("/")
    for one in seen[-1].result.get("services") or ():
        if isinstance(one, Mapping) and facts.actual(str(one.get("endpoint", ""))).rstrip("/") == asked:
            return one
    return None


def _answer(one: Exchange, name: str) -> str:
    """What a service answered, if it was not its own word: `""` for what no one can tell."""
    status, result = one.result.get("status"), one.result
    if one.tool == "qa_mcp":
        served = result.get("ok") is True or status in SHUT
        return "served" if served else f"answers {status}" if result.get("error_class") == "http" else ""
    if status in GONE:
        return f"answers {status}"
    if status != 200:
        return ""
    card = _object(result.get("text"))
    if name.upper() != "A2A" or (card.get("name") and (card.get("url") or card.get("supportedInterfaces"))):
        return "served"
    whole = len(str(result.get("text"))) < 60_000
    return "shows no card of an agent" if whole and _is_card(one) else ""


def _is_card(one: Exchange) -> bool:
    """Whether a URL is one of a card: a client of another one looks for the card elsewhere too."""
    return str(one.args.get("url", "")).partition("?")[0].endswith(".json")


@oracle(
    id="registration-file",
    says="an agent's URI in the registry leads to its registration",
    severity=Severity.MEDIUM,
    example=(_registered(fault="its file answers 404", services=[]),),
    control=(_registered(fault=""),),
)
def registration_file(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    if len(seen) == 1 and (fault := str(seen[-1].result.get("fault") or "")):
        yield _seen(seen, f": {line(fault, 80)}", "registration-file", "fault")


@oracle(
    id="registration-names",
    says="a registration and its hosts name the agent that names them",
    severity=Severity.MEDIUM,
    example=(_registered(names_back="others"),),
    control=(_registered(names_back="this"),),
)
def registration_names(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """The agent's file; and the proof of a host, which is optional: only one of others alone is wrong."""
    last, agent = seen[-1], seen[-1].args.get("agent")
    if len(seen) == 1 and last.result.get("names_back") == "others":
        title = ": its file names other agents alone"
        yield _seen(seen, title, "registration-names", "names_back", claim="file")
    if len(seen) == 1 and last.result.get("validates") == "others":
        title = ": the Validation registry is of another Identity registry"
        yield _seen(seen, title, "registration-names", "validates", claim="validation registry")
    if len(seen) == 1 and (others := last.result.get("misplaced")):
        title = f": {counted(len(others), 'validation')} listed for it of another agent"
        yield _seen(seen, title, "registration-names", "misplaced", claim="validation")
    if len(seen) < 2 or seen[-2].tool != "qa_fetch" or type(agent) is not int:
        return
    url, status = str(seen[-2].args.get("url", "")), seen[-2].result.get("status")
    if status == 200 and url.endswith(REGISTRATION_PAGE):
        said = _object(seen[-2].result.get("text"))
        if names_back(said, agent, str(last.result.get("registry"))) == "others":
            title = f": {line(url, 100)} names other agents alone"
            yield _seen(seen, title, "registration-names", "registry", claim="host")


@oracle(
    id="registration-service",
    says="what a registration names answers as what it is named as",
    severity=Severity.MEDIUM,
    example=(_fetched(404), _registered()),
    control=(_fetched(200, '{"name": "fern", "url": "/a2a"}'), _registered()),
)
def registration_service(seen: Sequence[Exchange], facts: Facts) -> Iterator[Observation]:
    one = _service(seen, facts)
    if one is None or seen[-1].result.get("active") is False:
        return
    name, answer = str(one.get("name")), _answer(seen[-2], str(one.get("name")))
    if answer not in ("", "served"):
        title = f": {line(name, 20)} at {line(str(seen[-2].args['url']), 100)} {answer}"
        yield _seen(seen, title, "registration-service", "services", claim=line(name, 20))


@oracle(
    id="registration-inactive",
    says="an agent that its registration calls inactive does not answer",
    severity=Severity.MEDIUM,
    example=(_fetched(200, '{"name": "fern", "url": "/a2a"}'), _registered(active=False)),
    control=(_fetched(404), _registered(active=False)),
)
def registration_inactive(seen: Sequence[Exchange], facts: Facts) -> Iterator[Observation]:
    """Of agents and MCP servers: a page may stay where it was."""
    one = _service(seen, facts)
    name = str(one.get("name")) if one else ""
    if name.upper() not in ("A2A", "MCP") or seen[-1].result.get("active") is not False:
        return
    if _answer(seen[-2], name) == "served" and seen[-2].result.get("ok"):
        title = f" is inactive by its registration, and its {line(name, 20)} answers"
        yield _seen(seen, title, "registration-inactive", "active", claim=line(name, 20))


@oracle(
    id="registration-wallet",
    says="who is paid is the wallet that the registry names",
    severity=Severity.HIGH,
    example=(_quoted(_OTHER), _registered(wallet=_PAYEE, x402=True)),
    control=(_quoted(_PAYEE), _registered(wallet=_PAYEE, x402=True)),
)
def registration_wallet(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """Without x402 in the file the agent may be another thing than what is sold there."""
    if len(seen) < 2 or seen[-2].result.get("quoted") is not True or seen[-1].result.get("x402") is not True:
        return
    payee, wallet = str(seen[-2].result.get("payee", "")), str(seen[-1].result.get("wallet") or "")
    if payee.lower() != wallet.lower():
        wanted = f"not its wallet, {wallet}" if wallet else "and it has no wallet"
        title = f": {line(str(seen[-2].args['url']), 80)} pays {line(payee, 44)}, {wanted}"
        yield _seen(seen, title, "registration-wallet", "wallet")


@oracle(
    id="registration-x402",
    says="a registration says whether its agent takes payments",
    severity=Severity.LOW,
    example=(_quoted(), _registered(x402=False)),
    control=(_quoted(), _registered(x402=True, wallet=_PAYEE)),
)
def registration_x402(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    if len(seen) > 1 and seen[-2].result.get("quoted") is True and seen[-1].result.get("x402") is False:
        title = f" takes none, and {line(str(seen[-2].args['url']), 80)} asks for one"
        yield _seen(seen, title, "registration-x402", "x402")
