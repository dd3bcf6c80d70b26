"""What an operator configures in `fleet.toml`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date, timedelta
from decimal import Decimal
from typing import Annotated, Literal, Self, get_args

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    StringConstraints,
    field_validator,
    model_validator,
)

from fleet.config.integrity import IntegritySection
from fleet.config.notify import NotifySection
from fleet.config.propose import ProposeSection, RepositoryName, RepositorySection
from fleet.config.section import Address, CertificateFile, HttpUrl, Section, in_the_clear


class JailSection(Section):
    """The fence around one call: bubblewrap, or containers of Docker's engine."""

    backend: Literal["auto", "bubblewrap", "docker"] = "auto"
    """`auto`: bubblewrap where it is installed, else Docker. Whichever it is must pass its self-check: the
    fleet never changes to another one by itself."""
    socket: Annotated[str, StringConstraints(pattern=r"^(unix:///[!-~]{1,200})?$")] = ""
    """Docker's engine, `unix:///run/docker.sock`; "": DOCKER_HOST, else that one. Never over a network."""
    image: Annotated[str, StringConstraints(max_length=200)] = ""
    """Docker: image of the jail, by `docker build -f sandbox/Dockerfile`; "": an empty one, with the host's
    /usr, its Python and the guest code mounted read-only."""
    runtime: Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_.-]{0,40}$|^$")] = ""
    """Docker: runtime of the containers, such as `runsc`; "": the engine's own."""


def _money(value: object) -> Decimal:
    """An amount as TOML has it: 2 or 0.50. A float is taken as written, not as stored in binary."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise ValueError("an amount in dollars is a number, e.g. 0.50")
    return Decimal(str(value))


Count = Annotated[int, Field(strict=True, ge=0, le=1_000_000_000_000)]
Usd = Annotated[
    Decimal, BeforeValidator(_money), Field(ge=0, le=1_000_000, decimal_places=6, allow_inf_nan=False)
]
"""US dollars, to the micro-dollar."""


class DayLimits(Section):
    """The most that may be spent on one day (UTC); an omitted unit has no limit."""

    calls: Count | None = None
    """Tool calls."""
    writes: Count | None = None
    """Transactions signed for tools, besides clean-up."""
    reports: Count | None = None
    """Findings posted; the closing report of a run is not counted here."""
    tokens: Count | None = None
    """Model tokens."""
    usd: Usd | None = None
    """Model money, in dollars."""


class FleetDayLimits(DayLimits):
    """The most that all runs together may spend on one day (UTC); a unit without a number has no limit."""

    writes: Count | None = 10_000
    """Transactions signed for tools, besides clean-up."""
    reports: Count | None = 1_000
    """Findings posted; the closing report of a run is not counted here."""
    tokens: Count | None = 10_000_000
    """Model tokens."""


class StoreSection(Section):
    """Location of the journal: a file in the state directory unless one of these is set."""

    url: Annotated[str, StringConstraints(pattern=r"^(postgres(ql)?://.*)?$")] = ""
    """`postgresql://user@host:5432/database`, for several daemons on one journal; no password here."""
    url_file: str = ""
    """A file (mode 0600) that holds the URL with its password; relative to the state directory.

    While both are empty, the systemd credential `store-url` is used if it exists."""
    stalled_s: float = Field(default=120.0, ge=2, le=3600)
    """Seconds without a heartbeat after which the other daemons settle a daemon's runs."""


_AGE = r"^(age1[02-9ac-hj-np-z]{58})?$"


