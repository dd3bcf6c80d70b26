"""How sensitive each thing is that the fleet keeps, and why, stated when it is made (docs/data.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

Level = Literal["public", "internal", "confidential", "restricted"]


class Classified(NamedTuple):
    level: Level
    why: str


EVIDENCE = Classified(
    "confidential", "what was seen of a defect; secrets, data of people and marked texts are taken out"
)
OF_RUN: Mapping[str, Classified] = {
    "trajectory.jsonl": Classified("confidential", "every call and answer, masked as evidence is"),
    "egress.jsonl": Classified("internal", "what was asked of whom, without queries and bodies"),
    "evidence": EVIDENCE,
    "drafts": Classified("confidential", "what is told to who ordered the tests, without values"),
    "state.json": Classified("internal", "counts and the state of the plan"),
    "PLAN.md": Classified("internal", "what is to be looked at"),
    "keys": Classified("restricted", "keys; destroyed when the run is settled"),
}
"""By name in the folder of a run; its header states them."""
OF_STATE: Mapping[str, Classified] = {
    "vault": Classified("restricted", "credentials and data of people, sealed"),
    "keys": Classified("restricted", "the fleet's own keys"),
    "fleet.db": Classified("confidential", "findings and what became of them"),
    "worklist.md": Classified("confidential", "findings"),
    "DECISIONS.md": Classified("internal", "what was decided, by whom and why"),
    "events.jsonl": Classified("internal", "what the daemon did"),
    "egress.jsonl": Classified(
        "internal", "what the service itself asked of whom, without queries and bodies"
    ),
    "accounts": Classified("restricted", "credentials of the accounts that a profile names"),
    "learned": Classified("confidential", "questions that showed a defect"),
    "explore": Classified("internal", "what explorers noted of a platform"),
    "dumps": Classified("restricted", "sealed copies of the whole state"),
    "log": Classified("public", "what was posted"),
}
"""By name in the state directory."""
