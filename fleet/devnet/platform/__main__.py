"""The platform as a separate process: `python -m fleet.devnet.platform --port 0 --rpc URL --diamond 0x..`.

Prints one JSON line once it serves, ends with its parent (PR_SET_PDEATHSIG) or gracefully on SIGTERM.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import sys
from pathlib import Path

import uvicorn

from fleet.chain.keys import load_key
from fleet.chain.node.rpc import Rpc
from fleet.devnet.parent_death import end_with
from fleet.devnet.platform.app import create_app
from fleet.devnet.platform.rpc_chain import RpcChain
from fleet.devnet.platform.site import Settings

GRACE_S = 1


class PlatformServer(uvicorn.Server):
    """Says on stdout that it is ready, and for what."""

    def __init__(self, config: uvicorn.Config, ready: dict[str, object]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        print(json.dumps(self._ready), flush=True)


def arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m fleet.devnet.platform", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--rpc", required=True, help="URL of the node")
    parser.add_argument("--diamond", required=True, help="address of the diamond")
    parser.add_argument(
        "--meter-key-file", type=Path, help="key that may debit credit; without it calls answer 503"
    )
    parser.add_argument("--defects", default="", help="comma-separated ids of fleet/devnet/defects/")
    parser.add_argument(
        "--public-url", default="", help="how the documents call this platform; default its own URL"
    )
    return parser.parse_args(argv)


def main(argv: list[str]) -> None:
    parent = os.getppid()
    options = arguments(argv)
    end_with(parent)
    listener = socket.create_server((options.host, options.port))
    own_url = f"http://{options.host}:{listener.getsockname()[1]}"
    settings = Settings(public_url=options.public_url or own_url, metering=options.meter_key_file is not None)
    key = load_key(options.meter_key_file) if options.meter_key_file else None
    defects = frozenset(filter(None, options.defects.split(",")))
    app = create_app(RpcChain(Rpc(options.rpc), options.diamond, key), defects, settings)
    config = uvicorn.Config(app, log_level="warning", access_log=False, timeout_graceful_shutdown=GRACE_S)
    ready = {"ready": True, "url": own_url, "port": listener.getsockname()[1], "pid": os.getpid()}
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit(0))  # uvicorn raises it again after its own shutdown
    PlatformServer(config, ready | {"defects": sorted(defects)}).run(sockets=[listener])


if __name__ == "__main__":
    main(sys.argv[1:])
