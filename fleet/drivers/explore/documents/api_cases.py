"""Requests made from an OpenAPI description by Schemathesis, as arguments of `qa_fetch`.

The library is the extra `api`, imported at first use. It only makes cases: nothing is sent from here. The
description is a stranger's, so whatever goes wrong in the library ends the operation, not the run.
"""

from __future__ import annotations

import json
import logging
import re
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from unittest.mock import patch
from urllib.parse import quote, urlencode

from sandbox.pages.page_request import MAX_SENT, OURS
from sandbox.spec import OVERRIDES, SAFE

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy
    from schemathesis import Case

VALID, INVALID = 6, 12
"""Cases of one operation and round that fit its description, and that do not."""
SECONDS = 5.0
"""Of computing, after which no further case of an operation is made; a busy machine makes as many."""
LONG = 4_000
LONG_IN_URL = 200
EDGES = (0, -1, 2**31, 2**63)
"""Whole numbers at which programs fail."""
JSON = "application/json"
FORM = "application/x-www-form-urlencoded"
_HEADER = re.compile(r"[A-Za-z0-9-]{1,64}", re.ASCII)
_VALUE = re.compile(r"[ -~]{0,1000}", re.ASCII)
_PLAIN = re.compile(r"\d{1,18}|.{0,400}%.{0,400}|.{65,}")
"""A value of a path that is folded when a finding is named: one defect, one name (oracles/echoes.py)."""
_QUOTED = re.compile(r"(?:[A-Za-z0-9._~,;-]|%[0-9A-Fa-f]{2})*", re.ASCII)
_PRIVATE = frozenset(
    {"authorization", "cookie", "x-api-key", "accept-encoding", "range", "content-type", "host"}
)
_LOG = logging.getLogger("fleet.explore")
_ONE = threading.Lock()
"""The library's folder is one for all threads."""


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """One request of an operation; `path` with its query, below the description's base."""

    method: str
    path: str
    args: Mapping[str, Any]


def lacking() -> str:
    """Why no cases can be made; "" when they can."""
    return "" if find_spec("schemathesis") else "not installed: schemathesis (pip install 'qa-fleet[api]')"


def requests(document: Mapping[str, Any], operation: str, seed: int) -> list[ApiRequest]:
    """Requests of one operation (`METHOD template`), each once; the same for the same seed."""
    made: dict[str, ApiRequest] = {}
    try:
        with _ONE, tempfile.TemporaryDirectory(prefix="qa-cases-") as folder:
            waits = True
            for number, case in enumerate(_cases(document, operation, seed, folder)):
                first = waits and any(_edges(part) for part in (case.query, case.body))  # with a whole number
                waits = waits and not first
                for one in _request(case, edges=first or number == 0):
                    made.setdefault(f"{one.path} {sorted(one.args.items())}", one)
    except Exception as error:  # a stranger's data in a library: anything may happen
        _LOG.info("no more cases of %.200s: %s", operation, type(error).__name__)
    return list(made.values())


def _cases(document: Mapping[str, Any], operation: str, seed: int, folder: str) -> Iterator[Case[Any]]:
    import schemathesis
    from hypothesis import configuration
    from hypothesis.internal.conjecture import providers
    from schemathesis import GenerationMode

    configuration.set_hypothesis_home_dir(folder)  # else it writes into the working directory
    try:
        method, _, template = operation.partition(" ")
        chosen = schemathesis.openapi.from_dict(dict(document))[template][method]
        for mode, count in ((GenerationMode.POSITIVE, VALID), (GenerationMode.NEGATIVE, INVALID)):
            # Else it parses every module of ours and takes its constants: seconds, and our words in requests.
            with patch.object(providers, "is_local_module_file", return_value=False):
                yield from _drawn(chosen.as_strategy(generation_mode=mode), count, seed)
    finally:
        configuration.set_hypothesis_home_dir(None)


