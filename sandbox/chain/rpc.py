"""The broker's services as functions: reads of the chain, a transaction, a call token."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass
from typing import Any

from sandbox import strict_json
from sandbox.chain import abi
from sandbox.chain.contract import VIEWS
from sandbox.errors import Deadline, Failure
from sandbox.http import HttpReply, HttpRequest, send
from sandbox.spec import Context
from sandbox.text import clean, decode

RPC_SECONDS = 10.0
"""Longest one read may take inside the call's deadline."""

_SAID = ("refused", "unreachable", "timeout", "busy", "too_large", "reverted", "oog")
"""Classes of failure that the broker names itself."""

ZERO = "0x" + "0" * 40

_ids = itertools.count(1)


class Reverted(Failure):
    """The chain executed the call and said no; the message is the reason in words."""

    def __init__(self, message: str) -> None:
        super().__init__("reverted", message)


@dataclass(frozen=True, slots=True)
class TxReceipt:
    """The result of a transaction: `status` 1 is the only success."""

    tx: str
    status: int
    gas_used: int
    block: int
    reverted: str


def call(method: str, params: list[Any], deadline: Deadline) -> Any:  # noqa: ANN401  any JSON
    """`result` of one JSON-RPC call; raises Reverted, or Failure with the node's own words.

    A faulty node is `unreachable`: a garbled reply is not an answer of the contract.
    """
    request = {"jsonrpc": "2.0", "id": next(_ids), "method": method, "params": params}
    answer = _post("/rpc", request, deadline.within(RPC_SECONDS))
    if not isinstance(answer, dict) or answer.get("id") not in (request["id"], str(request["id"])):
        raise Failure("unreachable", "the node did not answer in JSON-RPC")
    if answer.get("error") is not None:
        raise _error(answer["error"])
    if "result" not in answer:
        raise Failure("garbage", "the node answered without a result")
    return answer["result"]


def view(
    ctx: Context, name: str, *args: abi.Value, deadline: Deadline, block: str = "latest"
) -> tuple[abi.Value, ...]:
    """The decoded values of one view of the diamond."""
    function = VIEWS[name]
    data = abi.encode_call(function, args)
    raw = call("eth_call", [{"to": ctx.diamond, "data": data}, block], deadline)
    try:
        return abi.decode(function.gives, _hex(raw))
    except abi.AbiError as error:
        raise Failure("garbage", f"{name}: {error}") from None


def answered(method: str, params: list[Any], deadline: Deadline) -> bytes | None:
    """The bytes of one read; None when it reverts."""
    try:
        return _hex(call(method, params, deadline))
    except Reverted:
        return None


def code_at(address: str, block: str, deadline: Deadline) -> bytes:
    """The code of a contract."""
    return _hex(call("eth_getCode", [address, block], deadline))


def estimate(key: str, to: str, data: str, ctx: Context, deadline: Deadline) -> int:
    """Gas by the node's own estimate; raises Reverted when the transaction would fail."""
    return number(call("eth_estimateGas", [{"from": ctx.keys[key], "to": to, "data": data}], deadline))


def submit(key: str, to: str, data: str, gas: int, deadline: Deadline) -> TxReceipt:
    """One transaction under a throwaway key, mined; the signer outside decides whether to sign it."""
    answer = _post("/tx", {"key": key, "to": to, "data": data, "gas": gas, "value": "0"}, deadline)
    if not isinstance(answer, dict) or not isinstance(answer.get("status"), int):
        raise _service_error(answer)
    return TxReceipt(
        tx=str(answer.get("tx", "")),
        status=answer["status"],
        gas_used=int(answer.get("gas_used", 0)),
        block=int(answer.get("block", 0)),
        reverted=clean(str(answer.get("reverted", "")), 200),
    )


def token(key: str, route: str, deadline: Deadline, age: int = 0) -> str:
    """A fresh call token, asked for again before every request; `age` in seconds dates it back."""
    asked = {"key": key, "route": route} | ({"age": age} if age else {})
    answer = _post("/auth", asked, deadline)
    if not isinstance(answer, dict) or not isinstance(answer.get("token"), str):
        raise _service_error(answer)
    return str(answer["token"])


def payment(url: str, option: int, deadline: Deadline, **more: object) -> dict[str, Any]:
    """`authorization` and `signature` of a payment by the purse, for terms that this resource has quoted in
    this call: by default all of it, for a minute; with `value`, `seconds`, `own` as the broker's service has
    them."""
    answer = _post("/pay", {"url": url, "option": option, **more}, deadline)
    if not isinstance(answer, dict) or not isinstance(answer.get("authorization"), dict):
        raise _service_error(answer)
    return answer


def number(value: object) -> int:
    """A JSON-RPC quantity."""
    if isinstance(value, str) and value.startswith("0x") and 2 < len(value) <= 66:
        try:
            return int(value[2:], 16)
        except ValueError:
            pass
    raise Failure("garbage", "the node sent an invalid number")


def _hex(value: object) -> bytes:
    try:
        return bytes.fromhex(value.removeprefix("0x")) if isinstance(value, str) else b""
    except ValueError:
        raise Failure("garbage", "the node sent bytes that are not hex") from None


def _post(path: str, payload: dict[str, Any], deadline: Deadline) -> Any:  # noqa: ANN401  any JSON
    body = json.dumps(payload).encode()
    reply = send(
        HttpRequest("POST", path, {"content-type": "application/json"}, body, encodings="identity"), deadline
    )
    try:
        answer = strict_json.loads(decode(reply.body))
    except ValueError:
        raise Failure("unreachable", f"{path}: an answer that is not JSON (HTTP {reply.status})") from None
    if reply.status >= 400 and not (isinstance(answer, dict) and "jsonrpc" in answer):
        raise _service_error(answer)
    return answer


def denial(reply: HttpReply) -> Failure:
    """What the broker itself said about a request to the platform."""
    try:
        return _service_error(strict_json.loads(reply.body))
    except ValueError:
        return Failure("unreachable", f"broker: HTTP {reply.status}")


def _service_error(answer: object) -> Failure:
    if not isinstance(answer, dict):
        return Failure("garbage", "the broker's service returned garbage")
    kind = str(answer.get("error_class", ""))
    message = clean(str(answer.get("error", "no reason given")), 300)
    return Failure(
        kind if kind in _SAID else "internal",
        message,
    )


def _error(error: object) -> Failure:
    """A node's error object as data: a revert in words, anything else with its code."""
    if not isinstance(error, dict):
        return Failure("garbage", "the node sent an invalid error")
    message, data = clean(str(error.get("message", "")), 300), error.get("data")
    reason = abi.revert_reason(data) if isinstance(data, str) else ""
    if error.get("code") == 3 or reason or "revert" in message.lower():
        return Reverted(reason or message)
    return Failure("http", f"RPC error {error.get('code')}: {message}")
