"""What an operator configures: the fleet file, the platform profiles, and where state lives.

The classes are the documentation: the string under a field says what it is for.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from decimal import Decimal
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args
from urllib.parse import urlsplit

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    field_validator,
)

from fleet.errors import ConfigError, UsageError

ROOT = Path(__file__).resolve().parent.parent
"""The checkout: `sandbox/`, `personas/` and `config/` sit beside `fleet/`."""

Address = Annotated[str, StringConstraints(pattern=r"^0x[0-9a-fA-F]{40}$")]
HttpUrl = Annotated[str, StringConstraints(pattern=r"^https?://[^\s/?#@]+(/[^\s?#]*)?$")]


class Section(BaseModel):
    """A frozen table of a configuration file; a key it does not know is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class ChainSection(Section):
    rpc: HttpUrl
    """JSON-RPC endpoint of the node."""
    id: int = Field(gt=0)
    """Chain id; a node that answers another one is refused before anything is signed."""
    diamond: Address
    """The EIP-2535 diamond that holds names, metadata and the feedback log."""
    token: Address | Literal[""] = ""
    """ERC-20 that registration is paid in; leave it out where names are free."""
    confirmations: int = Field(default=0, ge=0)
    """Blocks on top before a log entry counts as read."""
    max_gas_price_gwei: int = Field(default=50, gt=0)
    """A node that asks for more is refused (platform-facts 1.5)."""


class WebSection(Section):
    site: HttpUrl
    """Base URL of the public documents."""
    face: Annotated[str, StringConstraints(pattern=r"^https?://[^\s]*\{name\}[^\s]*$")]
    """URL of a name's public face, with `{name}` where the name goes."""
    proxy: HttpUrl
    """Base URL of the agent-call proxy."""
    model: str = "gemini-flash"
    """Model segment of the proxy path."""
    auth_scope: str = "localharness-proxy"
    """First part of the message that a call token signs."""
    hosts: tuple[str, ...] = ()
    """More `host:port` pairs that tools may fetch; site, face and proxy are always in."""


class CompilerSection(Section):
    root: str = ""
    """Folder bound read-only into the jail as /opt/tc; relative to the profile's own folder."""
    command: tuple[str, ...] = ()
    """argv inside the jail; source on stdin, wasm on stdout. `{python}` is the jail's interpreter."""
    loader: tuple[str, ...] = ()
    """argv inside the jail that takes a module on stdin and prints its entry point."""
    publish_cap: int = Field(default=16_384, gt=0)
    """Largest module the platform publishes, in bytes."""


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
    """Everything else: face choice, approve, daily claim."""


class SponsorSection(Section):
    mode: Literal["stipend"] = "stipend"
    """`stipend`: fund a throwaway key with the exact cost of its next transaction, sweep what is left."""
    max_wei: int = Field(default=10**18, gt=0)
    """Most wei that the sponsor pays out in one run."""


class Platform(Section):
    """One platform under test: `config/platforms/<name>.toml`."""

    name: str
    """What runs and reports call this platform; by custom the name of the file."""
    chain: ChainSection
    """The chain and what lies on it."""
    web: WebSection
    """Its public documents, faces and proxy."""
    compiler: CompilerSection = CompilerSection()
    """Its compiler, if it has one that runs here."""
    gas: GasSection = GasSection()
    """Gas limits."""
    sponsor: SponsorSection = SponsorSection()
    """Who pays for throwaway keys, and how much."""
    call_targets: tuple[str, ...] = ()
    """Standing agents that `qa_call` may talk to besides the run's own names."""
    history: dict[str, float] = {}
    """Figures of earlier releases by metric, e.g. `face_p95_ms`; own history replaces them as it grows."""


