"""An explorer's questions without jails: the guest's tool, the broker's policy, a real node."""

from __future__ import annotations

import json
import subprocess
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest

from fleet.broker.rpc_policy import METHODS, rewrite
from fleet.chain.node.abi import Function
from fleet.config import Platform
from fleet.devnet import solc
from fleet.drivers.explore.chain import explorer as chain
from fleet.drivers.explore.port import ExplorerContext
from fleet.oracles.model import Exchange, Facts, Violation
from fleet.oracles.table import judge
from fleet.runs.call.guest_protocol import bad_args, json_safe
from sandbox.chain import rpc
from sandbox.errors import Failure
from sandbox.spec import Context, Mistake
from sandbox.tools import TOOLS
from sandbox.validate import build

CONTRACTS = Path(__file__).with_name("contracts")
APP = "0x" + "ab" * 32


def compiled(source: str) -> dict[str, tuple[bytes, dict[str, str]]]:
    """Creation code and selectors by signature, of each contract in a source."""
    return {
        name: (bytes.fromhex(one["evm"]["bytecode"]["object"]), one["evm"]["methodIdentifiers"])
        for name, one in _output(source).items()
    }


def abi_of(source: str, contract: str) -> str:
    """The ABI of a contract as a file has it."""
    return json.dumps({"contractName": contract, "abi": _output(source)[contract]["abi"]})


@cache
def _output(source: str) -> dict[str, Any]:
    wanted = {"*": {"*": ["abi", "evm.bytecode.object", "evm.methodIdentifiers"]}}
    request = {
        "language": "Solidity",
        "sources": {"House.sol": {"content": source}},
        "settings": solc.SETTINGS | {"outputSelection": wanted},
    }
    command = [solc.find_node(), str(Path(solc.__file__).with_name("compile.cjs"))]
    done = subprocess.run(command, input=json.dumps(request).encode(), capture_output=True, check=True)
    answer = json.loads(done.stdout)
    assert [error["formattedMessage"] for error in answer.get("errors", [])] == []
    found: dict[str, Any] = answer["contracts"]["House.sol"]
    return found


def through_policy(
    monkeypatch: pytest.MonkeyPatch, node: str, *, lacks: frozenset[str] = frozenset()
) -> list[str]:
    """Guests of this test reach the node by the broker's policy; the methods that passed, in order."""
    passed: list[str] = []

    def post(path: str, payload: dict[str, Any], deadline: object) -> Any:
        assert path == "/rpc", path
        clean, methods = rewrite(json.dumps(payload).encode(), methods=METHODS, max_log_range=10_000)
        passed.extend(methods)
        if set(methods) & lacks:
            return {"jsonrpc": "2.0", "id": payload["id"], "error": {"code": -32601, "message": "not found"}}
        request = urllib.request.Request(node, clean, {"content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.loads(answer.read())

    monkeypatch.setattr(rpc, "_post", post)
    return passed


def asked(context: Context, args: Mapping[str, Any]) -> dict[str, Any]:
    """The answer of `qa_chain` to one call."""
    spec = TOOLS["qa_chain"]
    assert bad_args(spec, args) is None
    assert spec.run is not None
    try:
        result = spec.run(build(spec.args, json.loads(json.dumps(dict(args)))), context)
    except (Mistake, Failure) as error:
        kind = error.error_class if isinstance(error, Failure) else "bad_request"
        return {"ok": False, "error": str(error), "error_class": kind}
    return json_safe(asdict(result))  # type: ignore[no-any-return]


def context(diamond: str) -> Context:
    return Context(run="t0", prefix="qa-t0-", diamond=diamond, metadata={"app": APP}, deadline_s=30)


def explored(
    diamond: str,
    state: Mapping[str, Any] | None = None,
    *,
    face: str = "http://{name}.test/",
    seed: int = 1,
    functions: Mapping[str, Function] | None = None,
) -> tuple[list[Violation], list[Mapping[str, Any]], Mapping[str, Any]]:
    """What an explorer finds on a diamond until it has no more questions; its calls; and its state."""
    profile = {
        "name": "house",
        "chain": {"rpc": "http://127.0.0.1:1", "id": 31337, "diamond": diamond},
        "web": {"face": face, "site": "http://site.test"},
        "metadata": {"app": "house.app", "face": "house.face"},
    }
    platform = Platform.model_validate(profile)
    ground = ExplorerContext(
        platform=platform, tools=frozenset({"qa_chain"}), acts=False, functions=functions or {}
    )
    explorer = chain.make(ground, Random(seed), state or {})
    guest, facts = context(diamond), Facts.of(platform)
    calls: list[Mapping[str, Any]] = []
    found: dict[str, Violation] = {}
    while questions := explorer.ask(48):
        for question in questions:
            results: list[Mapping[str, Any]] = []
            for step in question.steps:
                calls.append(step.args)
                results.append(asked(guest, step.args))
                seen: Sequence[Exchange] = [
                    Exchange(one.tool, one.args, result)
                    for one, result in zip(question.steps, results, strict=False)
                ]
                for violation in judge(seen, facts):
                    found.setdefault(violation.sighting.signature, violation)
            explorer.learn(question, results)
    return list(found.values()), calls, explorer.state()
