"""Whether and how spans leave this process. Does not import OpenTelemetry itself."""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from threading import Thread

import anyio

from fleet.config import OtelSection
from fleet.errors import ConfigError
from fleet.events.model import Event, Footer
from fleet.events.spans import Observer, Tracer
from fleet.events.stream import Reader

FLUSH_S = 3.0
"""Seconds after the last run until unsent spans are dropped."""
_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_EXTRA = "pip install 'qa-fleet[otel]'"
_LOG = logging.getLogger("fleet.tracing")


class Tracing:
    """A reader of all runs: passes each run's signals to its own tracer, made at its first event."""

    def __init__(self, tracer: Callable[[str], Tracer]) -> None:
        self._tracer = tracer
        self._runs: dict[str, Observer] = {}

    def __call__(self, event: Event) -> None:
        observer = self._runs.get(event.run)
        if observer is None:
            observer = self._runs[event.run] = Observer(self._tracer(event.run))
        observer.observe(event)
        if isinstance(event, Footer):
            del self._runs[event.run]

    def flush(self) -> None:
        """Close all open spans as incomplete."""
        for observer in self._runs.values():
            observer.flush()
        self._runs.clear()


def is_wanted(section: OtelSection, environ: Mapping[str, str]) -> bool:
    """Whether a collector is configured, here or by the standard variables."""
    if environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return False
    if section.endpoint:
        return True
    exports = environ.get("OTEL_TRACES_EXPORTER", "otlp") == "otlp"
    return exports and any(environ.get(name) for name in _ENDPOINTS)


@asynccontextmanager
async def tracing(
    section: OtelSection, *, mask: Callable[[str], str], environ: Mapping[str, str] = os.environ
) -> AsyncIterator[tuple[Reader, ...]]:
    """The exporting reader, if configured; at the end the rest is sent, for at most FLUSH_S.

    Raises ConfigError when `otel.endpoint` is set and the extra is not installed; if only the environment
    asks for export, which may concern other programs, it logs one line.
    """
    if not is_wanted(section, environ):
        yield ()
        return
    try:
        from fleet.events.otel import OtelTracer, provider_for
    except ImportError:
        if section.endpoint:
            raise ConfigError("otel.endpoint: OpenTelemetry is not installed", remedy=_EXTRA) from None
        _LOG.warning("no spans are sent: OpenTelemetry is not installed; %s", _EXTRA)
        yield ()
        return
    provider = provider_for(section)
    reader = Tracing(lambda run: OtelTracer(provider.get_tracer("qa-fleet"), run=run, mask=mask))
    try:
        yield (reader,)
    finally:
        reader.flush()
        last = Thread(target=provider.shutdown, name="last spans", daemon=True)
        last.start()
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(last.join, FLUSH_S)
