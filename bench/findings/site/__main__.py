"""A generated platform as a process: `python -m bench.findings.site SETTINGS.json`, ended by SIGTERM.

The file has the seed, the classes that are on, the port, and where the chain is.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import uvicorn

from bench.findings.blueprint import Blueprint
from bench.findings.site.app import create
from bench.findings.site.house import GeneratedSite
from bench.findings.switches import drawn
from fleet.chain.keys import Secret
from fleet.chain.node.rpc import Rpc
from fleet.devnet.devnet import METER_KEY
from fleet.devnet.platform.rpc_chain import RpcChain


def main(path: str) -> None:
    """Serve until ended."""
    said = json.loads(Path(path).read_text("utf-8"))
    plan = Blueprint.drawn(said["seed"])
    house = GeneratedSite(
        blueprint=plan,
        chain=RpcChain(Rpc(said["rpc"]), said["diamond"], Secret(bytes.fromhex(METER_KEY))),
        chain_id=said["chain_id"],
        diamond=said["diamond"],
        url=f"http://127.0.0.1:{said['port']}",
        switches=[one for one in drawn(plan) if one.klass in said["on"]],
    )
    uvicorn.run(create(house), host="127.0.0.1", port=said["port"], log_level="warning", access_log=False)


if __name__ == "__main__":
    main(sys.argv[1])
