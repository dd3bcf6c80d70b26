"""Resources that are paid for, for practice: x402 and MPP with a facilitator of their own, with defects to
switch on.

A seed makes names, prices, words and habits of its own. Without defects it is the clean twin: it must produce
no finding. Payments are settled by an unlocked account of a local chain, which is the facilitator's.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import itertools
import json
import secrets
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import Random
from typing import Any
from urllib.parse import parse_qs, urlsplit

from fleet.chain.node import codec
from fleet.chain.node.digest import keccak256
from fleet.chain.signing.payment import MOVES
from fleet.devnet.anvil import CHAIN_ID
from sandbox.agents.wires.a2a import CARD
from sandbox.payment_offers import (
    A2A_RECEIPTS,
    A2A_REQUIRED,
    MCP_PAYMENT,
    MCP_RECEIPT,
    MPP,
    V1,
    V2,
    X402,
)

FORMS = ((V2,), (V1,), (MPP,), (V1, V2), (V2, MPP), (MPP, V1), (MPP, V1, V2))
"""Forms of terms that a resource may have beside each other."""
DEFECTS = (
    *("unsigned", "underpaid", "payee-unchecked", "terms-trusted", "time-unchecked", "header-enough"),
    *("replayed", "replayed-elsewhere", "race", "settled-first", "settled-before-failure"),
    *("price-differs", "body-differs", "payee-differs", "receipt-invented", "receipt-denies", "name-ignored"),
    *("document-differs", "card-differs", "list-differs"),
)
PAGE, TOOL, MESSAGE = "page", "tool", "message"
AT_WIRE = {
    **dict.fromkeys(("body-differs", "replayed-elsewhere", "document-differs"), PAGE),
    **{"list-differs": TOOL, "card-differs": MESSAGE},
}
"""Defects that one way of asking has alone; a page is in the card as well."""
FACILITATOR = "0x3c44cdddb6a900fa2b585dd299e03d12fa4293bc"
"""Anvil's account 2."""
MOVE = ["address", "address", "uint256", "uint256", "uint256", "bytes32", "uint8", "bytes32", "bytes32"]
VERSION = "2025-06-18"
"""Of MCP, that its server speaks."""
NETWORK = "devnet"
"""The chain, as terms of x402 version 1 name it here."""
CARRIED = {V2: "payment-signature", MPP: "authorization", V1: "x-payment"}
RECEIPTS = {V2: "payment-response", MPP: "payment-receipt", V1: "x-payment-response"}
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Sold:
    """One resource. `parameter` is of its query, with a value that it knows; `fresh`: each answer is another
    one."""

    path: str
    price: int
    parameter: str = ""
    known: tuple[str, ...] = ()
    fresh: bool = True
    named: bool = False
    in_body: bool = False
    forms: tuple[str, ...] = (V2,)
    """How its terms are stated; a defect is in the last of them alone."""
    wire: str = PAGE
    """Whether it is a page, a tool of the MCP server, or what the agent does for a message."""
    locks_late: bool = False
    """Whether it leaves two requests with one payment to the chain, which takes the first."""


def encoded(said: Json) -> str:
    """A header of the standard."""
    return base64.b64encode(json.dumps(said).encode()).decode()


def decoded(header: str) -> bytes:
    """Base64 of either alphabet, padded or not."""
    return base64.urlsafe_b64decode(header.replace("+", "-").replace("/", "_") + "=" * (-len(header) % 4))


class PaymentRefused(Exception):
    """A payment that does not hold."""