def _money(value: Any) -> Any:
    """What TOML has for an amount: 2 or 0.50. A float is taken as it is written, never as it is stored."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise ValueError("an amount in dollars is a number, e.g. 0.50")
    return Decimal(str(value))


Count = Annotated[int, Field(strict=True, ge=0, le=1_000_000_000_000)]
Usd = Annotated[
    Decimal, BeforeValidator(_money), Field(ge=0, le=1_000_000, decimal_places=6, allow_inf_nan=False)
]
"""US dollars, to the micro-dollar."""


class DayLimits(Section):
    """The most that may be spent on one day (UTC); a unit that is left out has no limit of its own."""

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
    """Where the journal is; a file in the state directory unless one of these says otherwise."""

    url: Annotated[str, StringConstraints(pattern=r"^(postgres(ql)?://.*)?$")] = ""
    """`postgresql://user@host:5432/database`, for several daemons on one journal; without a password."""
    url_file: str = ""
    """A file (mode 0600) that holds the URL with its password; relative to the state directory.

    While both are empty, a systemd credential of the name `store-url` is used where there is one."""
    stalled_s: float = Field(default=120.0, ge=2, le=3600)
    """Seconds after which a daemon that is not heard of is dead, and the others settle its runs."""


class HookSection(Section):
    """Who may send deliveries to `POST /hooks/<name>`: whoever knows the secret (triggers/hook.py)."""

    secret_file: str = ""
    """At least 16 random bytes or their hex, mode 0600; relative to the state directory.

    While empty: systemd's credential `hook.<name>` where there is one, else `keys/hook.<name>`."""
    old_secret_file: str = ""
    """The secret before, which is good too while senders change to the new one."""


HookName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9-]{0,47}$")]


def _price(value: Any) -> Any:
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
    """Tokens of the prompt that the provider had in its cache; left out: the price of `input`."""


class ModelSection(Section):
    """The model that drives runs; without this table every `auto` persona is driven by its playbook."""

    name: Annotated[str, StringConstraints(pattern=r"^(openai|anthropic|google):[^\s:][^\s]{0,199}$")]
    """Kind of endpoint, then the model: `openai:…` (any compatible one too), `anthropic:…`, `google:…`."""
    base_url: HttpUrl | Literal[""] = ""
    """Base URL of the endpoint, such as `http://127.0.0.1:8000/v1`; left out: the provider's own.

    Plain http is for loopback only: the key and what the platform says would be open to everyone else."""
    key_file: str = "keys/model"
    """The endpoint's key, mode 0600; relative to the state directory.

    While this is the default, a systemd credential of the name `model` is used where there is one, and an
    endpoint with a `base_url` may do without a key."""
    max_tokens: int = Field(default=4_096, strict=True, ge=64, le=131_072)
    """Most tokens of one answer."""
    context: int = Field(default=48_000, strict=True, ge=4_000, le=2_000_000)
    """Most tokens of one prompt, estimated; older results of tools are cut to a mark before it is reached."""
    timeout: Annotated[str, StringConstraints(pattern=r"^[1-9][0-9]{0,3}[sm]$")] = "60s"
    """Longest silence of the endpoint. A turn as a whole has the persona's own limit."""
    stream: bool = True
    """Whether answers are taken as they come; false for an endpoint that cannot stream calls of tools."""
    prices: PricesSection | None = None
    """What it costs; without prices a persona with a budget in dollars is refused."""

    @field_validator("base_url")
    @classmethod
    def _in_the_clear(cls, url: str) -> str:
        if url.startswith("http://") and not _is_loopback(urlsplit(url).hostname or ""):
            raise ValueError("plain http to another machine: use https")
        return url


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


class OtelSection(Section):
    """Where the spans of runs go: an OpenTelemetry collector (pip install 'qa-fleet[otel]')."""

    endpoint: HttpUrl | Literal[""] = ""
    """Base URL of its OTLP/HTTP receiver, such as `http://127.0.0.1:4318`.

    While empty, the standard variables decide (`OTEL_EXPORTER_OTLP_ENDPOINT` and the others), and without
    them nothing is sent."""


