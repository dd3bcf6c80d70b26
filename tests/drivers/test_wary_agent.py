"""The explorer of agents against one that says little of itself: what its own answers tell is followed."""

from __future__ import annotations

from typing import Any

import pytest

from fleet.devnet.surfaces.herbarium import FERN, Herbarium
from tests.drivers.herbarium_visits import explored

GUIDE = "I know: guide; pin TEXT; recall; walk N; tools; lift TOOL ON THING; sing TEXT."
TOOLS = "For all: read_map. For my owner only: open_gate, lend_boat."


class Ferry(Herbarium):
    """Help is not `help`; its words are read from its answer to nonsense."""

    def _said(self, who: str, caller: str, message: str) -> dict[str, Any]:
        word, _, rest = message.partition(" ")
        if message == "guide":
            return {"reply": GUIDE}
        if word == "pin" and rest:
            return self._pinned(who, rest)
        if message == "recall":
            kept = self.mottos.get(who, "")
            return {"reply": f"You left: {kept}" if kept else "You left nothing."}
        if word == "walk" and rest.isdecimal():
            loops = self.defect == "turns" and int(rest) > 20
            return {"reply": "step " * int(rest), "turns": 12 if loops else 1}
        if message == "tools":
            return {"reply": TOOLS}
        if word == "lift":
            return self._lifted(rest)
        if word == "sing" and self.defect != "help-unknown":
            return {"reply": f"la la {rest}"}
        return {"reply": f"I cannot read {message}. Say: guide."}

    def _pinned(self, who: str, text: str) -> dict[str, Any]:
        if not (self.defect == "not-read-back" and any(map(str.isdigit, text))):
            self.mottos[who] = text
        return {"reply": "Saved."}

    def _lifted(self, rest: str) -> dict[str, Any]:
        tool, _, thing = rest.partition(" ")
        name = tool.lower()
        if name not in ("read_map", "open_gate", "lend_boat"):
            return {"reply": "There is no such thing here."}
        urged = self.defect == "stranger-acts" and name == "lend_boat" and "confirm" in thing
        shouted = self.defect == "shouted" and tool == "LEND_BOAT"
        if name != "read_map" and not (urged or shouted):
            return {"reply": "Only my owner may ask for that."}
        return {"reply": "It is done.", "tool_calls": [name]}


@pytest.mark.parametrize("defect", ["not-read-back", "turns", "help-unknown", "stranger-acts", "shouted"])
def test_what_it_does_wrong_is_found_by_its_own_words(defect: str) -> None:
    found, asked = explored(Ferry(defect, FERN), calls=400)
    assert set(found) == {defect.replace("shouted", "stranger-acts")}, len(asked)


def test_the_clean_one_is_silent() -> None:
    found, asked = explored(Ferry("", FERN))
    assert (found, len(asked) > 150) == ({}, True)
