"""The profile of a platform: one file of `config/platforms/`."""

from __future__ import annotations

import re
from collections.abc import Hashable
from contextlib import suppress
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import (
    Field,
    StringConstraints,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from fleet.config.accounts import AccountsSection
from fleet.config.agents import AgentName, AgentSection
from fleet.config.authorisation import AuthorisationSection
from fleet.config.compiler import CompilerSection
from fleet.config.erc8004 import Erc8004Section
from fleet.config.escalation import KILOBYTES, SHARES, EscalationSection, Level
from fleet.config.limits import LimitsSection
from fleet.config.never_hosts import everybodys
from fleet.config.payments import NO_PAYMENTS, PaymentsSection
from fleet.config.provider import ProviderSection
from fleet.config.ranges import METADATA, METADATA_NAMES, AddressRanges
from fleet.config.scope import HostCare, HostSection, ScheduleSection
from fleet.config.section import ActPath, Address, HttpUrl, Section, UrlPath, is_loopback
from fleet.config.url_list import UrlEntry, UrlList, host_of
from fleet.config.watch import WatchSection
from fleet.errors import ConfigError
from fleet.severity import Severity
from fleet.text import clean

HostName = Annotated[str, StringConstraints(pattern=r"^(\*\.)?[A-Za-z0-9._\[\]:-]{1,253}$")]
Role = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]{0,31}$")]
MetadataName = Annotated[str, StringConstraints(pattern=r"^[!-~]{0,100}$")]
Fact = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,47}$")]
LogWord = Annotated[
    str,
    StringConstraints(
        pattern=r"^(chain|file(:[A-Za-z0-9][A-Za-z0-9_.-]{0,63})?|(contract|erc8004):0x[0-9a-fA-F]{40})?$"
    ),
]
FOREIGN_RATE, OWN_RATE = 10.0, 50.0
"""Requests a second where a profile states none: to another machine's host, and to one of this machine."""
METADATA_HOSTS = frozenset({*METADATA_NAMES, *map(str, METADATA)})
_WS_URL = re.compile(r"wss?://[^\s/?#@]+(/[^\s?#]*)?")


class PostSection(Section):
    """Which findings a person releases before they are posted."""

    hold: tuple[Severity, ...] = ()
    """Severities that wait for `fleet items release`, proven and sealed meanwhile. Outages do not wait."""
    commit: bool = False
    """Post the SHA-256 of what waits: it keeps the date and says nothing, until the entry itself is there."""
    mask: tuple[UrlEntry | Annotated[str, StringConstraints(pattern=r"^0x[0-9a-fA-F]{8}$")], ...] = ()
    """Hosts and paths, as in `web.never`, and selectors of 4 bytes that a log never names in clear: its text
    has `[withheld]` there, and a repro that names one is in the evidence alone."""


class ChainSection(Section):
    """Optional as a whole: without it no node is asked, no key is made and nothing is signed."""

    rpc: HttpUrl
    """JSON-RPC endpoint of the node."""
    ws: str = ""
    """WebSocket endpoint of the node, if it has one: a new block then wakes the chain triggers at once.

    What happened is still read from `rpc`; while this endpoint is down, polling goes on as usual."""
    id: int = Field(gt=0)
    """Chain id; a node that answers another one is refused before anything is signed."""
    diamond: Address | Literal[""] = ""
    """The EIP-2535 diamond that holds names, metadata and the feedback log, if there is one."""
    abi: str = ""
    """File with the ABI of `diamond` in JSON, beside this one: its functions are then known by name and type,
    as far as no document and no loupe says them."""
    token: Address | Literal[""] = ""
    """ERC-20 that registration is paid in; leave it out where names are free."""
    confirmations: int = Field(default=0, ge=0)
    """Blocks on top before a log entry counts as read."""
    finality_blocks: int = Field(default=64, ge=0, le=100_000)
    """Blocks on top of our entry before its last check, which posts it again if it is gone.

    At least `confirmations`: anything deeper counts as final."""
    max_gas_price_gwei: int = Field(default=50, gt=0)
    """A node that asks for more is refused (platform-facts 1.5)."""

    @field_validator("ws")
    @classmethod
    def _websocket(cls, url: str) -> str:
        try:
            valid = not url or (_WS_URL.fullmatch(url) is not None and urlsplit(url).port != 0)
        except ValueError:
            valid = False
        if not valid:
            raise ValueError(
                f"{url!r} is not a WebSocket URL: expected ws://HOST[:PORT][/PATH] or wss://HOST[:PORT][/PATH]"
            )
        return url

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.abi and not self.diamond:
            raise ValueError("abi is that of the contract at diamond: set diamond too")
        if self.finality_blocks < self.confirmations:
            raise ValueError(
                f"finality_blocks = {self.finality_blocks} is less than confirmations = {self.confirmations}:"
                " an entry cannot be final before it is read"
            )
        return self


