"""What an operator configures: the fleet file, the platform profiles, and where state lives.

The classes are the documentation: the string under a field says what it is for.
"""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

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
    publish_per_byte: int = 8_500
    feedback_base: int = 1_500_000
    feedback_per_byte: int = 9_000
    register_name: int = 2_200_000
    release_name: int = 1_000_000
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
    chain: ChainSection
    web: WebSection
    compiler: CompilerSection = CompilerSection()
    gas: GasSection = GasSection()
    sponsor: SponsorSection = SponsorSection()
    call_targets: tuple[str, ...] = ()
    """Standing agents that `qa_call` may talk to besides the run's own names."""
    history: dict[str, float] = {}
    """Figures of earlier releases by metric, e.g. `face_p95_ms`; own history replaces them as it grows."""


class FleetConfig(Section):
    """`config/fleet.toml`."""

    platform: str = "devnet"
    """Name of the profile under test."""
    identity: str = "keys/identity"
    """The fleet's own key: a keystore (JSON) or a 64-hex file, mode 0600; relative to the state directory."""
    sponsor: str = "keys/sponsor"
    """The key that pays for throwaway keys; same forms."""
    trusted: tuple[Address, ...] = ()
    """More addresses whose log entries count as the fleet's own; the identity always does."""
    concurrency: int = Field(default=2, ge=1, le=32)
    """Runs at a time."""
    never: tuple[str, ...] = ()
    """4-byte selectors that are never signed, besides the built-in list; can only be added to."""


Model = TypeVar("Model", bound=Section)


def state_dir() -> Path:
    """`$STATE_DIRECTORY` under systemd, else `./.qa-fleet`; not created here."""
    return Path(os.environ.get("STATE_DIRECTORY") or ".qa-fleet").absolute()


def parse(model: type[Model], text: str, *, file: str) -> Model:
    """One TOML text to one model; ConfigError names file, key and what would be valid."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{file}: not TOML: {error}", remedy="fix the syntax at that line") from None
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise ConfigError(*_explain(model, error, data, file)) from None


def _explain(model: type[Section], error: ValidationError, data: dict[str, Any], file: str) -> tuple[str]:
    first = error.errors(include_url=False, include_context=False)[0]
    key = ".".join(str(part) for part in first["loc"])
    message = f"{file}: {key}: {first['msg']}"
    if first["type"] == "extra_forbidden":
        message = f"{file}: {key}: unknown key; valid keys here: {', '.join(valid_keys(model, first['loc']))}"
    return (message,)


def valid_keys(model: type[BaseModel], loc: tuple[int | str, ...]) -> list[str]:
    """The keys that would have been accepted in the table that `loc` points into."""
    here: type[BaseModel] = model
    for part in loc[:-1]:
        field = here.model_fields.get(str(part))
        inner = getattr(field, "annotation", None)
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            here = inner
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


def load_fleet(path: Path | None = None) -> FleetConfig:
    """The fleet file; every key has a default, so a missing default file is fine, a named one is not."""
    chosen = path or ROOT / "config" / "fleet.toml"
    if path is None and not chosen.exists():
        return FleetConfig()
    return parse(FleetConfig, read_text(chosen), file=str(chosen))


def load_platform(name: str, state: Path) -> tuple[Platform, Path]:
    """A profile by name and its file; a running devnet's own profile wins over the shipped one."""
    shipped = ROOT / "config" / "platforms"
    for path in (state / "devnet" / f"{name}.toml", shipped / f"{name}.toml"):
        if path.is_file():
            return parse(Platform, read_text(path), file=str(path)), path
    known = sorted(
        {p.stem for p in shipped.glob("*.toml")} | {p.stem for p in (state / "devnet").glob("*.toml")}
    )
    raise UsageError(
        f"no platform named {name!r}; known: {', '.join(known) or 'none'}",
        remedy="start one with `fleet devnet up`, or add config/platforms/<name>.toml",
    )