class FleetConfig(Section):
    """`fleet.toml`; an environment variable `QA_FLEET_<KEY>` wins over a key of the file."""

    platform: str = "devnet"
    """Name of the profile under test."""
    identity: str = "keys/identity"
    """The fleet's own key: a keystore (JSON) or a 64-hex file, mode 0600; relative to the state directory.

    While this is the default, a systemd credential of the name `identity` is used where there is one."""
    sponsor: str = "keys/sponsor"
    """The key that pays for throwaway keys; same forms, credential `sponsor`."""
    trusted: tuple[Address, ...] = ()
    """More addresses whose log entries count as the fleet's own; the identity always does."""
    concurrency: int = Field(default=2, ge=1, le=32)
    """Runs at a time."""
    never: tuple[str, ...] = ()
    """4-byte selectors that are never signed, besides the built-in list; can only be added to."""
    store: StoreSection = StoreSection()
    """Where the journal is."""
    budget: FleetDayLimits = FleetDayLimits()
    """What all runs together may spend on one day."""
    hooks: dict[HookName, HookSection] = Field({}, json_schema_extra={"additionalProperties": False})
    """Webhooks by name: a persona is `on = "hook:<name>"`."""
    otel: OtelSection = OtelSection()
    """Where spans go."""
    model: ModelSection | None = None
    """The model that drives runs, if there is one."""


Model = TypeVar("Model", bound=Section)
ENVIRONMENT = "QA_FLEET_"
"""Prefix of the variables that override `fleet.toml`; what starts so and names no key is an error."""


def state_dir() -> Path:
    """`$STATE_DIRECTORY` under systemd, else `./.qa-fleet`; not created here."""
    return Path(os.environ.get("STATE_DIRECTORY") or ".qa-fleet").absolute()


def config_dirs() -> tuple[Path, ...]:
    """Where `fleet.toml` and `platforms/` are looked for: `$CONFIGURATION_DIRECTORY`, then the checkout's."""
    own = os.environ.get("CONFIGURATION_DIRECTORY")
    return (*((Path(own).absolute(),) if own else ()), ROOT / "config")


def key_file(config: FleetConfig, role: Literal["identity", "sponsor"], state: Path) -> Path:
    """The file of a standing key: as configured, or systemd's credential while that is the default."""
    chosen = getattr(config, role)
    folder = os.environ.get("CREDENTIALS_DIRECTORY")
    if folder and chosen == FleetConfig.model_fields[role].default:
        credential = Path(folder).absolute() / role
        if credential.exists():
            return credential
    return state / str(chosen)


def model_key_file(config: FleetConfig, state: Path) -> Path | None:
    """The file of the model's key: as configured, or systemd's credential; None when it does without one."""
    if config.model is None:
        return None
    chosen, default = config.model.key_file, str(ModelSection.model_fields["key_file"].default)
    credential = Path(os.environ.get("CREDENTIALS_DIRECTORY", "/nonexistent")).absolute() / "model"
    if chosen == default and credential.exists():
        return credential
    if chosen == default and config.model.base_url and not os.path.lexists(state / chosen):
        return None
    return state / chosen


def hook_files(config: FleetConfig, name: str, state: Path) -> tuple[Path, ...]:
    """The secret files of a webhook, the newest first; KeyError for one that is not configured."""
    hook = config.hooks[name]
    credential = Path(os.environ.get("CREDENTIALS_DIRECTORY", "/nonexistent")).absolute() / f"hook.{name}"
    chosen = credential if not hook.secret_file and credential.exists() else None
    newest = chosen or state / (hook.secret_file or f"keys/hook.{name}")
    return (newest, *((state / hook.old_secret_file,) if hook.old_secret_file else ()))


def parse(model: type[Model], text: str, *, file: str) -> Model:
    """One TOML text to one model; ConfigError names file, key and what would be valid."""
    return _validate(model, _toml(text, file), file=file)


