"""The committed ABI and bytecode of the devnet's contracts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from fleet.chain.node.abi import signature
from fleet.chain.node.digest import keccak256

ARTIFACTS = Path(__file__).parent / "artifacts"

FACETS = (
    "GuardedDiamondCutFacet",
    "DiamondLoupeFacet",
    "OwnershipFacet",
    "FeedbackFacet",
    "RegistryFacet",
    "ReleaseFacet",
    "MainIdentityFacet",
    "CreditFacet",
)
"""The facets of the diamond, in the order of the first cut."""

CONTRACTS = (
    *FACETS,
    "Diamond",
    "DiamondInit",
    "CreditToken",
    "PayToken",
    "FeedbackSeeder",
    "IdentityRegistry",
    "ReputationRegistry",
    "ValidationRegistry",
    "Watched",
)


@dataclass(frozen=True)
class Artifact:
    """`abi` is solc's list of entries, `code` the creation code."""

    contract: str
    abi: list[dict[str, Any]]
    code: bytes

    def selectors(self) -> dict[str, bytes]:
        """4-byte selector by canonical signature, in the ABI's order."""
        return {name: keccak256(name.encode())[:4] for name in signatures(self.abi, "function")}


@cache
def load(contract: str) -> Artifact:
    """One of CONTRACTS, from its committed file."""
    document = json.loads((ARTIFACTS / f"{contract}.json").read_text("utf-8"))
    return Artifact(document["contract"], document["abi"], bytes.fromhex(document["bytecode"][2:]))


def signatures(abi: list[dict[str, Any]], kind: str) -> Iterator[str]:
    """Canonical signatures (`name(type,...)`, tuples spelled out) of one kind: function, event or error."""
    for entry in abi:
        if entry["type"] == kind:
            yield signature(entry)
