"""The regression test of an item: a new file of the repository, from a template. Pure, but for the template.

Every value goes into a template as a literal of Python, whatever the template writes around it: a title or a
repro cannot become code. The text never holds its own marker, so that only a run of it can print that.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from jinja2 import StrictUndefined, TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from fleet.config.platform import Platform
from fleet.config.propose import SHIPPED_TEMPLATES
from fleet.errors import FixError
from fleet.fix.build_calls import SITE, answered_by, resolved
from fleet.fix.gate.expectations import Statement, stated
from fleet.fix.model import CommandEnd, FixTask, RegressionTest
from fleet.oracles.web import traces
from fleet.text import line
from sandbox.programs.program import EMPTY_MODULE

MAX_TEMPLATE = 64 << 10
_CALL_S = 20.0
_NAME = "test_the_defect_does_not_show"
_FIELDS = {
    "ok": "(status < 400)",
    "content_type": 'headers.get("content-type", "").partition(";")[0].strip()',
    "allow_origin": 'headers.get("access-control-allow-origin", "")',
    "location": 'headers.get("location", "")',
}
"""Of an expectation, as the shipped template reads them; the others are names there."""


class _Code(str):
    """Text that a template writes as it is: made here, of literals, never of a stranger's text."""


def regression_test(
    task: FixTask,
    platform: Platform,
    oracle: str,
    results: Sequence[Mapping[str, Any]],
    *,
    expected: str = "",
) -> RegressionTest:
    """The test of a task's item, which `results` of the base have shown to `oracle`, or, where that is "",
    not to be as `expected` (CEL); FixError when a template has no test for that. A template of the operator's
    own is a path."""
    # the name of the test function, from words of the title
    words = re.findall(r"[a-z0-9]+", task.item.title.lower())
    section = task.repository.regression
    name = f"test_{'_'.join(words[:10])[:70].rstrip('_') or 'the_defect'}"
    path = section.path.replace("{item}", task.item.fingerprint)
    if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
        raise FixError(f"the regression test would be written outside of the tree: {line(path, 120)}")
    values = {
        "item": task.item.fingerprint,
        "title": line(task.item.title, 300),
        "about": f"{line(task.item.title, 300)} (a machine wrote this test: QA item {task.item.fingerprint})",
        "name": _Code(name),
        "depth": len(PurePosixPath(path).parts) - 1,
        "calls": [{"tool": one.tool, "args": dict(one.args)} for one in task.calls],
        "oracle": oracle,
    }
    last = task.calls[-1]
    if answered_by(last) == "compiler":
        values |= _of_program(task, platform, oracle)
    else:
        values |= _of_service(task, platform, oracle, results, expected)
    text = _rendered(section.template, values).replace(_NAME, name)
    marker = f"QA-FLEET {task.item.fingerprint} SHOWN:"
    if marker in text:
        raise FixError("the template writes its marker in full: its own text would count as a failure's")
    return RegressionTest(path, text, marker)


def shown_by(test: RegressionTest, end: CommandEnd) -> str:
    """The line in which a run of the test says that the defect itself showed; "" when it failed otherwise."""
    if end.passed or end.how != "exited":
        return ""
    for text in (*end.stdout.splitlines(), *end.stderr.splitlines()):
        said = text.decode("utf-8", "replace").strip()
        if said.startswith(test.marker):
            return line(said, 300)
    return ""


def _of_program(task: FixTask, platform: Platform, oracle: str) -> dict[str, Any]:
    compiler, args = task.repository.compiler, task.calls[-1].args
    assert compiler is not None  # its repro was shown on it
    program, loads = platform.compiler.program, bool(args.get("module_hex"))
    if loads:
        given, benign = bytes.fromhex(str(args["module_hex"]).removeprefix("0x")), EMPTY_MODULE
    elif program.sample:
        given, benign = str(args.get("source", "")).encode(), program.sample.encode()
    else:
        raise FixError("the profile has no `sample`: a test needs a benign input beside the defect's")
    return {
        "command": list(compiler.loader if loads else compiler.command),
        "input": given,
        "benign": benign,
        "check": _check(task, "pytest-compiler", oracle),
        "entries": list(program.entries),
        "clean": (0, *program.clean_exits),
        "seconds": _CALL_S,
    }