def _toml(text: str, file: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{file}: not TOML: {error}", remedy="fix the syntax at that line") from None


def _validate(
    model: type[Model], data: dict[str, Any], *, file: str, from_environment: Mapping[str, Any] = {}
) -> Model:
    try:
        return model.model_validate(data | dict(from_environment))
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        key = ".".join(str(part) for part in first["loc"])
        overridden = first["loc"] and str(first["loc"][0]) in from_environment
        where = f"environment: {ENVIRONMENT}{str(first['loc'][0]).upper()}" if overridden else file
        message = f"{where}: {key}: {first['msg']}"
        if first["type"] == "extra_forbidden":
            valid = ", ".join(valid_keys(model, first["loc"]))
            message = f"{where}: {key}: unknown key; valid keys here: {valid}"
        raise ConfigError(message) from None


def overrides(environ: Mapping[str, str]) -> dict[str, Any]:
    """The keys of `fleet.toml` that the environment sets, unvalidated.

    A text is taken as it is; every other kind of value is written as in the file (`[…]`, `{…}`, a number).
    Raises ConfigError for an unknown variable, naming the valid ones, and for a value that is not TOML.
    """
    known = {ENVIRONMENT + key.upper(): key for key in FleetConfig.model_fields}
    found: dict[str, Any] = {}
    for name in sorted(name for name in environ if name.startswith(ENVIRONMENT)):
        if name not in known:
            raise ConfigError(
                f"environment: {name}: unknown variable; valid ones: {', '.join(sorted(known))}"
            )
        plain = FleetConfig.model_fields[known[name]].annotation is str
        found[known[name]] = environ[name] if plain else _value(name, environ[name])
    return found


def _value(name: str, text: str) -> Any:
    data = _toml(f"value = {text}", f"environment: {name}")
    if set(data) != {"value"}:
        raise ConfigError(f"environment: {name}: more than one value")
    return data["value"]


def schema(model: type[Section]) -> dict[str, Any]:
    """The JSON Schema of a configuration file, for editors; the keys' own texts are its descriptions."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **model.model_json_schema()}


def valid_keys(model: type[BaseModel], loc: tuple[int | str, ...]) -> list[str]:
    """The keys that would have been accepted in the table that `loc` points into."""
    here: type[BaseModel] = model
    for part in loc[:-1]:
        field = here.model_fields.get(str(part))
        inner = getattr(field, "annotation", None)
        below = (one for one in (inner, *get_args(inner)) if isinstance(one, type))  # a table of tables too
        here = next((one for one in below if issubclass(one, BaseModel)), here)
    return sorted(here.model_fields)


def read_text(path: Path, *, limit: int = 65_536) -> str:
    """A small text file of ours; ConfigError when it is missing, too large or not UTF-8."""
    try:
        with path.open("rb") as handle:
            raw = handle.read(limit + 1)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}", remedy=f"create or fix {path}") from None
    if len(raw) > limit:
        raise ConfigError(f"{path}: larger than {limit} bytes", remedy="this file should be small")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: not UTF-8", remedy="save it as UTF-8") from None


def load_fleet(path: Path | None = None, environ: Mapping[str, str] = os.environ) -> FleetConfig:
    """Defaults, then the fleet file, then the environment; flags are the commands' own.

    The file is the one named, else the first `fleet.toml` of `config_dirs`; without any the defaults hold.
    """
    places = (path,) if path else tuple(folder / "fleet.toml" for folder in config_dirs())
    chosen = next((place for place in places if place.exists()), path)
    data = _toml(read_text(chosen), str(chosen)) if chosen else {}
    return _validate(FleetConfig, data, file=str(chosen), from_environment=overrides(environ))


def load_platform(name: str, state: Path) -> tuple[Platform, Path]:
    """A profile by name and its file; a running devnet's own profile wins over the shipped one."""
    folders = (state / "devnet", *(folder / "platforms" for folder in config_dirs()))
    for path in (folder / f"{name}.toml" for folder in folders):
        if path.is_file():
            return parse(Platform, read_text(path), file=str(path)), path
    known = sorted({path.stem for folder in folders for path in folder.glob("*.toml")})
    raise UsageError(
        f"no platform named {name!r}; known: {', '.join(known) or 'none'}",
        remedy="start one with `fleet devnet up`, or add config/platforms/<name>.toml",
    )
