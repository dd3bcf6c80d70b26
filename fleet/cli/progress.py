"""Progress for a person: one line per notable event, on stderr."""

from __future__ import annotations

from fleet.cli.console import note
from fleet.events.model import (
    Event,
    FindingPosted,
    FindingRaised,
    FindingVerified,
    FixStepTaken,
    Footer,
    Header,
    OutageEnded,
    ProposalMoved,
    ResourceReleased,
)
from fleet.text import clean, counted


class Progress:
    """A reader of every run's stream; maps runs to personas."""

    def __init__(self) -> None:
        self._persona: dict[str, str] = {}
        self._title: dict[str, str] = {}
        self._seen = set[tuple[str, str]]()

    def __call__(self, event: Event) -> None:
        if isinstance(event, Header):
            self._persona[event.run] = event.persona
        said = self._words(event)
        if isinstance(event, FindingRaised):
            self._title[event.fingerprint] = event.title
            said = "" if (event.run, event.fingerprint) in self._seen else said  # an instance of it
            self._seen.add((event.run, event.fingerprint))
        if said:
            note(f"  {self._persona.get(event.run, event.run):<12} {clean(said, limit=160)}")

    def _words(self, event: Event) -> str:
        match event:
            case Header():
                return f"run {event.run} at {event.rung}, jail {event.jail}"
            case FindingRaised():
                return f"saw: {event.title}"
            case FindingVerified():
                title = self._title.get(event.fingerprint, event.fingerprint)
                return f"{event.state} {event.confirmed}/{event.tries}: {title}"
            case OutageEnded():
                return f"over: {' and '.join(event.targets)}, {event.seconds:.0f} s"
            case FindingPosted():
                return f"posted {event.fingerprint} as log entry {event.index}"
            case FixStepTaken():
                return f"{event.step} {'passed' if event.passed else 'failed'}: {event.words}"
            case ProposalMoved():
                return f"proposal {event.state} {event.ref} {event.why}".rstrip()
            case ResourceReleased():
                return f"released {event.ref}"
            case Footer():
                took = f"{counted(event.calls, 'call')}, {event.seconds:.1f} s"
                return f"{event.outcome} after {took} {event.detail}".rstrip()
        return ""