class KeepSection(Section):
    """How long the folders of ended runs are kept: trajectory, brief, evidence. 0 means no limit.

    Regardless of these, names and keys still owed and evidence of entries on the log are kept."""

    days: int = Field(default=90, strict=True, ge=0, le=36_500)
    """Days after the run's end."""
    megabytes: int = Field(default=10_000, strict=True, ge=0, le=1_000_000_000)
    """Total size on disk: the oldest are removed first, at the earliest an hour after their end."""
    record_days: int = Field(default=90, strict=True, ge=0, le=36_500)
    """Days after the run's end, and after the platform's `schedule.not_after`, for which its records stay
    whatever `megabytes` says: trajectory, egress, brief, plan. Evidence and pictures may go before."""

    sealed_for: Annotated[str, StringConstraints(pattern=_AGE)] = ""
    """Public key of age (`fleet backup key FILE` makes one, and says it): backups are encrypted for it, and
    only its other half restores them. With it a copy of the state is sealed into `dumps` after every STOP,
    and credentials that runs find are sealed into `vault`."""
    second_for: Annotated[str, StringConstraints(pattern=_AGE)] = ""
    """Public key of a second person: what `vault` has opens for both keys together, and for neither alone."""
    escrow: Annotated[str, StringConstraints(pattern=_AGE)] = ""
    """Public key that opens whatever the others do, for when one of them is lost."""
    keys_since: date | None = None
    """Since when these keys are in use: `fleet check machine` is red once that is more than 90 days ago."""
    encrypted: bool = False
    """Start nothing unless the state directory is on an encrypted disk (dm-crypt, as LUKS makes it)."""
    dumps: str = "dumps"
    """The folder of such copies; relative to the state directory. Nothing removes them but a person."""
    recovery_hours: float = Field(default=4.0, gt=0, le=8_760)
    """Longest time until a backup is back in place: `fleet backup restore --check` measures it (RTO)."""
    loss_hours: float = Field(default=24.0, gt=0, le=8_760)
    """Oldest that the newest backup may be: the work that is lost at most (RPO)."""
    vault_days: int = Field(default=90, strict=True, ge=1, le=90)
    """Days for which a credential that a run found is kept, sealed."""
    people_days: int = Field(default=1095, strict=True, ge=1, le=36_500)
    """Days for which data of people and confidential texts that a run found are kept, sealed."""

    @model_validator(mode="after")
    def _records_outlast(self) -> Self:
        if 0 < self.days < self.record_days:
            raise ValueError(
                f"days = {self.days} would remove records before record_days = {self.record_days}: "
                "raise the first, or lower the second"
            )
        return self


class AuthoritySection(Section):
    """Who signs what the fleet may do: profile, and personas of the operator's own (`fleet check scope`)."""

    signers: tuple[Address, ...] = ()
    """Addresses of their keys. Each must have signed the scope as it is, else nothing runs; a change of it
    while the service runs sets STOP. Without any, nothing need be signed."""


class HookSection(Section):
    """A webhook: senders that know its secret may deliver to `POST /hooks/<name>` (`triggers/hooks`)."""

    secret_file: str = ""
    """At least 16 random bytes or their hex, mode 0600; relative to the state directory.

    While empty: systemd's credential `hook.<name>` if it exists, else `keys/hook.<name>`."""
    old_secret_file: str = ""
    """The previous secret, also accepted while senders change to the new one."""
    stop: bool = False
    """A delivery sets STOP, and starts nothing: for a pager, or a person who watches the platform. No webhook
    resumes."""
    monitors: bool = False
    """A delivery says what the platform's own monitoring sees, `{"level": "warning", "what": "CPU at 91 %"}`,
    and starts nothing: a warning is a notice; `critical` also pauses every run until a person decides."""
    stop_after: int = Field(default=1, strict=True, ge=1, le=1000)
    """So many deliveries within `stop_minutes` set STOP: alerts of the platform's own monitoring, say."""
    stop_minutes: int = Field(default=10, strict=True, ge=1, le=1440)
    """The time in which they count."""

    @model_validator(mode="after")
    def _one_purpose(self) -> Self:
        if self.stop and self.monitors:
            raise ValueError("a webhook has stop or monitors, not both: take two")
        return self


class TriageSection(Section):
    """What triage writes to the log, and how often."""

    seen_every: Annotated[str, StringConstraints(pattern=r"^[1-9][0-9]{0,3}[hd]$")] = "7d"
    """How often an item that is still seen gets a small record of its figures on the log, at most: `12h`,
    `7d`. A worklist made from the log alone has these figures."""

    def period(self) -> timedelta:
        """`seen_every` as a length of time."""
        count = int(self.seen_every[:-1])
        return timedelta(days=count) if self.seen_every.endswith("d") else timedelta(hours=count)


