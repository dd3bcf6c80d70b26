"""One look at an agent's registration by ERC-8004: owner and wallet on chain, and what its file says.

The file is written by whoever owns the agent. What it names is data: nothing of it is asked for here.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any
from urllib.parse import unquote_to_bytes

from sandbox import http, strict_json
from sandbox.chain import abi, rpc
from sandbox.errors import Deadline, Failure
from sandbox.spec import ABSENT, Context, Cost, Effect, Impact, Mistake, OneOf, Points, ToolSpec
from sandbox.text import clean, mask
from sandbox.tools.base import PUBLIC, VOLATILE, ToolAnswer

MAX_FILE = 64 << 10
"""Bytes of a registration file that are read."""
MAX_SERVICES, MAX_URI = 20, 400
MAX_VALIDATIONS = 8
"""The latest validations of which it is asked whose they are."""
REGISTRATION_PAGE = "/.well-known/agent-registration.json"
"""Where a host says which agents it is of; some have the whole registration there."""
TYPE = "eip-8004"
"""What the `type` of a registration file has in it."""
_READS = {
    "owner": abi.AbiFunction("0x6352211e", ("uint256",), ("address",)),
    "uri": abi.AbiFunction("0xc87b56dd", ("uint256",), ("string",)),
    "wallet": abi.AbiFunction("0x00339509", ("uint256",), ("address",)),
}
_VALIDATES = abi.AbiFunction("0xbc4d861b", (), ("address",))
_VALIDATIONS = abi.AbiFunction("0x8d5d0c2d", ("uint256",), ("bytes32[]",))
_STATUS = abi.AbiFunction(
    "0xff2febfc", ("bytes32",), ("address", "uint256", "uint8", "bytes32", "string", "uint256")
)


@dataclass(frozen=True, slots=True)
class Args:
    """Without `file`, a file that is not part of the URI itself is not read."""

    agent: int
    """Id of the agent in the registry that the profile names under `[erc8004]`."""
    file: str = ""
    """The agent's URI, where that is a page of the platform: read as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result(ToolAnswer):
    """`ok` means that the registry knows the agent."""

    registry: str = ""
    """The registry, as a registration file names it: `eip155:CHAIN:ADDRESS`."""
    owner: str = ""
    """Who owns the agent."""
    wallet: str = ""
    """Who is paid for it, by the registry; "" for nobody."""
    uri: str = ""
    """Where the agent's file is, by the registry; a `data:` URI without its content."""
    validates: Annotated[str, OneOf(("", "this", "others"))] = ""
    """Of which Identity registry the Validation registry of the profile is; "" without one."""
    validations: int | None = field(default=None, metadata=ABSENT)
    """How many validations it lists for the agent; absent without one."""
    misplaced: tuple[str, ...] = ()
    """Requests among the latest of them that are of another agent."""
    file_read: bool = False
    """Whether the file was read; all fields after this one are about it."""
    fault: str = ""
    """Why what is there is not a registration; "" if nothing speaks against it."""
    names_back: Annotated[str, OneOf(("", "this", "others"))] = ""
    """Which agents it says that it is of: `this` among them, or `others` alone; "" where it names none."""
    services: tuple[dict[str, str], ...] = ()
    """Its services: `name`, `endpoint`, `version`."""
    active: bool | None = field(default=None, metadata=ABSENT)
    """Whether it says that the agent is active; absent where it says nothing."""
    x402: bool | None = field(default=None, metadata=ABSENT)
    """Whether it says that the agent takes payments by x402; absent where it says nothing."""


def run(args: Args, ctx: Context) -> Result:
    if not ctx.registry or args.agent != ctx.agent:
        raise Mistake("/args/agent: not the agent that the profile names under [erc8004]")
    deadline = Deadline(ctx.deadline_s * 0.9)
    said = {name: _read(ctx.registry, view, (args.agent,), deadline)[0] for name, view in _READS.items()}
    if not said["owner"]:
        return Result(ok=False, error="the registry does not know the agent", error_class="http")
    uri, name = str(said["uri"]), f"eip155:{ctx.chain_id}:{ctx.registry}"
    kept = uri.partition(",")[0] if uri.lower().startswith("data:") else uri
    result = Result(
        ok=True,
        registry=name,
        owner=said["owner"],
        wallet="" if said["wallet"] in ("", rpc.ZERO) else said["wallet"],
        uri=clean(mask(kept)[0], MAX_URI),
    )
    result = _validated(result, args.agent, ctx, deadline)
    if not uri.strip():
        return replace(result, file_read=True, fault="its URI is empty")
    if uri.lower().startswith("data:"):
        return _of_file(result, _inline(uri), args.agent)
    if not args.file:
        return result
    if args.file.rstrip("/") != uri.rstrip("/"):
        return replace(result, ok=False, error="the agent's URI is another one now", error_class="http")
    reply = http.send(http.HttpRequest("GET", http.absolute(args.file, "/args/file")), deadline)
    if reply.by_broker:
        raise rpc.denial(reply)
    result = replace(result, latency_ms=reply.latency_ms)
    if 300 <= reply.status < 400:  # where it leads is not asked
        return result
    if reply.status >= 400:
        return replace(result, file_read=True, fault=f"its file answers {reply.status}")
    return _of_file(result, reply.body, args.agent)


