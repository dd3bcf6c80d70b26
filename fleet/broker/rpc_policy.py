"""JSON-RPC that may leave a jail: a fixed list of reads, parsed strictly and rewritten.

Pure. The bytes sent upstream are never the bytes received: anything that a second parser could read
differently (duplicate keys, escapes, nesting) is refused or normalised.
"""

from __future__ import annotations

import json
import re
from typing import Any

from sandbox import strict_json

METHODS = frozenset(
    (
        "eth_blockNumber",
        "eth_call",
        "eth_chainId",
        "eth_estimateGas",
        "eth_gasPrice",
        "eth_getBalance",
        "eth_getBlockByNumber",
        "eth_getCode",
        "eth_getLogs",
        "eth_getTransactionByHash",
        "eth_getTransactionCount",
        "eth_getTransactionReceipt",
        "eth_simulateV1",
    )
)
"""Reads only; every other method is refused, including a node's new ones. A simulation takes no signature
and leaves nothing behind."""

MAX_BATCH = 64
MAX_SIMULATED = 112
"""Calls of one simulation."""
MAX_GAS = 500_000_000
"""Gas of all calls of one simulation: what one full block may cost a node."""
MAX_CALLDATA = 256 << 10
"""Bytes of all calls of one simulation."""
MAX_CODE = 24_576
"""Bytes of code put in place for a simulation (EIP-170)."""
MAX_OVERRIDES = 4

_KEYS = frozenset(("jsonrpc", "id", "method", "params"))
_QUANTITY = re.compile(r"0x[0-9a-fA-F]{1,16}", re.ASCII)
_AMOUNT = re.compile(r"0x[0-9a-fA-F]{1,64}", re.ASCII)
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}", re.ASCII)
_BYTES = re.compile(r"0x(?:[0-9a-fA-F]{2})*", re.ASCII)


class Denied(Exception):
    """A request that goes nowhere; `rule` is machine-readable, `status` the HTTP answer."""

    def __init__(self, rule: str, message: str, *, status: int = 403) -> None:
        super().__init__(message)
        self.rule, self.status = rule, status


def rewrite(body: bytes, *, methods: frozenset[str], max_log_range: int) -> tuple[bytes, tuple[str, ...]]:
    """The rewritten request and its methods; Denied when any element is not permitted."""
    try:
        parsed = strict_json.loads(body.decode("utf-8"), pairs=_unique)
    except ValueError:
        raise Denied("rpc-shape", "not JSON-RPC", status=400) from None
    calls = parsed if isinstance(parsed, list) else [parsed]
    if not calls:
        raise Denied("rpc-shape", "an empty batch")
    if len(calls) > MAX_BATCH:
        raise Denied("rpc-batch", f"more than {MAX_BATCH} calls in one batch")
    checked = [_check(call, methods, max_log_range) for call in calls]
    clean = json.dumps(checked if isinstance(parsed, list) else checked[0], separators=(",", ":"))
    return clean.encode(), tuple(call["method"] for call in checked)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise Denied("rpc-duplicate-key", "the same key twice in one object")
    return found


def _check(call: object, methods: frozenset[str], max_log_range: int) -> dict[str, Any]:
    if not isinstance(call, dict) or not _KEYS.issuperset(call) or call.get("jsonrpc") != "2.0":
        raise Denied("rpc-shape", "each call is an object of jsonrpc 2.0, id, method, params")
    method, params, identity = call.get("method"), call.get("params", []), call.get("id")
    if not isinstance(method, str) or method not in methods:
        raise Denied("rpc-method", f"method {str(method)[:60]!r} is not on the list")
    if isinstance(identity, bool) or not isinstance(identity, str | int) or len(str(identity)) > 64:
        raise Denied("rpc-shape", "id must be a short string or a number")
    if not isinstance(params, list):
        raise Denied("rpc-shape", "params must be an array")
    if method == "eth_estimateGas" and len(params) > 2:
        raise Denied("rpc-params", f"{method} without overrides takes two parameters")
    if method == "eth_call" and len(params) > 2:
        if len(params) != 3:  # code put in place for its length: rebuilt as a simulation's
            raise Denied("rpc-params", "eth_call takes at most three parameters")
        message = _message(params[0])
        if int(message["gas"], 16) > MAX_GAS or len(message["data"]) // 2 > MAX_CALLDATA:
            raise Denied("rpc-params", "an eth_call of too much gas or too many bytes")
        params = [message, _block(params[1]), _overrides(params[2])]
    if method == "eth_simulateV1":
        params = _simulation(params)
    if method == "eth_getLogs":
        _check_range(params, max_log_range)
    return {"jsonrpc": "2.0", "id": identity, "method": method, "params": params}