HostName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$")]
HookName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9-]{0,47}$")]


Delivered = Literal["text", "reasoning", "tool_request", "tool_response", "finding"]


class SinkSection(Section):
    """A sink: receives signed batches of every run's events (events/sinks.py)."""

    url: HttpUrl
    """URL that they are posted to, such as another fleet's `https://…/hooks/<name>`.

    Plain http is for loopback only: it would expose what the platform says."""
    secret_file: str = ""
    """Secret that signs them, as for a webhook: at least 16 random bytes or their hex, mode 0600.

    While empty: systemd's credential `sink.<name>` if it exists, else `keys/sink.<name>`."""
    certificate_file: CertificateFile = ""
    """A file (mode 0600, an absolute path) with a certificate of the fleet's and its key, for a receiver that
    asks for one (mutual TLS)."""
    kinds: tuple[Delivered, ...] = get_args(Delivered)
    """Kinds of deliveries to send; the end of a run is always sent, and with `[]` nothing else."""

    _clear = field_validator("url")(in_the_clear)


def _price(value: object) -> Decimal:
    """A decimal number in quotes: a price is never a float."""
    if isinstance(value, Decimal):
        return value
    if not isinstance(value, str) or not re.fullmatch(r"\d{1,6}(\.\d{1,9})?", value, re.ASCII):
        raise ValueError('a price is a decimal number in quotes, e.g. "3.00"')
    return Decimal(value)


Price = Annotated[Decimal, BeforeValidator(_price, json_schema_input_type=str)]
"""US dollars for a million tokens."""


class PricesSection(Section):
    """What the model costs, in US dollars for a million tokens, each as a decimal number in quotes."""

    input: Price
    """Tokens of the prompt."""
    output: Price
    """Tokens of the answer, reasoning included."""
    cached: Price | None = None
    """Tokens of the prompt that the provider had in its cache; default: the price of `input`."""


HOMES: Mapping[str, str] = {
    "openai": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com",
    "google": "https://generativelanguage.googleapis.com",
}
"""The provider's own endpoint, by kind."""


class ModelSection(Section):
    """The model that drives runs; without this table `auto` personas run their playbooks."""

    name: Annotated[str, StringConstraints(pattern=r"^(openai|anthropic|google):[^\s:][^\s]{0,199}$")]
    """Kind of endpoint, then the model: `openai:…` (any compatible one too), `anthropic:…`, `google:…`."""
    base_url: HttpUrl | Literal[""] = ""
    """Base URL of the endpoint, such as `http://127.0.0.1:8000/v1`; default: the provider's own.

    Plain http is for loopback only: it would expose the key and what the platform says."""
    key_file: str = "keys/model"
    """The endpoint's key, mode 0600; relative to the state directory.

    While this is the default, the systemd credential `model` is used if it exists, and an
    endpoint with a `base_url` may do without a key."""
    certificate_file: CertificateFile = ""
    """A file (mode 0600, an absolute path) with a certificate of the fleet's and its key, for an endpoint
    that asks for one (mutual TLS)."""
    max_tokens: int = Field(default=4_096, strict=True, ge=64, le=131_072)
    """Most tokens in one answer."""
    context: int = Field(default=48_000, strict=True, ge=4_000, le=2_000_000)
    """Most tokens in one prompt (estimated); older tool results are elided to stay below it."""
    timeout: Annotated[str, StringConstraints(pattern=r"^[1-9][0-9]{0,3}[sm]$")] = "60s"
    """Longest silence of the endpoint. The persona limits the turn as a whole."""
    stream: bool = True
    """Whether to stream answers; false for an endpoint that cannot stream tool calls."""
    workers: int = Field(default=1, strict=True, ge=1, le=16)
    """Conversations at a time, each about one probe of the plan; with more than one, an answer is shown when
    it is whole."""
    prices: PricesSection | None = None
    """Prices; without them a persona with a budget in dollars is refused."""

    _clear = field_validator("base_url")(in_the_clear)

    @property
    def url(self) -> str:
        """Where the model is: `base_url`, or the provider's own."""
        return self.base_url or HOMES[self.name.partition(":")[0]]


