"""The parts of a platform, each optional: which keys name it, and what is not looked at without it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from fleet.config.platform import Platform


@dataclass(frozen=True, slots=True)
class ProfilePart:
    """`keys` of the profile name it; `brings` is what is looked at with it."""

    keys: str
    brings: str
    named: Callable[[Platform], object]
    """What the profile says of it; false without it."""


PARTS: Mapping[str, ProfilePart] = {
    "chain": ProfilePart("chain.rpc and chain.id", "the node, and outages of it", lambda one: one.chain.rpc),
    "diamond": ProfilePart(
        "chain.diamond",
        "the contract and its names, with a log on chain",
        lambda one: one.chain.diamond,
    ),
    "site": ProfilePart("web.site", "pages, forms, documents and a web API", lambda one: one.web.site),
    "faces": ProfilePart("web.face", "the public pages of names", lambda one: one.web.face),
    "proxy": ProfilePart("web.proxy", "the endpoint for calls to agents", lambda one: one.web.proxy),
    "agents": ProfilePart(
        "[agents], or web.model, web.auth_scope and web.route",
        "what agents answer",
        lambda one: one.calls_agents,
    ),
    "mcp": ProfilePart(
        "mcp.endpoints", "what an MCP server lists, and its tools", lambda one: one.mcp.endpoints
    ),
    "payments": ProfilePart(
        "payments.resources", "what is paid for, and what is charged", lambda one: one.payments.resources
    ),
    "registry": ProfilePart(
        "erc8004.identity and erc8004.agent", "how its agent is registered", lambda one: one.erc8004
    ),
    "compiler": ProfilePart("compiler.command", "the compiler", lambda one: one.compiler.command),
}
"""By the name in the output of commands. A log is always there: a file, unless the profile names another."""


def not_configured(platform: Platform) -> dict[str, str]:
    """What each missing part costs, in a line: what is not looked at, and which keys would change it."""
    return {
        name: f"not configured: set {part.keys} to look at {part.brings}"
        for name, part in PARTS.items()
        if not part.named(platform)
    }


def in_short(platform: Platform) -> str:
    """The parts that a profile names, and its log, in a line."""
    chain, web = platform.chain, platform.web
    words = {
        "chain": str(chain.id) if chain.rpc else "",
        "diamond": chain.diamond,
        "site": web.site,
        "proxy": web.proxy,
        "mcp": ", ".join(platform.mcp.endpoints),
        "payments": ", ".join(platform.payments.resources),
        "registry": f"agent {platform.erc8004.agent}" if platform.erc8004 else "",
        "compiler": platform.compiler.command[:1] and platform.compiler.command[0],
        "log": "" if platform.logs_on_diamond else platform.log_name,
    }
    return ", ".join(f"{name} {word}" for name, word in words.items() if word)
