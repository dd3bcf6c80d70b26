"""The Solidity of a generated platform's own facet, compiled by the pinned npm solc."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from bench.findings.blueprint import Blueprint
from bench.findings.classes.functions import function
from bench.findings.switches import Switch
from fleet.devnet import solc
from fleet.errors import FleetError

HEAD = """// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {LibDiamond} from "./LibDiamond.sol";

contract Facet {
    struct Thing { address owner; uint256 weight; }
    struct Layout {
        uint256 fee;
        uint256 cap;
        uint256 pot;
        uint256 total;
        mapping(uint256 => Thing) things;
        mapping(address => uint256) counts;
    }

    error NotOwner();
    error BadWeight(uint256 weight);

"""


@dataclass(frozen=True, slots=True)
class FacetText:
    """The facet's source in pieces; each asks which switch is on at a function."""

    plan: Blueprint
    on: Mapping[tuple[str, str], Switch]
    """By class and role of the function."""

    def name(self, role: str) -> str:
        """A function's name."""
        return function(self.plan, role).name

    def keeper(self, role: str) -> str:
        """The check that only the keeper may call."""
        return "" if ("chain-owner", role) in self.on else "LibDiamond.requireOwner(); "

    def owner(self, role: str) -> str:
        """The check that only the owner of the thing may call."""
        wrong = "== address(0)" if ("chain-stranger", role) in self.on else "!= msg.sender"
        return f"if (s.things[id].owner {wrong}) revert NotOwner(); "

    def weight(self, role: str) -> str:
        """The limits of a weight."""
        found = self.on.get(("chain-limit", role))
        bad = {
            "": "w == 0 || w > s.cap",
            "zero": "w > s.cap",
            "edge": "w == 0 || w > s.cap + 1",
            "none": "w == 0",
        }
        return f"if ({bad[found.kind if found else '']}) revert BadWeight(w); "

    def view(self, role: str, right: str, wrong: str) -> str:
        """What a view returns."""
        return wrong if ("chain-view", role) in self.on else right

    def settings(self) -> str:
        """The keeper's part."""
        name = self.name
        return f"""
    function {name("keeper")}() external view returns (address) {{ return LibDiamond.store().owner; }}
    function {name("fee")}() external view returns (uint256) {{ return _s().fee; }}
    function {name("setFee")}(uint256 value) external {{ {self.keeper("setFee")}_s().fee = value; }}
    function {name("cap")}() external view returns (uint256) {{ return _s().cap; }}
    function {name("setCap")}(uint256 value) external {{ {self.keeper("setCap")}_s().cap = value; }}
    function {name("collect")}(address to) external {{
        {self.keeper("collect")}require(to != address(0), "no address"); _s().pot = 0;
    }}"""

    def things(self) -> str:
        """What owners do."""
        name = self.name
        return f"""
    function {name("make")}(uint256 w) external returns (uint256 id) {{
        Layout storage s = _s(); {self.weight("make")}
        id = ++s.total; s.things[id] = Thing(msg.sender, w); s.counts[msg.sender] += 1; s.pot += s.fee;
    }}
    function {name("give")}(uint256 id, address to) external {{
        Layout storage s = _s(); {self.owner("give")}require(to != address(0), "no address");
        s.counts[s.things[id].owner] -= 1; s.counts[to] += 1; s.things[id].owner = to;
    }}
    function {name("weigh")}(uint256 id, uint256 w) external {{
        Layout storage s = _s(); {self.owner("weigh")}{self.weight("weigh")}s.things[id].weight = w;
    }}"""

    def views(self) -> str:
        """What anyone reads."""
        name = self.name
        other = "id > s.total ? address(0) : address(uint160(s.things[id].owner) ^ 1)"
        return f"""
    function {name("ownerOf")}(uint256 id) external view returns (address) {{
        Layout storage s = _s(); return {self.view("ownerOf", "s.things[id].owner", other)};
    }}
    function {name("read")}(uint256 id) external view returns (address, uint256) {{
        Layout storage s = _s(); return (s.things[id].owner, s.things[id].weight);
    }}
    function {name("count")}(address account) external view returns (uint256) {{
        uint256 n = _s().counts[account]; return {self.view("count", "n", "n == 0 ? 0 : n + 1")};
    }}
    function {name("total")}() external view returns (uint256) {{
        return {self.view("total", "_s().total", "_s().total + 1")};
    }}
    function _s() private pure returns (Layout storage s) {{
        bytes32 slot = keccak256("{self.plan.product}.{self.plan.thing}.v1");
        assembly ("memory-safe") {{ s.slot := slot }}
    }}
}}
"""


def source(plan: Blueprint, switches: Iterable[Switch]) -> str:
    """The facet with the switches of the chain that are on; all others are as documented."""
    text = FacetText(plan, {(one.klass, one.place): one for one in switches})
    return HEAD + text.settings() + text.things() + text.views()


@lru_cache(maxsize=8)
def compiled(text: str) -> bytes:
    """Creation code of the facet; FleetError with the compiler's words."""
    sources = {one: (solc.SOURCES / one).read_text("utf-8") for one in ("LibDiamond.sol", "IDiamond.sol")}
    request: dict[str, Any] = {
        "language": "Solidity",
        "sources": {one: {"content": content} for one, content in (sources | {"Facet.sol": text}).items()},
        "settings": solc.SETTINGS,
    }
    done = subprocess.run(
        [solc.find_node(), str(Path(solc.__file__).with_name("compile.cjs"))],
        input=json.dumps(request).encode(),
        capture_output=True,
        timeout=solc.TIMEOUT_S,
        check=True,
    )
    answer = json.loads(done.stdout)
    if errors := [one["formattedMessage"] for one in answer.get("errors", []) if one["severity"] == "error"]:
        raise FleetError("solc: " + "\n".join(errors))
    return bytes.fromhex(answer["contracts"]["Facet.sol"]["Facet"]["evm"]["bytecode"]["object"])
