"""An item, a repository and a task of tests, each changed as a test needs it."""

from __future__ import annotations

from typing import Any

from fleet.config.propose import ProposeSection, RepositorySection
from fleet.findings.repro import ReproCall, write_repro
from fleet.fix.model import FixTask
from fleet.triage.items.worklist import WorklistItem

FP = "0123456789ab"
CALLS = (ReproCall("qa_compile", {"source": "enum E{}"}),)


def item(fingerprint: str = FP, **changes: Any) -> WorklistItem:
    """A confirmed item of ours."""
    known: dict[str, Any] = {
        "rank": 1,
        "fingerprint": fingerprint,
        "severity": "high",
        "surface": "compiler",
        "title": "the compiler panics on an empty enum",
        "count": 3,
        "confirmed": True,
        "repro": write_repro(CALLS),
        "evidence": "e" * 64,
        "score": 9.5,
        "why": "severity high",
        "first_seen": "2026-11-01T10:00:00Z",
        "last_seen": "2026-11-20T10:00:00Z",
        "senders": ("0x" + "ab" * 20,),
        "trusted": True,
        "proof": "confirmed",
        "state": "confirmed",
        "names": (fingerprint,),
    }
    return WorklistItem(**known | changes)


def repository(
    url: str = "/nowhere", *, test_path: str = "tests/test_{item}.py", **changes: Any
) -> RepositorySection:
    """One whose commands all pass; a fix may change `src/**`."""
    return RepositorySection.model_validate(
        {
            "url": url,
            "surfaces": ["compiler"],
            "test": ["true"],
            "paths": ["src/**", "tests/**"],
            "regression": {"path": test_path, "template": "pytest-compiler", "command": ["true"]},
            "compiler": {"command": ["true"]},
        }
        | changes
    )


def task(on: RepositorySection | None = None, one: WorklistItem | None = None, **changes: Any) -> FixTask:
    """A task of an item on a repository."""
    one = one or item()
    known: dict[str, Any] = {
        "item": one,
        "calls": CALLS,
        "name": "sample",
        "repository": on or repository(),
        "limits": ProposeSection(),
        "run": "run-1",
        "branch": f"qa-fleet/{one.fingerprint}",
    }
    return FixTask(**known | changes)
