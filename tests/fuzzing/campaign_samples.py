"""Rounds as a jail could claim them."""

from __future__ import annotations

from typing import Any


def defect(signature: str = "panic a.rs:1", source: str = "enum E{}", **more: Any) -> dict[str, Any]:
    """One defect of a round."""
    made = {"signature": signature, "kind": signature.partition(" ")[0], "said": "it panics", "place": ""}
    sizes = {"variant": "", "size": len(source), "from_size": 400, "seen": 1, "origin": "seed"}
    return made | {"source": source} | sizes | more


def answered(*defects: dict[str, Any], corpus: tuple[str, ...] = (), **more: Any) -> dict[str, Any]:
    """The result of a round."""
    numbers = {"executions": 1000, "accepted": 400, "behaviours": len(corpus), "seconds": 10.0}
    words = {"ok": True, "runner": "python", "stopped": "time"}
    return words | numbers | {"defects": list(defects), "corpus": list(corpus)} | more