class OtelSection(Section):
    """OpenTelemetry collector for the spans of runs (pip install 'qa-fleet[otel]')."""

    endpoint: HttpUrl | Literal[""] = ""
    """Base URL of its OTLP/HTTP receiver, such as `http://127.0.0.1:4318`.

    While empty, the standard variables apply (`OTEL_EXPORTER_OTLP_ENDPOINT` and the others); without
    them nothing is sent."""


def _selector(word: str) -> str:
    if not re.fullmatch(r"0x[0-9a-fA-F]{8}", word, re.ASCII):
        raise ValueError(f"{word!r} is not a selector: write its 4 bytes, such as 0xac8063ff")
    return word


Selector = Annotated[str, AfterValidator(_selector)]


class FleetConfig(Section):
    """`fleet.toml`; an environment variable `QA_FLEET_<KEY>` wins over a key of the file."""

    platform: str = "devnet"
    """Name of the profile under test."""
    identity: str = "keys/identity"
    """The fleet's own key: a keystore (JSON) or a 64-hex file, mode 0600; relative to the state directory.

    While this is the default, the systemd credential `identity` is used if it exists."""
    sponsor: str = "keys/sponsor"
    """The key that pays for throwaway keys; same forms, credential `sponsor`."""
    purse: str = "keys/purse"
    """The key that pays for what a platform sells, where a profile has `[payments]`; same forms, credential
    `purse`. It is for this alone, and holds no more than `payments.holds`."""
    trusted: tuple[Address, ...] = ()
    """Additional addresses whose log entries count as the fleet's own, besides the identity."""
    concurrency: int = Field(default=2, ge=1, le=32)
    """Most runs at a time."""
    explore: bool = True
    """Let personas with explorers ask new questions after their probes."""
    never: tuple[Selector, ...] = ()
    """4-byte selectors that are never signed, besides the built-in list; additions only."""
    store: StoreSection = StoreSection()
    """Location of the journal."""
    budget: FleetDayLimits = FleetDayLimits()
    """Limits of all runs together on one day."""
    keep: KeepSection = KeepSection()
    """How long ended runs are kept."""
    integrity: IntegritySection = IntegritySection()
    """Whether a system is after its tests what it was before them."""
    authority: AuthoritySection = AuthoritySection()
    """Who signs what the fleet may do."""
    triage: TriageSection = TriageSection()
    """How triage keeps the log up to date."""
    hooks: dict[HookName, HookSection] = Field({}, json_schema_extra={"additionalProperties": False})
    """Webhooks by name: a persona uses one by `on = "hook:<name>"`."""
    sender_header: Annotated[str, StringConstraints(pattern=r"^([a-z][a-z0-9-]{0,63})?$")] = ""
    """Header in which a proxy of your own before the port writes the sender's address, such as
    `x-forwarded-for`; its last value counts. Empty: the address of the connection.

    Of senders who do not finish their deliveries the one with most loses its own first."""
    page_hosts: tuple[HostName, ...] = ()
    """Names under which a proxy of your own shows the pages of `fleet up --port`, such as `qa.example.org`.

    The port itself stays on this machine; who may pass is the proxy's to decide."""
    sinks: dict[HookName, SinkSection] = Field({}, json_schema_extra={"additionalProperties": False})
    """Sinks by name: receivers of every run's events."""
    notify: NotifySection = NotifySection()
    """Who is notified of what, and when."""
    otel: OtelSection = OtelSection()
    """OpenTelemetry collector for spans."""
    jail: JailSection = JailSection()
    """The fence around one call."""
    propose: ProposeSection = ProposeSection()
    """How fixes are made (rung `propose`)."""
    repositories: dict[RepositoryName, RepositorySection] = Field(
        {}, json_schema_extra={"additionalProperties": False}
    )
    """Source repositories by name, for the rung `propose`."""
    model: ModelSection | None = None
    """The model that drives runs, if there is one."""
