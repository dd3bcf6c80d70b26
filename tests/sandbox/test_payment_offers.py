"""What an answer asks to be paid, by each form of terms; the broker reads the same from what passes."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from fleet.broker.services import quotes_in
from sandbox.agents.mcp_wire import STATELESS, McpClient
from sandbox.errors import Deadline
from sandbox.payment_offers import MPP, V1, V2, decoded, in_http, offers

ASSET, PAYEE = "0x" + "70" * 20, "0x" + "be" * 20
TERMS = {"scheme": "exact", "asset": ASSET, "payTo": PAYEE}
OLD = {"x402Version": 1, "accepts": [TERMS | {"network": "base", "maxAmountRequired": "7"}]}
NEW = {"x402Version": 2, "accepts": [TERMS | {"network": "eip155:8453", "amount": "9"}]}
CHARGE: dict[str, Any] = {
    "amount": "8",
    "currency": ASSET,
    "recipient": PAYEE,
    "methodDetails": {"chainId": 8453, "credentialTypes": ["authorization"]},
}


def coded(said: object) -> str:
    return base64.b64encode(json.dumps(said).encode()).decode()


def challenge(request: object = CHARGE, method: str = "evm") -> str:
    return (
        f'Payment id="a \\"1\\"", realm="tolls", method="{method}", intent=charge, request="{coded(request)}"'
    )


ALL = {"payment-required": coded(NEW), "www-authenticate": f'Bearer realm="x", {challenge()}'}


def test_each_form_beside_the_others_is_read_in_one_order_inside_a_jail_and_outside() -> None:
    body = json.dumps(OLD).encode()
    found = offers(402, ALL, body)
    assert [(one.form, one.network, one.amount) for one in found] == [
        (V2, "eip155:8453", 9),
        (MPP, "eip155:8453", 8),
        (V1, "base", 7),
    ]
    assert {(one.scheme, one.asset, one.payee) for one in found} == {("exact", ASSET, PAYEE)}
    assert [one.bound for one in found] == ["", '["a \\"1\\"","tolls"]', ""]
    head = "".join(f"{name}: {value}\r\n" for name, value in ALL.items())
    framings = (
        f"content-length: {len(body)}\r\n\r\n".encode() + body,
        b"transfer-encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(body), body),
    )
    for framed in framings:
        passed = quotes_in(b"HTTP/1.1 103 Early\r\n\r\nHTTP/1.1 402 Pay\r\n" + head.encode() + framed)
        assert [(one.network, one.amount, one.bound) for one in passed] == [
            (one.network, one.amount, one.bound) for one in found
        ]
    cut = quotes_in(b"HTTP/1.1 402 Pay\r\n" + head.encode() + framings[0][:-5])
    assert [one.amount for one in cut] == [9, 8]  # the body is not whole
    assert quotes_in(b"HTTP/1.1 200 OK\r\n" + head.encode() + framings[0]) == []


@pytest.mark.parametrize(
    "header",
    [
        "",
        "Payment",
        'Payment id="1", realm="x"',
        challenge(request=[1]),
        challenge(method="tempo"),
        challenge(CHARGE | {"methodDetails": {"chainId": 8453, "credentialTypes": ["hash"]}}),
        challenge(
            CHARGE | {"methodDetails": {"chainId": 8453, "credentialTypes": ["authorization"], "splits": [1]}}
        ),
        challenge(CHARGE | {"amount": 8}),
        challenge(CHARGE | {"currency": 8}),
    ],
)
def test_a_challenge_that_is_no_charge_in_the_token_is_none_that_is_paid(header: str) -> None:
    found = offers(402, {"www-authenticate": header}, b"")
    assert [one for one in found if one.scheme == "exact" and one.asset and one.amount] == []


@pytest.mark.parametrize("amount", [5, "-5", "٣", "9" * 101, None])
def test_an_amount_that_is_not_in_digits_is_none(amount: object) -> None:
    for form in ({"x402Version": 2, "accepts": [TERMS | {"amount": amount}]}, OLD | {"accepts": [[], 1]}):
        found = offers(402, {"payment-required": coded(form)}, json.dumps(form).encode())
        assert [one for one in found if one.amount] == []


def rpc(result: object = None, **more: object) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1} | ({"result": result} if result is not None else {}) | more


def tool(text: str = "pay", **more: object) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], "isError": True} | more


def task(state: str, metadata: dict[str, Any], *, wrapped: bool = False) -> dict[str, Any]:
    said = {"id": "t1", "status": {"state": state, "message": {"parts": [], "metadata": metadata}}}
    return {"task": said} if wrapped else said | {"kind": "task"}


ASKED: dict[str, Any] = {"x402.payment.status": "payment-required"}


@pytest.mark.parametrize(
    ("said", "asks"),
    [
        (rpc(tool(structuredContent=NEW)), (V2, 9)),
        (rpc(tool(text=json.dumps(NEW))), (V2, 9)),
        (rpc(error={"code": 402, "message": "pay", "data": OLD}), (V1, 7)),
        (rpc(task("input-required", ASKED | {"x402.payment.required": OLD})), (V1, 7)),
        (rpc(task("TASK_STATE_INPUT_REQUIRED", {"x402.payment.required": NEW}, wrapped=True)), (V2, 9)),
        (rpc({"content": [{"type": "text", "text": json.dumps(NEW)}]}), None),  # a document that shows terms
        (rpc(tool()), None),
        (
            rpc(
                tool(
                    structuredContent={"x402Version": [2], "accepts": [5, {"payTo": {}}]}, content=7, status=5
                )
            ),
            None,
        ),
        (rpc(error={"code": -32602, "message": "no"}), None),
        (NEW, None),
        ([rpc(tool(structuredContent=NEW))], None),
    ],
)
def test_terms_of_a_tool_and_of_an_agent_are_read_as_those_of_a_page(
    said: Any, asks: tuple[str, int] | None
) -> None:
    body, found = json.dumps(said).encode(), [asks] if asks else []
    stream = b"id: 1\ndata: \n\ndata: " + body + b"\n\n"
    for kind, sent in (("application/json", body), ("text/event-stream", stream)):
        head = f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {len(sent)}\r\n\r\n"
        assert [(one.form, one.amount) for one in offers(200, {"content-type": kind}, sent)] == found
        assert [one.amount for one in quotes_in(head.encode() + sent)] == [amount for _, amount in found]


def test_an_answer_of_json_rpc_has_the_words_of_http() -> None:
    def read(said: object) -> tuple[int, Any, Any]:
        status, headers, body = in_http(200, {"content-type": "application/json"}, json.dumps(said).encode())
        return status, decoded(headers.get("payment-response", "")), json.loads(body)

    paid = {"success": True, "transaction": "0x1"}
    done = {"content": [{"type": "text", "text": "4"}], "_meta": {"x402/payment-response": paid}}
    assert read(rpc(done)) == (200, paid, {"content": [{"type": "text", "text": "4"}]})
    assert read(rpc(tool()))[:2] == (400, None)
    assert read(rpc(error={"code": 1, "message": "no"})) == (400, None, {"error": "no"})
    assert read(rpc(task("failed", {"x402.payment.receipts": [{"success": False}]})))[:2] == (
        400,
        {"success": False},
    )
    first, second = (
        rpc(task("completed", {}) | {"id": ident, "artifacts": [{"artifactId": ident}]}) for ident in "ab"
    )
    assert read(first) == read(second)
    assert read({"x": 1}) == (200, None, {"x": 1})
    for nested in (900, 5_000):
        deep = b'{"jsonrpc":"2.0","id":1,"result":{"x":' + b"[" * nested + b"]" * nested + b"}}"
        assert in_http(200, {}, deep) == (200, {}, deep)


def test_a_payment_stands_beside_what_a_call_of_mcp_says_anyway() -> None:
    client = McpClient("http://h/mcp", {}, Deadline(5.0), STATELESS)
    body = json.loads(client.request("tools/call", {"name": "a", "_meta": {"x402/payment": {"x": 1}}}).body)
    assert body["params"]["_meta"]["x402/payment"] == {"x": 1}
    assert body["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] == STATELESS