@dataclass
class Tollhouse:
    """What is sold, to whom it is paid, and what was settled."""

    rpc: str
    token: str
    payee: str
    seed: int = 1
    defects: Mapping[str, int] = field(default_factory=dict)
    """Each with the place of the resource that has it."""
    mixed: bool = False
    """Whether each resource has forms of its own, by the seed."""
    wired: bool = False
    """Whether each resource is asked for in a way of its own, by the seed."""
    wires: tuple[str, ...] = ()
    """The way of each, where it is not left to the seed."""
    url: str = ""

    def __post_init__(self) -> None:
        assert set(self.defects) <= set(DEFECTS), self.defects
        chance = Random(self.seed)
        folder = chance.choice(("reports", "data", "api/v1", "feeds", "sheets"))
        names = chance.sample(("daily", "weekly", "tides", "winds", "prices", "ports", "crews", "lots"), 3)
        words = ("city", "port", "id", "lot", "day")
        self.sold = []
        for at, name in enumerate(names):
            known = tuple(chance.sample(("bergen", "oslo", "moss", "7", "12", "monday"), 3))
            parameter = chance.choice(words) if at != 0 else ""
            self.sold.append(
                Sold(
                    f"/{folder}/{name}",
                    chance.randint(2, 1_500),
                    parameter,
                    known if parameter else (),
                    fresh=chance.random() < 0.7,
                    named=chance.random() < 0.5,
                    in_body=chance.random() < 0.5,
                    locks_late=chance.random() < 0.5,
                )
            )
        for defect, at in self.defects.items():  # what a defect needs to be one
            needs: Json = {"fresh": True} if defect in ("replayed", "race") else {}
            needs |= {"named": True} if defect == "name-ignored" else {}
            needs |= {"in_body": True} if defect == "body-differs" else {}
            needs |= (
                {"parameter": words[self.seed % 5], "known": ("oslo", "7")}
                if defect in ("settled-first", "settled-before-failure") and not self.sold[at].parameter
                else {}
            )
            needs |= {"price": self.sold[at - 1].price} if defect == "replayed-elsewhere" else {}
            one = self.sold[at]
            self.sold[at] = Sold(**{key: getattr(one, key) for key in Sold.__slots__} | needs)
        if self.mixed:
            drawn = Random(self.seed + 7)
            needed = dict.fromkeys(("name-ignored", "body-differs", "terms-trusted"), V2)
            for at, one in enumerate(self.sold):
                forms = drawn.choice(FORMS)
                forms = (
                    (V2, MPP) if forms == (MPP,) and one.parameter else forms
                )  # it has no place for an example
                mine = [name for name, place in self.defects.items() if place == at]
                last = next((needed[name] for name in mine if name in needed), None)
                self.sold[at] = replace(
                    one, forms=(*(each for each in forms if each != last), last) if last else forms
                )
            if (shared := self.defects.get("replayed-elsewhere")) is not None:
                self.sold[shared - 1] = replace(self.sold[shared - 1], forms=self.sold[shared].forms)
        self.tasks: dict[str, Sold] = {}
        """What was asked for by a task of the agent."""
        if self.wired or self.wires:
            self._wire(Random(self.seed + 11))
        self.asked_by = threading.local()
        """The form of the request that is answered."""
        self.lock, self.used, self.names = threading.Lock(), set[tuple[str, ...]](), dict[str, Any]()
        self.challenges, self.secret = itertools.count(1), secrets.token_hex()
        self.count, self.pause = itertools.count(1), chance.choice((0.0, 0.02, 0.1))
        self.pause = 0.05 if "race" in self.defects else self.pause

    def _wire(self, drawn: Random) -> None:
        for at, one in enumerate(self.sold):
            mine = {name for name, place in self.defects.items() if place == at}
            needed = next((AT_WIRE[name] for name in AT_WIRE if name in mine), "")
            shared = self.defects.get("replayed-elsewhere")
            wire = PAGE if shared is not None and at == (shared - 1) % 3 else needed
            wire = self.wires[at] if self.wires else wire
            wire = wire or drawn.choice((PAGE, TOOL, MESSAGE))
            form = V1 if V1 in one.forms and V2 not in one.forms else V2
            forms = one.forms if wire == PAGE else (form,)
            fails = mine & {"settled-first", "settled-before-failure"}  # which take a parameter
            wire = PAGE if wire == MESSAGE and fails else wire
            plain: Json = {"parameter": "", "known": ()} if wire == MESSAGE else {}
            self.sold[at] = replace(one, wire=wire, forms=one.forms if wire == PAGE else forms, **plain)

    def has(self, defect: str, one: Sold) -> bool:
        mine = defect in self.defects and self.sold[self.defects[defect]].path == one.path
        return mine and getattr(self.asked_by, "form", V2) == one.forms[-1]

    # The chain

    def call(self, method: str, *params: object) -> Any:
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
        request = urllib.request.Request(self.rpc, body, {"content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=10) as answer:
            said = json.loads(answer.read())
        if "error" in said:
            raise PaymentRefused(str(said["error"].get("message", ""))[:120])
        return said["result"]

    def move(self, payload: Json) -> Json:
        """The transaction that takes a payment."""
        one, raw = payload["authorization"], bytes.fromhex(payload["signature"][2:])
        values = [one["from"], one["to"], *(int(one[key]) for key in ("value", "validAfter", "validBefore"))]
        values += [bytes.fromhex(one["nonce"][2:]), raw[64], raw[:32], raw[32:64]]
        data = "0x" + (MOVES + codec.encode(MOVE, values)).hex()
        return {"from": FACILITATOR, "to": self.token, "data": data, "gas": hex(200_000)}

    def settle(self, payload: Json) -> str:
        tx = str(self.call("eth_sendTransaction", self.move(payload)))
        for _ in range(200):
            if receipt := self.call("eth_getTransactionReceipt", tx):
                if receipt["status"] != "0x1":
                    raise PaymentRefused("the transfer failed")
                return tx
            time.sleep(0.01)
        raise PaymentRefused("the transfer is in no block")

    # What is said of prices

    def stated(self, one: Sold, defect: str) -> int:
        at = self.sold.index(one)
        return one.price + (3 + self.seed % 5 if self.defects.get(defect) == at else 0)

    def guide(self) -> str:
        """The document for readers of all kinds, each time in words of the seed."""
        lines = ["# What is sold here", ""]
        for at, one in enumerate(self.sold):
            if one.wire != PAGE:
                continue
            price = self.stated(one, "document-differs")
            form = (self.seed + at) % 4
            said = (
                f"{price:,} units",
                f"${price / 10**6:.6f}",
                f"{price / 10**6:.6f} USDC",
                f"{price} base units",
            )
            lines.append(
                f"- `GET {one.path}` costs {said[form]} a request."
                if at
                else f"{one.path}: {said[form]} a request."
            )
        return "\n".join((*lines, "", "Up to 10 requests a second; keep 5,000 units in your wallet."))

    def card(self) -> Json:
        """The agent's card, which names what it sells in its skills and in its extension for payments."""
        skills, prices = list[Json](), list[Json]()
        for at, one in enumerate(self.sold):
            price, name = self.stated(one, "card-differs"), one.path.rsplit("/", 1)[-1]
            if one.wire == TOOL:
                continue
            more = f" One request is {price} units." if (self.seed + at) % 2 or one.wire == MESSAGE else ""
            what = one.path if one.wire == PAGE else f"what there is of {name}"
            examples = {"examples": [f"sell me {name}"]} if one.wire == MESSAGE else {}
            about = {"description": f"Sells {what}.{more}", "tags": ["sold"]}
            skills.append({"id": name, "name": name} | about | examples)
            prices += [] if more else [{"resource": one.path, "amount": str(price), "asset": self.token}]
        extension = {"uri": X402, "required": False, "params": {"prices": prices}}
        said: Json = {"name": "tolls", "description": "Sells what is measured.", "version": "1"}
        said |= {"url": f"{self.url}/a2a", "preferredTransport": "JSONRPC", "protocolVersion": "0.3.0"}
        return said | {"skills": skills, "capabilities": {"extensions": [extension]}}

    def tools(self) -> list[Json]:
        """What the MCP server lists."""
        listed = list[Json]()
        for one in (one for one in self.sold if one.wire == TOOL):
            price = self.stated(one, "list-differs")
            known: Json = (
                {one.parameter: {"type": "string", "enum": list(one.known)}} if one.parameter else {}
            )
            schema: Json = {"type": "object", "properties": known, "required": list(known)}
            tool: Json = {"name": one.path.rsplit("/", 1)[-1], "inputSchema": schema}
            if self.seed % 2:
                tool |= {"description": f"Gives what was measured. Costs {price} units."}
            else:
                tool |= {
                    "description": "Gives what was measured.",
                    "_meta": {"x402/priceUSD": f"{price / 10**6:.6f}"},
                }
            listed.append(tool)
        return listed

    def mcp(self, asked: Json) -> Json | None:
        """The answer of the MCP server, of the wire with sessions; None for a notification."""
        method, params = asked.get("method"), asked.get("params") or {}
        if "id" not in asked:
            return None
        envelope: Json = {"jsonrpc": "2.0", "id": asked["id"]}
        if method == "initialize":
            server = {"name": "tolls", "version": "1"}
            said: Json = {
                "protocolVersion": VERSION,
                "capabilities": {"tools": {}},
                "serverInfo": server,
            }
        elif method == "tools/list":
            said = {"tools": self.tools()}
        elif method == "tools/call":
            named = [
                one for one in self.sold if one.wire == TOOL and one.path.endswith(f"/{params.get('name')}")
            ]
            if not named:
                return envelope | {"error": {"code": -32602, "message": "no such tool"}}
            payment = (params.get("_meta") or {}).get(MCP_PAYMENT)
            status, body, receipt = self.by_rpc(named[0], params.get("arguments") or {}, payment)
            content = [{"type": "text", "text": json.dumps(body)}]
            said = {"content": content, "isError": status != 200}
            said |= {"structuredContent": body} if status == 402 else {}
            said |= {"_meta": {MCP_RECEIPT: receipt}} if receipt else {}
        else:
            return envelope | {"error": {"code": -32601, "message": "no such method"}}
        return envelope | {"result": said}

    def a2a(self, asked: Json) -> Json:
        """The answer of the agent, by A2A 0.3."""
        message = (asked.get("params") or {}).get("message") or {}
        envelope: Json = {"jsonrpc": "2.0", "id": asked.get("id")}
        if asked.get("method") != "message/send":
            return envelope | {"error": {"code": -32601, "message": "no such method"}}
        text = "".join(str(part.get("text", "")) for part in message.get("parts", ()))
        named = [
            one
            for one in self.sold
            if one.wire == MESSAGE and text == f"sell me {one.path.rsplit('/', 1)[-1]}"
        ]
        if not named:
            part = {"kind": "text", "text": "I sell what my card says."}
            said: Json = {"kind": "message", "messageId": "m1", "role": "agent", "parts": [part]}
            return envelope | {"result": said}
        ident = str(message.get("taskId") or f"t{next(self.challenges)}")
        one = self.tasks.setdefault(ident, named[0])
        payment = (message.get("metadata") or {}).get("x402.payment.payload")
        status, body, receipt = self.by_rpc(one, {}, payment)
        state = {200: "completed", 402: "input-required"}.get(status, "failed")
        word = {200: "payment-completed", 402: "payment-required"}.get(status, "payment-failed")
        about: Json = {"x402.payment.status": word} | ({A2A_REQUIRED: body} if status == 402 else {})
        about |= {A2A_RECEIPTS: [receipt]} if receipt else {}
        spoken = {
            "kind": "message",
            "messageId": f"m{ident}",
            "role": "agent",
            "parts": [],
            "metadata": about,
        }
        task: Json = {
            "kind": "task",
            "id": ident,
            "contextId": "c1",
            "status": {"state": state, "message": spoken},
        }
        parts = [{"kind": "text", "text": json.dumps(body)}]
        task |= {"artifacts": [{"artifactId": "a1", "parts": parts}]} if status == 200 else {}
        return envelope | {"result": task}

    def by_rpc(self, one: Sold, given: Json, payment: object) -> tuple[int, Json, Json]:
        """Status, body and receipt of what is asked for by JSON-RPC; the body of 402 is its terms."""
        carried = {CARRIED[one.forms[-1]]: encoded(payment)} if isinstance(payment, dict) else {}
        query = {key: str(value) for key, value in given.items()}
        status, body, headers = self.answer(one.path, query, carried, one.wire)
        receipt = headers.get(RECEIPTS[one.forms[-1]])
        if status == 402 and "payment-required" in headers:
            body = json.loads(decoded(headers["payment-required"]))
        return status, body, json.loads(decoded(receipt)) if receipt else {}

    # A request

    def terms(self, one: Sold) -> Json:
        payee = "0x" + "5e" * 20 if self.has("payee-differs", one) else self.payee
        price = one.price + (1 + self.seed % 7 if self.has("price-differs", one) else 0)
        return {
            "scheme": "exact",
            "network": f"eip155:{CHAIN_ID}",
            "amount": str(price),
            "asset": self.token,
            "payTo": payee,
            "maxTimeoutSeconds": 60,
            "extra": {"name": "Devnet Dollar", "version": "1"},
        }

    def required(self, one: Sold, why: str = "") -> tuple[int, Json, dict[str, str]]:
        """What is to be paid, in each form of the resource."""
        body: Json = {"error": why or "payment required"}
        headers = dict[str, str]()
        before = getattr(self.asked_by, "form", V2)
        for form in one.forms:
            self.asked_by.form = form
            terms = self.terms(one)
            if form == V2:
                said = self.in_v2(one, terms, body["error"])
                headers["payment-required"] = encoded(said)
                body = dict(said) if one.in_body and V1 not in one.forms else body
                if self.has("body-differs", one):
                    body["accepts"] = [{**terms, "amount": str(int(terms["amount"]) + 1)}]
            elif form == MPP:
                headers["www-authenticate"] = f'Bearer realm="tolls", {self.challenge(one, terms)}'
            else:
                entry = {key: terms[key] for key in terms if key != "amount"}
                entry |= {"network": NETWORK, "maxAmountRequired": terms["amount"], "resource": one.path}
                entry["outputSchema"] = {"input": self.query(one)}
                body |= {"x402Version": 1, "accepts": [entry]}
        self.asked_by.form = before
        return 402, body, headers

    def in_v2(self, one: Sold, terms: Json, why: str) -> Json:
        extensions = dict[str, Any]()
        if one.parameter:
            extensions["bazaar"] = {"info": {"input": self.query(one)}, "schema": {}}
        if one.named:
            extensions["payment-identifier"] = {"info": {"required": False}, "schema": {}}
        return {
            "x402Version": 2,
            "error": why,
            "resource": {"url": one.path, "description": "what was measured", "mimeType": "application/json"},
            "accepts": [{**terms, "network": "eip155:1"}] * (self.seed % 2) + [terms],
            "extensions": extensions,
        }

    def query(self, one: Sold) -> Json:
        """An example of what is asked for."""
        params = {one.parameter: one.known[0]} if one.parameter else {}
        return {"type": "http", "method": "GET", "queryParams": params}

    def challenge(self, one: Sold, terms: Json) -> str:
        """A challenge of MPP that its identifier binds."""
        request: Json = {"amount": terms["amount"], "currency": self.token, "recipient": terms["payTo"]}
        request["methodDetails"] = {"chainId": CHAIN_ID, "credentialTypes": ["authorization"], "decimals": 6}
        coded = base64.urlsafe_b64encode(json.dumps(request).encode()).decode().rstrip("=")
        fresh = f"{next(self.challenges)}.{one.path}"
        ident = f"{fresh}.{self.seal(fresh, coded)}"
        realm = "tolls"
        return f'Payment id="{ident}", realm="{realm}", method="evm", intent="charge", request="{coded}"'

    def seal(self, fresh: str, coded: str) -> str:
        return hashlib.sha256(f"{self.secret} {fresh} {coded}".encode()).hexdigest()[:16]

    def answer(
        self, path: str, query: Mapping[str, str], headers: Mapping[str, str], wire: str = PAGE
    ) -> tuple[int, Json, dict[str, str]]:
        one = next((each for each in self.sold if (each.path, each.wire) == (path, wire)), None)
        if one is None:
            return 404, {"error": "nothing is there"}, {}
        form = next((each for each in one.forms if headers.get(CARRIED[each])), "")
        self.asked_by.form = form or V2
        if not form:
            return self.required(one)
        header = headers[CARRIED[form]]
        try:
            said = json.loads(decoded(header.removeprefix("Payment ")))
            return self.paid(one, query, self.as_v2(one, said) if form != V2 else said)
        except PaymentRefused as refused:  # with a receipt of the failure, as the standard has it
            status, body, more = self.required(one, str(refused))
            says = {"success": False, "errorReason": str(refused), "transaction": ""}
            return status, body, more | ({} if form == MPP else {RECEIPTS[form]: encoded(says)})
        except (ValueError, KeyError, TypeError, IndexError):
            if self.has("header-enough", one):
                return 200, self.work(one, query)[1], {}
            return self.required(one, "no payment that can be read")

    def as_v2(self, one: Sold, said: Json) -> Json:
        """A payment of another form in the words of version 2."""
        if "challenge" not in said:
            known = (said["x402Version"], said["scheme"], said["network"]) == (1, "exact", NETWORK)
            return {"payload": said["payload"], "accepted": self.terms(one) if known else {}}
        challenge, payload = said["challenge"], dict(said["payload"])
        fresh, _, seal = challenge["id"].rpartition(".")
        sealed = fresh.partition(".")[2] == one.path or self.has("replayed-elsewhere", one)
        sealed = sealed and self.seal(fresh, challenge["request"]) == seal
        bound = json.dumps([challenge["id"], challenge["realm"]], separators=(",", ":"))
        if payload["nonce"] != "0x" + keccak256(bound.encode()).hex():
            raise PaymentRefused("not for this challenge")
        if not sealed and not self.has("terms-trusted", one):
            raise PaymentRefused("not a challenge of ours")
        request = json.loads(decoded(challenge["request"]))
        accepted = {"network": f"eip155:{request['methodDetails']['chainId']}", "amount": request["amount"]}
        signature = payload.pop("signature")
        return {"payload": {"authorization": payload, "signature": signature}, "accepted": accepted}

    def paid(self, one: Sold, query: Mapping[str, str], said: Json) -> tuple[int, Json, dict[str, str]]:
        payload, name = said["payload"], self.name_of(one, said)
        self.verify(one, said)
        nonce = str(payload["authorization"]["nonce"])
        key = (nonce, one.path) if self.has("replayed-elsewhere", one) else (nonce,)
        if name and name in self.names and not self.has("name-ignored", one):
            known, kept = self.names[name]
            return kept if known == nonce else (409, {"error": "this identifier has another payment"}, {})
        leaves = self.has("replayed", one) or self.has("race", one) or one.locks_late
        with self.lock:
            if key in self.used:
                raise PaymentRefused("this payment was used")
            if not leaves:
                self.used.add(key)
        early = self.has("settled-first", one) or self.has("settled-before-failure", one)
        tx = self.settle(payload) if early else ""
        status, body = self.work(one, query)
        if status >= 400 and self.has("settled-before-failure", one):
            status, body = 500, {"error": "it broke"}
        if status >= 400:
            with self.lock:
                self.used.discard(key)
            return status, body, {}
        ignores = [
            self.has(each, one)
            for each in ("unsigned", "time-unchecked", "race", "replayed", "replayed-elsewhere")
        ]
        if self.has("receipt-invented", one):
            tx = "0x" + f"{self.seed:064x}"
        try:
            tx = tx or self.settle(payload)
        except PaymentRefused:
            if not any(ignores):
                raise
            if self.has("race", one):
                with self.lock:
                    self.used.add(key)
        if self.has("race", one):
            with self.lock:
                self.used.add(key)
        done = (200, body, self.receipt(one, tx, payload))
        if name:
            self.names[name] = nonce, done
        return done

    def name_of(self, one: Sold, said: Json) -> str:
        found = (said.get("extensions") or {}).get("payment-identifier") if one.named else None
        return str(found["info"]["id"]) if found else ""

    def verify(self, one: Sold, said: Json) -> None:
        """The payment against the resource's own terms, and against the chain."""
        payload, mine = said["payload"], self.terms(one)
        auth = payload["authorization"]
        terms = said["accepted"] if self.has("terms-trusted", one) else mine
        wrong = {
            "network": said["accepted"]["network"] != mine["network"],
            "amount": int(auth["value"]) != int(terms["amount"]) and not self.has("underpaid", one),
            "payee": auth["to"].lower() != mine["payTo"].lower() and not self.has("payee-unchecked", one),
            "time": int(auth["validBefore"]) < time.time() + 5 and not self.has("time-unchecked", one),
        }
        if bad := [key for key, value in wrong.items() if value]:
            raise PaymentRefused(f"wrong {bad[0]}")
        nonces = [self.has(each, one) for each in ("unsigned", "time-unchecked", "replayed")]
        if not any(nonces) and not self.has_elsewhere(auth["nonce"], one):
            self.call("eth_call", self.move(payload), "latest")

    def has_elsewhere(self, nonce: str, one: Sold) -> bool:
        """Whether the record of used payments stands for the chain here, each resource with its own."""
        return self.has("replayed-elsewhere", one) and (nonce, one.path) not in self.used

    def work(self, one: Sold, query: Mapping[str, str]) -> tuple[int, Json]:
        time.sleep(self.pause)
        if one.parameter and one.parameter not in query:
            return 400, {"error": f"{one.parameter} is missing"}
        if one.parameter and query[one.parameter] not in one.known:
            return 404, {"error": f"no such {one.parameter}"}
        body: Json = {"of": one.path.rsplit("/", 1)[-1], "value": 41 + len(one.path)}
        return 200, body | ({"number": next(self.count)} if one.fresh else {})

    def receipt(self, one: Sold, tx: str, payload: Json) -> dict[str, str]:
        says = {
            "success": not self.has("receipt-denies", one),
            "transaction": tx,
            "network": f"eip155:{CHAIN_ID}",
            "payer": payload["authorization"]["from"],
        }
        form = self.asked_by.form
        if form == MPP:
            status = "success" if says["success"] else "failed"
            says = {"status": status, "reference": tx, "method": "evm", "timestamp": "2026-11-29T00:00:00Z"}
        return {RECEIPTS[form]: encoded(says)}


@contextlib.contextmanager
def served(house: Tollhouse) -> Iterator[str]:
    """The house at an address of its own."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            query = {key: values[0] for key, values in parse_qs(parts.query, keep_blank_values=True).items()}
            shown = {key.lower(): value for key, value in self.headers.items()}
            if parts.path == "/llms.txt":
                raw, status, headers = house.guide().encode(), 200, {"content-type": "text/plain"}
            else:
                card = parts.path == CARD
                status, body, headers = (
                    (200, house.card(), {}) if card else house.answer(parts.path, query, shown)
                )
                raw = json.dumps(body).encode()
            self.send_response(status)
            for name, value in {"content-type": "application/json", **headers}.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def do_POST(self) -> None:
            asked: Any = None
            with contextlib.suppress(ValueError, RecursionError):
                asked = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))))
            answers = {"/mcp": house.mcp, "/a2a": house.a2a}
            answer = answers.get(self.path)
            if answer is None or not isinstance(asked, dict):
                return self._reply(400 if answer else 404, b"{}")
            version = self.headers.get("mcp-protocol-version", "")
            if self.path == "/mcp" and self.headers.get("origin", house.url) != house.url:
                return self._reply(403, b"{}")
            if self.path == "/mcp" and version != VERSION and asked.get("method") != "initialize":
                return self._reply(400, b"{}")
            said = answer(asked)
            self._reply(
                200 if said is not None else 202, json.dumps(said).encode() if said is not None else b""
            )

        def _reply(self, status: int, raw: bytes) -> None:
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    house.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield house.url
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)
