"""Cuts the part of GitHub's OpenAPI description that the fleet uses out of the whole.

    npm pack @octokit/openapi@23.0.2 && tar xzf octokit-openapi-23.0.2.tgz
    python -m tests.fix.github_slice package/generated/api.github.com.json

The result is `github_openapi.json`: the operations of the table with all that they refer to, in JSON Schema
(`nullable` written as a type), without prose. Its licence is in `github_openapi.LICENSE`.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fleet.fix.publish.github_operations import OPERATIONS

SLICE = Path(__file__).with_name("github_openapi.json")
_PROSE = frozenset(
    {"description", "summary", "externalDocs", "tags", "x-github", "x-octokit", "x-multi-segment"}
)


def shape(path: str) -> str:
    """A path template without the names of its parameters."""
    return re.sub(r"\{[^}]*\}", "{}", path.replace("{repository}", "{owner}/{repo}"))


def cut(whole: Mapping[str, Any]) -> dict[str, Any]:
    """The slice: `paths` by template and method, and `components`."""
    wanted = {(shape(one.path), one.method.lower()) for one in OPERATIONS}
    paths: dict[str, Any] = {}
    for path, methods in whole["paths"].items():
        for method, operation in methods.items():
            if (shape(path), method) in wanted:
                paths.setdefault(path, {})[method] = _plain(operation, top=True)
    found: dict[str, Any] = {"info": whole["info"] | {"x-licence": "MIT"}, "paths": paths, "components": {}}
    waiting = list(_references(paths))
    while waiting:
        kind, name = waiting.pop().removeprefix("#/components/").split("/")
        kept = found["components"].setdefault(kind, {})
        if name not in kept:
            kept[name] = _plain(whole["components"][kind][name], top=kind != "examples")
            waiting += _references(kept[name])
    return found


def _plain(part: Any, *, top: bool) -> Any:
    """Without prose (`top`: not inside of a table of properties, whose keys are names, nor an example)."""
    if isinstance(part, list):
        return [_plain(one, top=top) for one in part]
    if not isinstance(part, dict):
        return part
    kept = {
        key: one
        if key in ("example", "examples", "value", "default", "enum")
        else _plain(one, top=key != "properties")
        for key, one in part.items()
        if not (top and key in _PROSE)
    }
    if top and kept.pop("nullable", False):
        if isinstance(kept.get("type"), str):
            kept["type"] = [kept["type"], "null"]
            if "enum" in kept:
                kept["enum"] = [*kept["enum"], None]
        else:
            kept = {"anyOf": [kept, {"type": "null"}]}
    return kept


def _references(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        if isinstance(part.get("$ref"), str):
            yield part["$ref"]
        for one in part.values():
            yield from _references(one)
    elif isinstance(part, list):
        for one in part:
            yield from _references(one)


if __name__ == "__main__":
    SLICE.write_text(json.dumps(cut(json.loads(Path(sys.argv[1]).read_text())), separators=(",", ":")) + "\n")