def _drawn(strategy: SearchStrategy[Case[Any]], count: int, seed: int) -> list[Case[Any]]:
    """Up to `count` values of a strategy; fewer where it has none, or takes too long."""
    import hypothesis

    found: list[Case[Any]] = []
    end = time.thread_time() + SECONDS

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
        verbosity=hypothesis.Verbosity.quiet,
    )
    @hypothesis.given(case=strategy)
    def keep(case: Case[Any]) -> None:
        if time.thread_time() > end:
            raise TimeoutError
        found.append(case)

    try:
        keep()
    except Exception as error:  # also an operation without parameters: no case breaks its description
        _LOG.debug("no more cases: %r", error)
    return found


def _request(case: Case[Any], *, edges: bool = False) -> Iterator[ApiRequest]:
    """The case as a request, and with each of its texts long; with `edges` also with each number at the edges
    of numbers. Nothing for what cannot be sent as it is."""
    method, query = str(case.method).upper(), dict(case.query or {})
    path = str(case.path)
    for name, value in dict(case.path_parameters or {}).items():
        spelled = _text(value)
        if not _QUOTED.fullmatch(spelled):  # the library quotes its texts
            spelled = quote(spelled, safe="")
        if not _PLAIN.fullmatch(spelled):
            return
        path = path.replace("{" + str(name) + "}", spelled)
    args: dict[str, Any] = {} if method == "GET" else {"method": method}
    headers = {str(name): str(value) for name, value in dict(case.headers or {}).items()}
    sent = {name: value for name, value in headers.items() if _sendable(name, value)}
    args |= {"headers": sent} if sent else {}
    given = case.body if case.media_type and method not in SAFE else None
    kind = str(case.media_type or "")
    for body in (given, *_longer(given), *(_edges(given) if edges else ())):
        text = _body(body, kind)
        if text is not None and len(text) <= MAX_SENT // 4:
            yield ApiRequest(
                method, path + _query(query), args | ({"body": text, "body_type": kind} if text else {})
            )
    if edges and kind == JSON and (text := _body(given, kind)):
        yield ApiRequest(method, path + _query(query), args | {"body": text[:-1], "body_type": kind})  # cut
    if given is None:
        for other in (*_longer(query, LONG_IN_URL), *(_edges(query) if edges else ())):
            yield ApiRequest(method, path + _query(other), args)


def _longer(value: object, size: int = LONG) -> Iterator[dict[str, Any]]:
    """A table with one of its texts made long, for each of them."""
    table = value if isinstance(value, dict) else {}
    for name, inner in table.items():
        if isinstance(inner, str):
            yield table | {name: "a" * size}


def _edges(value: object) -> list[dict[str, Any]]:
    """A table with one of its whole numbers at an edge, for each of them."""
    table = value if isinstance(value, dict) else {}
    return [
        table | {name: edge}
        for name, inner in table.items()
        if isinstance(inner, int) and not isinstance(inner, bool)
        for edge in EDGES
        if edge != inner
    ]


def _body(body: object, kind: str) -> str | None:
    """The body as text; None for one that is not sent as text."""
    if body is None or type(body).__name__ == "NotSet":
        return ""
    if isinstance(body, bytes):
        return body.decode("latin-1") if body.isascii() else None
    if kind == FORM and isinstance(body, dict):
        return urlencode({str(name): _text(value) for name, value in body.items()}, errors="replace")
    return json.dumps(body) if kind.partition(";")[0].endswith("json") else None


def _query(query: Mapping[str, Any]) -> str:
    pairs = [
        (str(name), _text(one))
        for name, value in query.items()
        for one in (value if isinstance(value, list) else [value])
    ]
    return "?" + urlencode(pairs, quote_via=quote, errors="replace") if pairs else ""


def _text(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text.encode("utf-8", "replace").decode()


def _sendable(name: str, value: str) -> bool:
    low = name.lower()
    known = low in OURS or low in OVERRIDES or low in _PRIVATE
    return not known and bool(_HEADER.fullmatch(name) and _VALUE.fullmatch(value))
