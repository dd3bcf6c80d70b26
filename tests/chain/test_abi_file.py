"""A contract's own ABI: an array, or a compiler's artifact with one; anything else names its file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fleet.chain.node.abi_file import read_functions
from fleet.errors import ConfigError

PAIR = {"type": "tuple", "components": [{"type": "address"}, {"type": "uint96"}]}
RATE = {"type": "function", "name": "rate", "inputs": [], "outputs": [], "stateMutability": "pure"}
ABI = [
    RATE,
    {"type": "function", "name": "setPair", "inputs": [PAIR], "stateMutability": "payable"},
    {"type": "event", "name": "Moved", "inputs": []},
    {"type": "constructor", "inputs": []},
]


@pytest.mark.parametrize("document", [ABI, {"contractName": "A", "abi": ABI, "bytecode": "0x"}])
def test_functions_are_read_with_their_types(tmp_path: Path, document: object) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps(document))
    found = read_functions(path)
    assert [(one.signature, one.writes) for one in found.values()] == [
        ("rate()", False),
        ("setPair((address,uint96))", True),
    ]
    assert next(iter(found)) == "0x2c4e722e"


@pytest.mark.parametrize(
    "document",
    ["{", [], {}, {"abi": None}, "x", [1], [{"name": "a"}], [RATE | {"inputs": [{"name": "x"}]}]],
)
def test_what_is_no_abi_names_its_file(tmp_path: Path, document: Any) -> None:
    path = tmp_path / "a.json"
    path.write_text(document if document == "{" else json.dumps(document))
    with pytest.raises(ConfigError, match=r"a\.json: (not an ABI|an ABI without)"):
        read_functions(path)
