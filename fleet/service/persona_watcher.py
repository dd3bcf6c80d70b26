"""The personas in use: the last valid version of each file, followed without a restart."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import anyio
from anyio import to_thread

from fleet.errors import FleetError, PersonaError
from fleet.events.daemon_events import Feed, PersonaAdded, PersonaChanged, PersonaRefused, PersonaRemoved
from fleet.personas.load import LoadedPersona
from fleet.retry import PERSONA_FILE
from fleet.service.triggers import Triggers
from fleet.triggers.files import Change, watch_personas

Load = Callable[[Path], LoadedPersona]
"""Load one file, checked against the tool table; raises PersonaError."""

_LOG = logging.getLogger("fleet.service")


class PersonaWatcher:
    """Watches folders. A bad file is logged once and changes nothing: its last valid version stays."""

    def __init__(
        self,
        folders: Sequence[Path],
        personas: dict[str, LoadedPersona],
        load: Load,
        triggers: Triggers,
        feed: Feed,
        *,
        every_s: float = 1.0,
    ) -> None:
        self.personas = personas
        self.refused: dict[str, str] = {}
        self._folders, self._load = folders, load
        self._triggers, self._feed, self._every_s = triggers, feed, every_s

    async def run(self) -> None:
        """Watch until cancelled; first log the files that were bad at the start."""
        known = {persona.path: persona.sha256 for persona in self.personas.values()}
        async for change in watch_personas(*self._folders, known=known, every_s=self._every_s):
            while True:  # until it takes effect: a full disk must neither end the daemon nor lose a change
                try:
                    await self.take(change)
                    break
                except FleetError as error:
                    if not error.retryable:
                        raise
                    _LOG.warning("%s waits: %s", change.path.name, error)
                await anyio.sleep(PERSONA_FILE.pause(0))

    async def take(self, change: Change) -> None:
        """Apply one change: what counts now is the file of its name in the last folder that has one."""
        name = change.path.stem
        files = [folder / change.path.name for folder in self._folders]
        there = [path for path in files if os.path.lexists(path)]
        if not there:
            self.refused.pop(name, None)
            if self.personas.pop(name, None) is not None:
                self._triggers.drop(name)
                self._feed.publish(PersonaRemoved(persona=name))
            return
        try:
            persona = await to_thread.run_sync(self._load, there[-1])
        except PersonaError as error:
            self.refused[name] = str(error)
            self._feed.publish(
                PersonaRefused(file=change.path.name, reason=str(error), kept=name in self.personas)
            )
            return
        self.refused.pop(name, None)
        before = self.personas.get(name)
        self.personas[name] = persona
        await self._triggers.plan(persona)
        if before is None:
            self._feed.publish(PersonaAdded(persona=name, sha256=persona.sha256))
        elif before.sha256 != persona.sha256:
            self._feed.publish(PersonaChanged(persona=name, sha256=persona.sha256))
