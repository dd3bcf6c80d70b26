"""A profile in TOML of what was found, each key with how; what was not found is commented out. Pure.

Comments and values may quote a stranger: each is one cleaned line, and values are TOML strings.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from textwrap import wrap
from urllib.parse import urlsplit

from fleet.app.discovery.discover import Discovery
from fleet.config import Platform, parse
from fleet.config.authorisation import AuthorisationSection
from fleet.config.erc8004 import Erc8004Section
from fleet.config.section import is_loopback
from fleet.text import line

GENTLE = 5.0
"""Requests a second to a host that is neither this machine nor in a private network."""
WIDTH = 110
MCP = "mcp"
"""The role of a document that is the endpoint of an MCP server."""


@dataclass(frozen=True, slots=True)
class ProfileContext:
    """What the profile says besides what was found: its name, what wrote it and when, whether it may act.

    `gentle`: a host of it is not in a private network."""

    name: str
    command: str
    day: str
    authorisation: AuthorisationSection
    gentle: bool = False
    exercise: bool = False
    log: str = "file"
    agent: Erc8004Section | None = None
    abi: str = ""
    """File with the ABI of the contract that was named."""


@dataclass(frozen=True, slots=True)
class ProfileLine:
    """One key. `how` is what was found and how, or what the key would bring where it was not."""

    key: str
    value: object
    how: str
    found: bool = True

    def __str__(self) -> str:
        shown = f"{self.key} = {_toml(self.value)}"
        if self.found:
            return "\n".join([*(f"# {one}" for one in wrap(self.how, WIDTH - 2)), shown])
        return f"# {shown}  # with it: {self.how}"


def profile_text(found: Discovery, context: ProfileContext) -> str:
    """The profile; it is read back before it is returned."""
    head = [
        f"# Written by `{line(context.command, 300)}` on {context.day}.",
        "# Above each key: what was found, and how. A key behind # was not found, or not asked for:",
        "# what it would bring stands behind it.",
        f"name = {_toml(context.name)}",
        str(_log(context)),
    ]
    tables = {
        "web": list(_web(found, context)),
        "targets": list(_targets(found)),
        **_agents(found),
        "mcp": list(_mcp(found)),
        "chain": list(_chain(found, context)),
        **({"erc8004": list(_registry(agent))} if (agent := context.agent) else {}),
        "accounts": list(_accounts(found)),
        "authorisation": list(_authorisation(context)),
        **_hosts(found, context),
        "compiler": [
            ProfileLine(
                "command", ["/opt/tc/bin/compiler"], "its inputs are searched for crashes", found=False
            )
        ],
    }
    parts = ["\n".join(head)]
    for name, lines in tables.items():
        mark = "" if any(one.found for one in lines) else "# "
        parts.append("\n".join([f"{mark}[{name}]", *map(str, lines)]))
    notes = [f"# {one}" for site in found.sites for one in site.notes]
    text = (
        "\n\n".join([*parts, *(["# Found, and not looked at:\n" + "\n".join(notes)] if notes else [])]) + "\n"
    )
    parse(Platform, text, file="the profile that was found")
    return text


def _toml(value: object) -> str:
    """A value in TOML; texts without what TOML takes in no string."""
    if isinstance(value, str):
        return json.dumps(line(value, 500), ensure_ascii=False)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{key} = {_toml(one)}' for key, one in value.items())} }}"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _log(context: ProfileContext) -> ProfileLine:
    places = {"file": "to a file of the state directory", "chain": "to the contract at chain.diamond"}
    places["erc8004"] = "to this Reputation registry, as feedback about the agent of [erc8004]"
    where = places.get(context.log.partition(":")[0], "to this contract")
    return ProfileLine("log", context.log, f"findings are posted {where}")


def _registry(agent: Erc8004Section) -> Iterator[ProfileLine]:
    yield ProfileLine("identity", agent.identity, "getIdentityRegistry() answered it")
    yield ProfileLine("agent", agent.agent, "named on the command line: the platform's own")
    yield ProfileLine("clients", agent.clients, "the fleet's identity: only entries of these are read")
    yield ProfileLine("from_block", agent.from_block, "the newest block on that day: no entry is older")


def _web(found: Discovery, context: ProfileContext) -> Iterator[ProfileLine]:
    if not found.sites:
        yield ProfileLine(
            "site", "https://example.org", "its pages and its API would be looked at", found=False
        )
        return
    first, *others = found.sites
    yield ProfileLine("site", first.origin, first.how)
    if more := [urlsplit(one.origin).netloc for one in others]:
        yield ProfileLine("hosts", more, "; ".join(one.how for one in others))
    if context.gentle:
        yield ProfileLine("requests_per_second", GENTLE, "gentle: this host is not on a private network")
    acts = "tools may send POST, PUT, PATCH and DELETE there at the rung exercise"
    if context.exercise:
        yield ProfileLine("act_paths", ["{site}/"], f"{acts}: narrow it to what may be changed")
    else:
        yield ProfileLine("act_paths", ["{site}/api"], acts, found=False)
    yield ProfileLine(
        "never", ["{site}/logout"], "places that nothing asks, at any rung, not even by GET", found=False
    )
    yield ProfileLine(
        "version", "{site}/version.json", "open items would be run again with a new build", found=False
    )
    yield ProfileLine("face", "https://{name}.example.org/", "pages of names would be looked at", found=False)
    yield ProfileLine("proxy", "https://agents.example.org", "agents would be called", found=False)


def _targets(found: Discovery) -> Iterator[ProfileLine]:
    taken = set[str]()
    for number, site in enumerate(found.sites):
        short = "{site}" if number == 0 else site.origin
        if site.start:
            yield ProfileLine(_role("start", taken), short + site.start, "named on the command line")
        for one in (each for each in site.documents if each.role != MCP):
            yield ProfileLine(_role(one.role, taken), short + one.url[len(site.origin) :], one.how)
    roles = {"guide": "/llms.txt", "description": "/openapi.json"}
    brings = {
        "guide": "what the platform says of itself would be compared with what it does",
        "description": "each operation of the API would be asked as it is described, and as it is not",
    }
    for role, path in roles.items():
        if role not in taken:
            yield ProfileLine(role, f"{{site}}{path}", brings[role], found=False)


def _agents(found: Discovery) -> dict[str, list[ProfileLine]]:
    """A table for each agent; without any, one that shows how it would look."""
    called, taken = "it is called at the rung exercise", set[str]()
    tables = dict[str, list[ProfileLine]]()
    for number, site in enumerate(found.sites):
        short = "{site}" if number == 0 else site.origin
        for one in site.agents:
            lines = [
                ProfileLine("wire", one.wire, f"{one.how}; {called}"),
                ProfileLine("url", short + one.url[len(site.origin) :], "from there"),
            ]
            if one.model:
                lines.append(ProfileLine("model", one.model, "what the list calls it"))
            tables[f"agents.{_role(one.name, taken)}"] = lines
    wires = "the agent would be asked; a2a-0.3 and chat are others"
    none = [
        ProfileLine("wire", "a2a-1.0", wires, found=False),
        ProfileLine("url", "{site}/a2a", called, found=False),
    ]
    return tables or {"agents.keeper": none}


def _mcp(found: Discovery) -> Iterator[ProfileLine]:
    known = {
        ("{site}" if number == 0 else site.origin) + one.url[len(site.origin) :].partition("?")[0]: one.how
        for number, site in enumerate(found.sites)
        for one in site.documents
        if one.role == MCP
    }
    tools = "what it lists is read, and its tools are called where act_paths lists it, at the rung exercise"
    if known:
        yield ProfileLine("endpoints", list(known), f"{'; '.join(known.values())}: {tools}")
    else:
        yield ProfileLine("endpoints", ["{site}/mcp"], tools, found=False)


def _role(role: str, taken: set[str]) -> str:
    """The role, numbered where it is taken."""
    name = next(one for one in (role, *(f"{role}-{n}" for n in range(2, 99))) if one not in taken)
    taken.add(name)
    return name


def _hosts(found: Discovery, context: ProfileContext) -> dict[str, list[ProfileLine]]:
    """Whose word permits acts on each host that is not of this machine, where acts were asked for."""
    hosts = [urlsplit(one.origin) for one in found.sites] if context.exercise else []
    by = f"{context.authorisation.by or context.command}, --exercise on {context.day}"
    return {
        f"hosts.{_toml(host.netloc)}": [
            ProfileLine(
                "criticality", "production", "nothing is known of it, so as if it were in production"
            ),
            ProfileLine("approved", by[:200], "permitted acts there"),
        ]
        for host in hosts
        if not is_loopback(host.hostname or "")
    }


def _authorisation(context: ProfileContext) -> Iterator[ProfileLine]:
    word = context.authorisation
    if word.contact:
        yield ProfileLine("contact", word.contact, "follows the User-Agent of each request")
    else:
        yield ProfileLine("contact", "qa@example.org", "each request's User-Agent says who asks", found=False)
    if word.reference:
        yield ProfileLine("reference", word.reference, "what permits the tests")
    if not word.hosts:
        yield ProfileLine(
            "by",
            "NAME",
            "a host outside of private networks may be tested; `fleet look` asks for it",
            found=False,
        )
        return
    yield ProfileLine("by", word.by, "said that these hosts may be tested")
    yield ProfileLine("on", word.on, "the day of it")
    yield ProfileLine("hosts", word.hosts, "each that it is for")


def _chain(found: Discovery, context: ProfileContext) -> Iterator[ProfileLine]:
    node, contract = found.node, found.contract
    if node is None:
        yield ProfileLine("rpc", "https://rpc.example.org", "the chain would be read", found=False)
        yield ProfileLine("id", 1, "a node of another chain would be refused", found=False)
    else:
        yield ProfileLine("rpc", node.rpc, node.how)
        yield ProfileLine("id", node.id, node.how)
    if contract is None:
        yield ProfileLine(
            "diamond", "0x" + "0" * 39 + "1", "the contract there would be examined", found=False
        )
    else:
        yield ProfileLine("diamond", contract.address, contract.how)
    if contract and context.abi:
        yield ProfileLine("abi", context.abi, "named on the command line: its functions by name and type")
    else:
        yield ProfileLine(
            "abi", "contract.json", "a contract's functions would be known by name and type", found=False
        )


def _accounts(found: Discovery) -> Iterator[ProfileLine]:
    """The two lines with which a visitor becomes two users."""
    ways = [way for site in found.sites for way in site.ways_in]
    known = f"; its description names: {', '.join(line(one, 40) for one in ways[:4])}" if ways else ""
    brings = f"from the rung exercise, what users see and may do to each other would be looked at{known}"
    for label in ("one", "other"):
        value = {"user": f"qa-{label}@example.org", "secret_env": f"QA_ACCOUNT_{label.upper()}"}
        yield ProfileLine(label, value, brings if label == "one" else "another person's", found=False)