def _of_service(
    task: FixTask, platform: Platform, oracle: str, results: Sequence[Mapping[str, Any]], expected: str
) -> dict[str, Any]:
    service = task.repository.service
    assert service is not None
    groups = stated(expected) if not oracle and expected else None
    shipped = task.repository.regression.template in SHIPPED_TEMPLATES
    check = "expected" if groups and shipped else _check(task, "pytest-service", oracle)
    requests = [_request(resolved(platform, call).args) for call in task.calls]
    return {
        "command": list(service.command),
        "ready": service.ready,
        "seconds": service.starts_s,
        "requests": requests,
        "check": check,
        "expected": line(expected, 300) if shipped else [list(group) for group in groups or ()],
        "condition": _Code(" and ".join(f"({' or '.join(map(_written, group))})" for group in groups or ())),
        "service": _Code("service"),
        "fixture": _Code(task.repository.regression.fixture),
        "words": _words(check, task.calls[-1].args, requests[-1][1], results[-1]),
    }


def _written(statement: Statement) -> str:
    """A statement on an answer in Python; of a stranger's text only literals."""
    field, sign, value = statement
    read, literal = _FIELDS.get(field, field), ascii(value)
    if sign in ("has", "lacks"):
        return f"{literal} {'in' if sign == 'has' else 'not in'} {read}"
    return f"{read} {sign.replace('-', ' ')} {literal}"


def _request(args: Mapping[str, Any]) -> tuple[str, str, dict[str, str], str]:
    parts = urlsplit(str(args["url"]).removeprefix(SITE))
    path = parts.path + (f"?{parts.query}" if parts.query else "")
    headers = {str(name): str(value) for name, value in dict(args.get("headers", {})).items()}
    if origin := args.get("origin"):
        headers["Origin"] = str(origin)
    body = str(args.get("body", ""))
    if args.get("fields"):
        body, headers["Content-Type"] = json.dumps(args["fields"]), "application/json"
    elif body:
        headers["Content-Type"] = str(args.get("body_type", "text/plain"))
    return str(args.get("method", "GET")), path, headers, body


def _words(check: str, args: Mapping[str, Any], path: str, result: Mapping[str, Any]) -> str:
    """What the answer must not hold."""
    if check == "words":
        found = traces.find(str(result.get("text", "")))
        if found is None:
            raise FixError("what the answer showed is not in its text: a template of your own is needed")
        return found.words
    if check == "origin":
        return str(args.get("origin", ""))
    if check in ("markup", "location"):
        given = [value for _, value in parse_qsl(urlsplit(path).query)]
        canary = str(args.get("canary", ""))
        sent = [value for value in given if (canary or "//") in value]
        if not sent:
            raise FixError("what was sent is not a parameter: a template of your own is needed")
        return sent[0] if check == "markup" else re.sub(r"^[a-z]*:?[/\\]*", "", sent[0])
    return ""


def _check(task: FixTask, template: str, oracle: str) -> str:
    """How a shipped template tells the defect; "" for one of the operator's, which gets the oracle's id."""
    if task.repository.regression.template not in SHIPPED_TEMPLATES:
        return ""
    table = tomllib.loads(files(__package__).joinpath("templates/checks.toml").read_text("utf-8"))
    if oracle not in table[template]:
        raise FixError(
            f"no shipped template tests for {oracle or 'what a probe expects'}",
            remedy="write one, and name its path as `template` of [repositories.NAME.regression]",
        )
    return str(table[template][oracle])


def _literal(value: object) -> str:
    return value if isinstance(value, _Code) else ascii(value)


def _rendered(template: str, values: Mapping[str, Any]) -> str:
    if template in SHIPPED_TEMPLATES:
        text = files(__package__).joinpath(f"templates/{template}.jinja").read_text("utf-8")
    else:
        try:
            text = Path(template).read_bytes()[:MAX_TEMPLATE].decode()
        except (OSError, ValueError) as error:
            raise FixError(f"the template {line(template, 120)} cannot be read: {error}") from None
    environment = ImmutableSandboxedEnvironment(
        undefined=StrictUndefined, keep_trailing_newline=True, finalize=_literal, autoescape=False
    )
    try:
        return environment.from_string(text).render(values)
    except (TemplateError, OverflowError) as error:
        raise FixError(f"the template {line(template, 120)}: {line(str(error), 200)}") from None
