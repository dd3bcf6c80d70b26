"""What an operator configures: the fleet file, the platform profiles, and where state lives.

The classes are the documentation: the string under a field says what it is for.
"""

from fleet.config.files import (
    config_dirs,
    github_file,
    hook_files,
    key_file,
    model_key_file,
    notify_files,
    sink_file,
)
from fleet.config.fleet import (
    Count,
    DayLimits,
    FleetConfig,
    FleetDayLimits,
    HookSection,
    JailSection,
    KeepSection,
    ModelSection,
    OtelSection,
    PricesSection,
    SinkSection,
    StoreSection,
    Usd,
)
from fleet.config.load import LiveConfig, Reloaded, load_fleet, load_platform, overrides, parse, read_text
from fleet.config.notify import EVENTS, NoticeEvent, NotifySection
from fleet.config.platform import ChainSection, GasSection, Platform, WebSection
from fleet.config.section import Section

__all__ = [
    "EVENTS",
    "ChainSection",
    "Count",
    "DayLimits",
    "FleetConfig",
    "FleetDayLimits",
    "GasSection",
    "HookSection",
    "JailSection",
    "KeepSection",
    "LiveConfig",
    "ModelSection",
    "NoticeEvent",
    "NotifySection",
    "OtelSection",
    "Platform",
    "PricesSection",
    "Reloaded",
    "Section",
    "SinkSection",
    "StoreSection",
    "Usd",
    "WebSection",
    "config_dirs",
    "github_file",
    "hook_files",
    "key_file",
    "load_fleet",
    "load_platform",
    "model_key_file",
    "notify_files",
    "overrides",
    "parse",
    "read_text",
    "sink_file",
]
