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
    )
)
"""Reads only; every other method is refused, including a node's new ones."""

MAX_BATCH = 64

_KEYS = frozenset(("jsonrpc", "id", "method", "params"))
_QUANTITY = re.compile(r"0x[0-9a-fA-F]{1,16}", re.ASCII)


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
    if method in ("eth_call", "eth_estimateGas") and len(params) > 2:
        raise Denied("rpc-params", f"{method} without overrides takes two parameters")
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
    first, last = (_quantity(end) for end in ends)
    if first is None or last is None:
        raise Denied("rpc-log-range", "eth_getLogs needs fromBlock and toBlock as numbers")
    if not 0 <= last - first < limit:
        raise Denied("rpc-log-range", f"eth_getLogs over {last - first + 1} blocks; the cap is {limit}")


def _quantity(value: object) -> int | None:
    return int(value, 16) if isinstance(value, str) and _QUANTITY.fullmatch(value) else None
