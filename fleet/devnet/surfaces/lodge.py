"""A registered agent for practice: a site with its registration (ERC-8004), card, MCP endpoint and a quote.

The registry is on a local chain. Without defects it is the clean twin: it must produce no finding.
"""

from __future__ import annotations

import base64
import contextlib
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from anyio.from_thread import BlockingPortal

from fleet.chain.node import codec
from fleet.chain.node.rpc import Rpc
from fleet.config import Platform
from fleet.devnet import artifact, node
from fleet.devnet.anvil import CHAIN_ID

DEFECTS = (
    *("no-uri", "file-gone", "file-broken", "of-others", "host-of-others", "card-gone", "card-broken"),
    *("mcp-gone", "page-gone", "inactive", "wallet-other", "wallet-none", "x402-denied"),
    *("validation-of-others", "validation-misplaced"),
)
PAYEE = "0x90f79bf6eb2c4f870365e785982e1f101e93b906"
"""Anvil's account 3, who owns the agent."""
OTHER, TOKEN = "0x15d34aaf54267db7d7c367839aaf71a00a2c6a65", "0x" + "70" * 20
FILE, PROOF, CARD = "/agent.json", "/.well-known/agent-registration.json", "/.well-known/agent-card.json"
Json = dict[str, Any]


@dataclass
class Lodge:
    """What the site says. `inline`: the registration is in the URI itself."""

    portal: BlockingPortal
    rpc: Rpc
    identity: str
    defects: frozenset[str] = frozenset()
    inline: bool = False
    url: str = ""
    agent: int = -1
    validation: str = ""

    def send(self, sender: str, name: str, types: tuple[str, ...], *args: object) -> Json:
        selector = artifact.load("IdentityRegistry").selectors()[f"{name}({','.join(types)})"]
        data = selector + codec.encode(types, args)
        return self.portal.call(node.transact, self.rpc, sender, self.identity, data)

    def validate(self, owner: str) -> None:
        """A Validation registry that was asked for one validation of the agent, and of another one."""
        slip = 1 if "validation-misplaced" in self.defects else 0
        made = artifact.load("ValidationRegistry")
        of = OTHER if "validation-of-others" in self.defects else self.identity
        build = partial(self.portal.call, node.create, self.rpc, owner)
        code = made.code + codec.encode(["address", "uint256"], [self.identity, slip])
        self.validation = build(code)
        asks = made.selectors()["validationRequest(address,uint256,string,bytes32)"]
        types = ("address", "uint256", "string", "bytes32")
        for agent in (self.agent - 1, self.agent):
            asked = codec.encode(types, [OTHER, agent, f"{self.url}/order.json", agent.to_bytes(32, "big")])
            self.portal.call(node.transact, self.rpc, owner, self.validation, asks + asked)
        if of != self.identity:
            self.validation = build(made.code + codec.encode(["address", "uint256"], [of, slip]))

    def register(self) -> None:
        """Put the agent into the registry, as its owner would."""
        owner = OTHER if "wallet-other" in self.defects else PAYEE
        self.send(owner, "register", ("string",), "")  # another one, right before it
        receipt = self.send(owner, "register", ("string",), "")
        self.agent = int(receipt["logs"][0]["topics"][1], 16)
        uri = f"{self.url}{FILE}"
        if self.inline:
            uri = (
                f"data:application/json;base64,{base64.b64encode(json.dumps(self.file()).encode()).decode()}"
            )
        if "no-uri" not in self.defects:
            self.send(owner, "setAgentURI", ("uint256", "string"), self.agent, uri)
        if "wallet-none" in self.defects:
            self.send(owner, "unsetAgentWallet", ("uint256",), self.agent)
        self.validate(owner)

    def names(self, defect: str) -> list[Json]:
        """The list `registrations` of a document."""
        agent = self.agent + 1 if defect in self.defects else self.agent
        return [{"agentId": agent, "agentRegistry": f"eip155:{CHAIN_ID}:{self.identity}"}]

    def file(self) -> Json:
        services = [
            {"name": "web", "endpoint": f"{self.url}/about", "version": ""},
            {"name": "A2A", "endpoint": f"{self.url}{CARD}", "version": "0.3.0"},
            {"name": "MCP", "endpoint": f"{self.url}/mcp", "version": "2025-06-18"},
            {"name": "MCP", "endpoint": "http://169.254.169.254/latest", "version": "2025-06-18"},
            {"name": "ENS", "endpoint": "lodge.eth", "version": "v1"},
        ]
        return {
            "type": "https://eips.ethereum.org/EIPS/eip-8004#registration-v1",
            "name": "Lodge",
            "services": services,
            "x402Support": "x402-denied" not in self.defects,
            "active": "inactive" not in self.defects,
            "registrations": self.names("of-others"),
        }

    def page(self, path: str) -> tuple[int, Json | str]:
        """Status and body of a GET."""
        pages: dict[str, tuple[str, str, Json | str]] = {
            FILE: ("file-gone", "file-broken", self.file()),
            CARD: ("card-gone", "card-broken", {"name": "lodge", "url": f"{self.url}/a2a"}),
            PROOF: ("", "", {"registrations": self.names("host-of-others")}),
            "/about": ("page-gone", "", "the lodge"),
        }
        gone, broken, body = pages.get(path, ("", "", ""))
        if not body or gone in self.defects:
            return 404, "not found"
        return 200, "<p>welcome</p>" if broken in self.defects else body

    def quote(self) -> str:
        terms: Json = {"scheme": "exact", "network": f"eip155:{CHAIN_ID}", "amount": "900", "asset": TOKEN}
        terms |= {"payTo": PAYEE, "maxTimeoutSeconds": "60", "extra": {"name": "Dollar", "version": "1"}}
        said = {"x402Version": 2, "resource": {"url": f"{self.url}/reports"}, "accepts": [terms]}
        return base64.b64encode(json.dumps(said).encode()).decode()

    def profile(self, **more: object) -> Platform:
        """A profile that names the site, its MCP endpoint, what it sells, and its agent."""
        token = {"asset": TOKEN, "name": "Dollar", "version": "1", "payee": PAYEE}
        said: Json = {
            "name": "lodge",
            "log": "file",
            "chain": {"rpc": self.rpc.url, "id": CHAIN_ID},
            "web": {"site": self.url},
            "mcp": {"endpoints": ["{site}/mcp"]},
            "payments": {"resources": ["{site}/reports"], "most": 9, "per_run": 9, "holds": 9} | token,
            "erc8004": {"identity": self.identity, "agent": self.agent, "validation": self.validation},
        }
        return Platform.model_validate(said | more)