def _read(contract: str, view: abi.AbiFunction, args: tuple[Any, ...], deadline: Deadline) -> tuple[Any, ...]:
    """What a view gives; ("",) for a contract that does not answer."""
    answer = rpc.answered(
        "eth_call", [{"to": contract, "data": abi.encode_call(view, args)}, "latest"], deadline
    )
    try:
        return abi.decode(view.gives, answer) if answer else ("",)
    except abi.AbiError as error:
        raise Failure("garbage", f"{view.selector} of a registry: {error}") from None


def _validated(result: Result, agent: int, ctx: Context, deadline: Deadline) -> Result:
    """The result with what the Validation registry says; addresses and files in it are not asked for."""
    if not ctx.validation:
        return result
    of = str(_read(ctx.validation, _VALIDATES, (), deadline)[0])
    listed = _read(ctx.validation, _VALIDATIONS, (agent,), deadline)[0] or ()
    latest = list(listed)[-MAX_VALIDATIONS:]
    agents = {one: (*_read(ctx.validation, _STATUS, (one,), deadline), "")[1] for one in latest}
    return replace(
        result,
        validates="" if not of else "this" if of.lower() == ctx.registry else "others",
        validations=len(listed),
        misplaced=tuple(f"0x{one.hex()}" for one, whose in agents.items() if whose not in ("", agent)),
    )


def _inline(uri: str) -> bytes:
    """The content of a `data:` URI; b"" for none."""
    head, _, body = uri.partition(",")
    try:
        raw = unquote_to_bytes(body)
        return base64.b64decode(raw, validate=True) if head.lower().endswith(";base64") else raw
    except (ValueError, binascii.Error):
        return b""


def _of_file(result: Result, body: bytes, agent: int) -> Result:
    """The result with what a registration file says."""
    try:
        said = strict_json.loads(body) if len(body) <= MAX_FILE else None
    except (ValueError, RecursionError):
        said = None
    result = replace(result, file_read=True)
    if not isinstance(said, dict):
        return replace(result, fault="its file is not an object in JSON of at most 64 KiB")
    listed = said.get("services", said.get("endpoints"))
    if not isinstance(listed, list) and TYPE not in str(said.get("type", "")):
        return replace(result, fault="its file has neither the type of a registration nor services")
    services = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    active, x402 = said.get("active"), said.get("x402Support")
    return replace(
        result,
        names_back=names_back(said, agent, result.registry),
        services=tuple(map(_service, services[:MAX_SERVICES])),
        active=active if isinstance(active, bool) else None,
        x402=x402 if isinstance(x402, bool) else None,
    )


def _service(one: Mapping[str, Any]) -> dict[str, str]:
    return {key: clean(mask(str(one.get(key, "")))[0], MAX_URI) for key in ("name", "endpoint", "version")}


def names_back(said: Mapping[str, Any], agent: int, registry: str) -> str:
    """Which agents a document is of by its `registrations`: a word of Result.names_back."""
    listed = said.get("registrations")
    named = [
        (str(one["agentId"]), str(one["agentRegistry"]).lower())
        for one in (listed if isinstance(listed, list) else ())
        if isinstance(one, dict) and one.get("agentId") is not None and one.get("agentRegistry")
    ]
    return "" if not named else "this" if (str(agent), registry.lower()) in named else "others"


SPEC = ToolSpec(
    "qa_registry",
    Args,
    Result,
    Effect.LOOK,
    Cost(calls=1),
    "read how the platform's agent is registered (ERC-8004), and its registration file",
    run,
    needs=("registry",),
    group="chain",
    impacts={"": Impact(10, 10, 9, "views of a registry, asked of the node, and a public file")},
    points_at={"file": Points.PAGE_OR_NONE},
    reaches="node",
    batches=True,
    asks=("the registration of agent {agent}",),
    judged_as=("registration",),
    example={"agent": 0},
    expects="result.ok && result.names_back != 'others'",
    public=PUBLIC
    | {"agent", "file", "registry", "owner", "wallet", "uri", "file_read", "fault", "names_back"}
    | {"services", "active", "x402", "validates", "validations", "misplaced"},
    on_chain=frozenset({"owner", "wallet"}),
    volatile=VOLATILE,
)