def _check_range(params: list[Any], limit: int) -> None:
    """Require both ends as numbers, or one block: only then is the range known here."""
    query = params[0] if len(params) == 1 else None
    if not isinstance(query, dict):
        raise Denied("rpc-params", "eth_getLogs takes one filter")
    if "blockHash" in query and not {"fromBlock", "toBlock"} & query.keys():
        return
    ends = [query.get("fromBlock"), query.get("toBlock")]
    if ends == ["latest", "latest"]:
        return
    numbers = [int(end, 16) for end in ends if isinstance(end, str) and _QUANTITY.fullmatch(end)]
    if len(numbers) != 2:
        raise Denied("rpc-log-range", "eth_getLogs needs fromBlock and toBlock as numbers")
    first, last = numbers
    if not 0 <= last - first < limit:
        raise Denied("rpc-log-range", f"eth_getLogs over {last - first + 1} blocks; the cap is {limit}")


def _simulation(params: list[Any]) -> list[Any]:
    """One block of calls on top of a given one, rebuilt from the parts that are known here."""
    if len(params) != 2 or not isinstance(params[0], dict):
        raise Denied("rpc-params", "eth_simulateV1 takes options and a block")
    options = params[0]
    blocks = options.get("blockStateCalls")
    if set(options) != {"blockStateCalls"} or not isinstance(blocks, list) or len(blocks) != 1:
        raise Denied("rpc-params", "eth_simulateV1 takes one block of calls, and no other option")
    (block,) = blocks
    if not isinstance(block, dict) or not {"calls", "stateOverrides"}.issuperset(block):
        raise Denied("rpc-params", "a simulated block is calls and stateOverrides")
    calls = block.get("calls")
    if not isinstance(calls, list) or not 0 < len(calls) <= MAX_SIMULATED:
        raise Denied("rpc-params", f"a simulation is 1 to {MAX_SIMULATED} calls")
    clean = [_message(call) for call in calls]
    if sum(int(call["gas"], 16) for call in clean) > MAX_GAS:
        raise Denied("rpc-params", f"more than {MAX_GAS} gas in one simulation")
    if sum(len(call["data"]) // 2 for call in clean) > MAX_CALLDATA:
        raise Denied("rpc-params", f"more than {MAX_CALLDATA} bytes in one simulation")
    overrides = _overrides(block.get("stateOverrides", {}))
    return [{"blockStateCalls": [{"calls": clean, "stateOverrides": overrides}]}, _block(params[1])]


def _message(call: object) -> dict[str, str]:
    """One call: sender, target, data, gas, and value; nothing else, and each in its one spelling."""
    known = {"from": _ADDRESS, "to": _ADDRESS, "data": _BYTES, "gas": _QUANTITY, "value": _AMOUNT}
    if not isinstance(call, dict) or not known.keys() - {"value"} <= call.keys() <= known.keys():
        raise Denied("rpc-params", "a simulated call is from, to, data, gas, and value")
    return {key: _matching(call[key], form, key) for key, form in known.items() if key in call}


def _overrides(found: object) -> dict[str, dict[str, str]]:
    """Code and balance of a few accounts; neither storage nor precompiles move."""
    if not isinstance(found, dict) or len(found) > MAX_OVERRIDES:
        raise Denied("rpc-params", f"overrides are an object of at most {MAX_OVERRIDES} accounts")
    clean: dict[str, dict[str, str]] = {}
    for address, parts in found.items():
        known = {"code": _BYTES, "balance": _AMOUNT}
        if not isinstance(parts, dict) or not known.keys() >= parts.keys():
            raise Denied("rpc-params", "an override is code or balance")
        one = {key: _matching(parts[key], form, key) for key, form in known.items() if key in parts}
        if len(one.get("code", "")) > 2 + 2 * MAX_CODE:
            raise Denied("rpc-params", f"more than {MAX_CODE} bytes of code")
        clean[_matching(address, _ADDRESS, "address")] = one
    return clean


def _block(value: object) -> str:
    return "latest" if value == "latest" else _matching(value, _QUANTITY, "block")


def _matching(value: object, form: re.Pattern[str], key: str) -> str:
    if not isinstance(value, str) or form.fullmatch(value) is None:
        raise Denied("rpc-params", f"{key} in another form")
    return value