NO_CHAIN = ChainSection.model_construct(rpc="", id=0)
"""The chain of a platform without one: its `rpc` and `diamond` are empty."""


class WebSection(Section):
    """Every part is optional: probes that need a missing part are not applicable."""

    site: HttpUrl | Literal[""] = ""
    """Base URL of the public documents."""
    face: Annotated[str, StringConstraints(pattern=r"^https?://[^\s]*\{name\}[^\s]*$")] | Literal[""] = ""
    """URL of a name's public face, with `{name}` where the name goes."""
    proxy: HttpUrl | Literal[""] = ""
    """Base URL of the agent-call proxy."""
    model: str = ""
    """What `{model}` of the call paths is; agents cannot be called without it."""
    auth_scope: str = ""
    """First part of the message that a call token signs; agents cannot be called without it."""
    route: str | None = None
    """Last part of that message; "" where it has none. Agents cannot be called while it is left out."""
    call_path: UrlPath = "/v1beta/models/{model}:generateContent"
    """Path below `proxy` that a call is posted to, in the Gemini API's words unless it says otherwise."""
    stream_path: UrlPath = "/v1beta/models/{model}:streamGenerateContent?alt=sse"
    """The same for a call that is answered in an event stream."""
    token_header: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]{0,63}$")] = "x-goog-api-key"
    """Header that carries the call token."""
    hosts: tuple[str, ...] = ()
    """More `host:port` pairs that tools may fetch; site, face and proxy are always included."""
    version: (
        Annotated[str, StringConstraints(pattern=r"^(\{site\}|\{proxy\})?/[!-~]{0,200}$")] | Literal[""]
    ) = ""
    """Document that names the build and changes only with it, such as `{site}/version.json`: when it changes,
    open items are run again. Without it the site's own ETag is looked at."""
    controls: tuple[HttpUrl, ...] = ()
    """Pages of other hosts: one must answer before this platform is reported down. No findings about them."""
    patience_s: float = Field(default=7.0, ge=0.1, le=600)
    """Seconds without an answer before a target is reported down."""
    act_paths: tuple[ActPath, ...] = ()
    """Where tools may send POST, PUT, PATCH and DELETE, from the rung `exercise` up: `{site}/api/cart` is
    that path and all below it. Agents are called besides."""
    never: tuple[UrlEntry, ...] = ()
    """Hosts and paths that nothing asks, at any rung and in any spelling: `admin.example.org`,
    `*.internal.example.org`, `{site}/logout` and all below it, `/billing` of every host. An entry without a
    port means every port and scheme."""
    ranges: tuple[str, ...] = ()
    """Addresses where these hosts may be, in CIDR, such as `203.0.113.0/24` or `2001:db8::/32`: a host that
    resolves to another one is not dialled. A private range lets names resolve into it. Without any, every
    public address may be dialled, and no private one."""
    dnssec: bool = False
    """Whether a name of a signed zone is dialled only where the resolver of this machine's network has
    validated its addresses (DNSSEC)."""
    requests_per_second: float | None = Field(default=None, ge=0.1, le=10_000)
    """Most requests a second to one host, of all runs of a process together; more wait for their turn, and a
    strained host is asked less. Left out: 10, and 50 of this machine's own hosts."""
    network_per_second: float | None = Field(default=None, ge=0.1, le=100_000)
    """Most requests a second to all hosts of one network (/24, of IPv6 /48), and of one of `ranges`: they are
    asked less once they would take four fifths of it. Left out: four times that of a host."""
    total_per_second: float | None = Field(default=None, ge=0.1, le=100_000)
    """Most requests a second to all hosts together; nothing leaves while they are spent. Left out: ten times
    that of a host. This machine's own hosts count towards neither."""
    megabits_per_second: float = Field(default=5_000, gt=0, le=1_000_000)
    """Most that is sent and received by all jails together; nothing leaves while a second's worth is owed."""
    impact_shares: dict[Level, Annotated[float, Field(gt=0, le=1)]] = {}
    """The share of a host's rate for calls of an impact, but of this machine's own hosts; left out: low 1,
    medium 0.9, high 0.8, critical 0.5."""
    impact_kilobytes: dict[Level, Annotated[int, Field(ge=1, le=1024)]] = {}
    """The longest body of a request of a call of an impact; left out: low 100, all else 1024."""
    degraded_s: float = Field(default=120.0, ge=1, le=86_400)
    """Seconds for which a host may be strained (503, or pages at more than twice their time) although it is
    asked less; then a run ends as `target_degraded`."""
    requests_per_day: int = Field(default=20_000, ge=0)
    """Most requests of explorers on one day (UTC)."""
    listener: HttpUrl | Literal["", "off"] = ""
    """Where this platform reaches a listener of the fleet, such as `http://10.0.0.5:8899`, an address of this
    machine in a private network: what an input makes a server ask for is seen there. Left out: a port of its
    own where every host is this machine's, else none; `off`: none."""

    @property
    def listens(self) -> bool:
        """Whether the fleet has a listener that this platform reaches."""
        urls = (self.site, self.face.replace("{name}", "name"), self.proxy)
        hosts = [*(urlsplit(url).hostname or "" for url in urls if url)]
        hosts += [urlsplit(f"//{host}").hostname or "" for host in self.hosts]
        return self.listener != "off" and (
            bool(self.listener) or (bool(hosts) and all(map(is_loopback, hosts)))
        )

    def rate(self, host: str) -> float:
        """Most requests a second to a host."""
        if self.requests_per_second is not None:
            return self.requests_per_second
        return OWN_RATE if is_loopback(host) else FOREIGN_RATE

    def share(self, host: str, level: Level) -> float:
        """What of a host's rate calls of an impact get."""
        return 1.0 if is_loopback(host) else {**SHARES, **self.impact_shares}[level]

    def longest_body(self, level: Level) -> int:
        """Bytes."""
        return 1024 * {**KILOBYTES, **self.impact_kilobytes}[level]

    def groups(self, address: str) -> dict[Hashable, float]:
        """The wider groups of hosts that an address is in, with most requests a second to each; none of this
        machine."""
        if is_loopback(address):
            return {}
        ip = ip_address(address.partition("%")[0])
        usual = self.requests_per_second or FOREIGN_RATE
        wide = self.network_per_second or 4 * usual
        places: list[Hashable] = [ip_network((ip, 24 if ip.version == 4 else 48), strict=False)]
        places += [one for one in self.addresses.networks if ip.version == one.version and ip in one]
        return {**dict.fromkeys(places, wide), "all": self.total_per_second or 10 * usual}

    @field_validator("ranges")
    @classmethod
    def _in_cidr(cls, ranges: tuple[str, ...]) -> tuple[str, ...]:
        AddressRanges.of(ranges)
        return ranges

    @property
    def addresses(self) -> AddressRanges:
        """`ranges`, ready to be asked."""
        return AddressRanges.of(self.ranges)

    @property
    def never_places(self) -> UrlList:
        """`never`, ready to be asked."""
        return UrlList.of(self.never, site=self.site, proxy=self.proxy)

    @property
    def acted_on(self) -> tuple[str, ...]:
        """`act_paths` as URLs."""
        return tuple(map(self.filled, self.act_paths))

    @property
    def version_url(self) -> str:
        """`version` as a URL; without one the site; "" without a site."""
        if not self.version:
            return self.site
        return self.filled(self.version if self.version[0] == "{" else "{site}" + self.version)

    @property
    def unstated(self) -> tuple[str, ...]:
        """Keys without which agents cannot be called, and which this profile leaves out."""
        stated = {"web.model": self.model or "{model}" not in self.call_path + self.stream_path}
        stated |= {"web.auth_scope": self.auth_scope, "web.route": self.route is not None}
        return tuple(key for key, there in stated.items() if not there)

    @field_validator("listener")
    @classmethod
    def _inside(cls, url: str) -> str:
        """A public address that a server asks for shows nothing: anybody may read it."""
        host, inside = urlsplit(url).hostname or "", False
        with suppress(ValueError):  # the address of no interface would open the port on each
            inside = ip_address(host).is_private and not ip_address(host).is_unspecified
        if url in ("", "off") or is_loopback(host) or inside:
            return url
        raise ValueError(f"{url} is not an address of this machine in a private network")

    @field_validator("controls")
    @classmethod
    def _others(cls, controls: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        own = {urlsplit(info.data.get(key) or "").netloc for key in ("site", "face", "proxy")}
        for url in controls:
            if urlsplit(url).netloc in own:
                raise ValueError(f"{url} is the platform itself: name a page of another host")
        return controls

    def filled(self, path: str) -> str:
        """A path that begins with `{site}` or `{proxy}`, as a URL."""
        for word, base in (("{site}", self.site), ("{proxy}", self.proxy)):
            path = path.replace(word, base.rstrip("/"))
        return path

    @model_validator(mode="after")
    def _never_asked(self) -> Self:
        for url in (self.site, self.face, self.proxy, *(f"http://{host}" for host in self.hosts)):
            parts = urlsplit(url.replace("{name}", "x"))
            if why := everybodys(parts.geturl(), parts.port or 0):
                raise ValueError(f"{why}: no profile puts it in scope")
            if (host := host_of(url.replace("{name}", "x"))) in METADATA_HOSTS:
                raise ValueError(f"{host} is a cloud's metadata service, which is never asked")
        return self

    @model_validator(mode="after")
    def _never_contradicts(self) -> Self:
        asked = {"site": self.site, "proxy": self.proxy, "version": self.version_url}
        asked |= {f"act_paths: {path}": url for path, url in zip(self.act_paths, self.acted_on, strict=True)}
        for key, url in asked.items():
            if entry := self.never_places.match(url):
                raise ValueError(f"never: {entry} bars what {key} asks: take out one of the two")
        return self

    @model_validator(mode="after")
    def _acts_at_home(self) -> Self:
        own = {urlsplit(url).netloc for url in (self.site, self.proxy)} | set(self.hosts)
        for path, url in zip(self.act_paths, self.acted_on, strict=True):
            if url.startswith("/") or urlsplit(url).netloc not in own:
                raise ValueError(f"act_paths: {path} is not on the site, the proxy or one of `hosts`")
            if {".", ".."} & set(urlsplit(url).path.split("/")):
                raise ValueError(f"act_paths: {path} climbs: write the path itself")
        return self


class McpSection(Section):
    """MCP servers over streamable HTTP. What they list is read at any rung; a tool is called from the rung
    `exercise` up, and only where `web.act_paths` lists the endpoint: its server alone knows what it does."""

    endpoints: tuple[ActPath, ...] = Field((), max_length=8)
    """Where they answer, such as `{site}/mcp`; on the site, the proxy or one of `web.hosts`."""
    never: tuple[Annotated[str, StringConstraints(min_length=1, max_length=200)], ...] = ()
    """Tools, prompts and resources of theirs that are never asked for."""


class MetadataSection(Section):
    """Names of the metadata keys; the key itself is the keccak-256 of its name."""

    app: MetadataName = ""
    """Holds a name's published module; without it nothing is published."""
    face: MetadataName = ""
    """Holds which face a name shows; without it nothing is published."""
    face_app: str = Field(default="app", min_length=1, max_length=64)
    """What `face` holds of a name that shows its app."""
    persona: MetadataName = ""
    """Holds the persona of an agent; `fleet personas publish` writes it."""
    others: tuple[Annotated[str, StringConstraints(pattern=r"^[!-~]{1,100}$")], ...] = ()
    """More names that reads of the chain may use in place of a key."""

    @property
    def names(self) -> dict[str, str]:
        """What may stand for a key in a call, and the name it stands for: a role of this table, or a name."""
        roles = {role: name for role in ("app", "face", "persona") if (name := getattr(self, role))}
        return roles | {name: name for name in (*roles.values(), *self.others)}


class GasSection(Section):
    """Gas limits by formula: base plus a price per byte (platform-facts 1.5); unused gas is not billed."""

    publish_base: int = 1_200_000
    """`setMetadata` of an app, before its bytes."""
    publish_per_byte: int = 8_500
    """For each byte of the app."""
    feedback_base: int = 1_500_000
    """`submitFeedback`, before its bytes."""
    feedback_per_byte: int = 9_000
    """For each byte of the text."""
    register_name: int = 2_200_000
    """`register`, with its approval."""
    release_name: int = 1_000_000
    """`releaseName`."""
    small: int = 1_200_000
    """All other writes: face choice, approve, daily claim."""


class SponsorSection(Section):
    mode: Literal["stipend", "sponsored"] = "stipend"
    """`stipend`: fund a throwaway key with the exact cost of its next transaction, sweep what is left.
    `sponsored`: the key never holds anything; the sponsor sends its calls, where the chain has EIP-7702, or
    pays for them, on a chain of Tempo."""
    max_wei: int = Field(default=10**18, gt=0)
    """Most wei that the sponsor pays out in one run."""


class Platform(Section):
    """One platform under test: `config/platforms/<name>.toml`."""

    name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9 _.-]{0,63}$")]
    """Name in runs and reports, and of its log in a file; by convention the name of the profile's file."""
    log: LogWord = ""
    """Where findings are posted: `chain` is the diamond's feedback log, the default where there is a diamond;
    `file` is the append-only file `logs/<name>.jsonl` in the state directory, the default elsewhere, and
    `file:NAME` is `logs/NAME.jsonl`; `contract:0x…` is another contract with a feedback log, and
    `erc8004:0x…` an ERC-8004 Reputation registry."""
    erc8004: Erc8004Section | None = None
    """The platform's agent in an ERC-8004 registry."""
    chain: ChainSection = NO_CHAIN
    """The chain and the contracts on it, if the platform has one."""
    watch: WatchSection = WatchSection()
    """What is watched of its contracts between runs."""
    schedule: ScheduleSection = ScheduleSection()
    """When it may be tested."""
    hosts: dict[HostName, HostSection] = Field({}, json_schema_extra={"additionalProperties": False})
    """How much hangs on a host, as `[hosts."api.example.org"]`; `*.` and a host are all names below it."""
    post: PostSection = PostSection()
    """What a person releases before it is posted."""
    escalation: EscalationSection = EscalationSection()
    """When a run waits for a person, and who may answer."""
    limits: LimitsSection = LimitsSection()
    """Figures at which tests end by themselves, and bounds of one answer."""
    web: WebSection = WebSection()
    """Its public documents, faces and proxy."""
    mcp: McpSection = McpSection()
    """Its MCP servers, if it has any."""
    payments: PaymentsSection = NO_PAYMENTS
    """What is paid for there, if anything is."""
    accounts: AccountsSection | None = None
    """Two accounts to sign in with; without them the fleet signs up its own, where a platform lets it."""
    authorisation: AuthorisationSection = AuthorisationSection()
    """Who said that this platform may be tested, and who answers for it."""
    providers: dict[
        Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9-]{0,47}$")], ProviderSection
    ] = Field({}, json_schema_extra={"additionalProperties": False})
    """Who outside gets something of the fleet's, as somebody vetted them. Where `[authority] signers` is set,
    nothing runs while one that is not named, or not approved, gets anything."""
    compiler: CompilerSection = CompilerSection()
    """Its compiler, if it has one that runs here."""
    metadata: MetadataSection = MetadataSection()
    """Names of the metadata keys."""
    gas: GasSection = GasSection()
    """Gas limits."""
    sponsor: SponsorSection = SponsorSection()
    """How throwaway keys are funded, and up to what amount."""
    call_targets: tuple[str, ...] = ()
    """Standing agents behind the proxy that `qa_call` may talk to besides the run's own names."""
    agents: dict[AgentName, AgentSection] = Field({}, json_schema_extra={"additionalProperties": False})
    """Agents that are called elsewhere, by name, such as `[agents.keeper]`."""
    targets: dict[Role, Annotated[str, StringConstraints(min_length=1, max_length=500)]] = {}
    """Targets of probes, by role: a name, or a URL that may begin with `{site}` or `{proxy}`;
    `{target:ROLE}` in a probe. An omitted role makes its probes not applicable."""
    facts: dict[Fact, bool | int | float | str] = {}
    """Promises of this platform, e.g. `call_price_wei`; `facts.NAME` in an expectation."""
    history: dict[str, float] = {}
    """Figures of earlier releases by metric, e.g. `face_p95_ms`; our own history replaces them."""

    @property
    def agent_names(self) -> tuple[str, ...]:
        """Every agent that may be called."""
        return tuple(dict.fromkeys((*self.call_targets, *self.agents)))

    @property
    def agent_urls(self) -> dict[str, str]:
        """Where each of `agents` is called."""
        return {name: self.web.filled(one.path) for name, one in self.agents.items()}

    @property
    def calls_agents(self) -> bool:
        """Whether it says how any agent is called."""
        return bool(self.agents or (self.web.proxy and not self.web.unstated))

    @property
    def mcp_urls(self) -> tuple[str, ...]:
        """`mcp.endpoints` as URLs."""
        return tuple(map(self.web.filled, self.mcp.endpoints))

    @property
    def paid_urls(self) -> dict[str, int | None]:
        """`payments.resources` as URLs, each with its price by the documents."""
        prices = self.payments.prices
        return {self.web.filled(path): prices.get(path) for path in self.payments.resources}

    @model_validator(mode="after")
    def _pays_on_chain(self) -> Self:
        if self.payments.resources and not self.chain.rpc:
            raise ValueError("payments needs the table [chain] with rpc and id: that is where is paid")
        return self

    @model_validator(mode="after")
    def _at_home(self) -> Self:
        own = {urlsplit(url).netloc for url in (self.web.site, self.web.proxy)} | set(self.web.hosts)
        named = {f"mcp.endpoints: {path}": self.web.filled(path) for path in self.mcp.endpoints}
        named |= {f"payments.resources: {path}": self.web.filled(path) for path in self.payments.resources}
        named |= {f"agents.{name}.url: {self.agents[name].url}": url for name, url in self.agent_urls.items()}
        for key, url in named.items():
            if url.startswith("/") or urlsplit(url).netloc not in own:
                raise ValueError(f"{key} is not on web.site, web.proxy or one of web.hosts")
        if twice := set(self.call_targets) & set(self.agents):
            raise ValueError(f"agents.{min(twice)} is in call_targets as well: take it out of one of the two")
        return self

    @property
    def logs_on_chain(self) -> bool:
        """Whether findings are posted to a contract, and not to a file."""
        return bool(self.log_contract)

    @property
    def log_contract(self) -> str:
        """The contract that findings are posted to; "" for a file."""
        kind, _, address = self.log.partition(":")
        return self.chain.diamond if kind in ("", "chain") else address.lower() if kind != "file" else ""

    @property
    def logs_on_diamond(self) -> bool:
        """Whether that is the diamond, whose log the chain triggers watch with everything else of it."""
        return self.logs_on_chain and self.log_contract == self.chain.diamond

    @property
    def agent(self) -> Erc8004Section | None:
        """The agent that findings are posted about; None unless the log is a Reputation registry."""
        return self.erc8004 if self.log.startswith("erc8004:") else None

    @property
    def signs(self) -> bool:
        """Whether anything is signed for this platform: then the identity's key is needed."""
        return bool(self.chain.diamond or self.log_contract)

    @property
    def log_name(self) -> str:
        """The log in the journal: "<chain id>:<contract>", with the agent's id behind it in a Reputation
        registry, or "file:<name>"."""
        if self.logs_on_chain:
            place = f"{self.chain.id}:{self.log_contract.lower()}"
            return f"{place}:{self.agent.agent}" if self.agent else place
        return self.log if ":" in self.log else f"file:{self.name}"

    def log_file(self, state: Path) -> Path | None:
        """The file of the log in this state directory; None when it is on chain."""
        name = self.log_name.removeprefix("file:")
        return None if self.logs_on_chain else state / "logs" / f"{name}.jsonl"

    def with_log(self, log: str) -> Self:
        """The same platform with another log; ConfigError when the profile lacks what that one needs."""
        try:
            return type(self).model_validate(self.model_dump(exclude_unset=True) | {"log": log})
        except ValidationError as error:
            why = error.errors()[0]["msg"].removeprefix("Value error, ")
            raise ConfigError(f"log {clean(log, 80)!r} of profile {self.name!r}: {why}") from None

    @model_validator(mode="before")
    @classmethod
    def _log_moved(cls, data: Any) -> Any:  # noqa: ANN401  whatever the file holds
        chain = data.get("chain") if isinstance(data, dict) else None
        if isinstance(chain, dict) and "log" in chain:
            raise ValueError(f'chain.log is now `log`, above the tables: log = "{chain["log"]}"')
        return data

    @model_validator(mode="after")
    def _log_exists(self) -> Self:
        if self.log == "chain" and not self.chain.diamond:
            raise ValueError('log = "chain" needs chain.diamond; log = "file" needs no contract')
        if self.logs_on_chain and not self.chain.rpc:
            raise ValueError(f'log = "{self.log}" needs the table [chain] with rpc and id')
        if self.erc8004 and not self.chain.rpc:
            raise ValueError("erc8004 needs the table [chain] with rpc and id: the registry is there")
        if self.log.startswith("erc8004:") and not (self.erc8004 and self.erc8004.clients):
            raise ValueError(f'log = "{self.log}" needs the table [erc8004] with identity, agent and clients')
        return self

    @model_validator(mode="after")
    def _mask_names_places(self) -> Self:
        places = (one for one in self.post.mask if not one.startswith("0x"))
        try:
            UrlList.of(places, site=self.web.site, proxy=self.web.proxy)
        except ValueError as error:
            raise ValueError(f"post.mask: {str(error).removeprefix('never: ')}") from None
        return self

    @property
    def care(self) -> HostCare:
        """How much hangs on each host."""
        return HostCare.of(self.hosts)