class _Desk(BaseHTTPRequestHandler):
    lodge: Lodge
    asked: list[str]

    def log_message(self, *_: object) -> None: ...

    def do_GET(self) -> None:
        self.asked.append(self.path)
        if self.path == "/reports":
            self._send(402, "pay first", **{"payment-required": self.lodge.quote()})
        else:
            self._send(*self.lodge.page(self.path))

    def do_POST(self) -> None:
        self.asked.append(self.path)
        asked = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
        if self.path != "/mcp" or "mcp-gone" in self.lodge.defects:
            self._send(404, "not found")
        elif asked.get("method") == "initialize":
            info = {"name": "lodge", "version": "1"}
            said = {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": info}
            self._send(200, {"jsonrpc": "2.0", "id": asked["id"], "result": said})
        elif "id" not in asked:
            self._send(202, "")
        else:
            error = {"code": -32601, "message": "Method not found"}
            self._send(200, {"jsonrpc": "2.0", "id": asked["id"], "error": error})

    def _send(self, status: int, body: Json | str, **headers: str) -> None:
        raw = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        self.send_response(status)
        kind = "text/html" if isinstance(body, str) else "application/json"
        for name, value in {"content-type": kind, "content-length": str(len(raw)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(raw)


@contextlib.contextmanager
def open_lodge(lodge: Lodge) -> Iterator[list[str]]:
    """The site on a port of its own, its agent registered; the paths that it was asked for."""
    asked = list[str]()
    handler = type("Desk", (_Desk,), {"lodge": lodge, "asked": asked})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        lodge.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            lodge.register()
            yield asked
        finally:
            server.shutdown()
            thread.join()
