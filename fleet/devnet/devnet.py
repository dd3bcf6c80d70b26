"""The whole devnet for the length of an `async with`: chain, contracts, platform process, profile.

    async with Devnet(state / "devnet", defects=ALL_IDS) as devnet:
        ... devnet.profile ...

It writes only to its folder; the chain's state stays there, so a later start continues from it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from contextlib import AsyncExitStack
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Self

import anyio
from anyio.abc import Process

from fleet.chain.keys import address_of, create_key, load_key, write_new
from fleet.chain.node.rpc import Rpc
from fleet.devnet.anvil import CHAIN_ID, Anvil, find_anvil
from fleet.devnet.defects import COMPILER_IDS, PLATFORM_IDS
from fleet.devnet.deploy import Deployment, deploy_or_load
from fleet.devnet.node import fund
from fleet.devnet.surfaces import Opened, opened
from fleet.errors import FleetError

METER_KEY = "59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d"
"""Development account 1 of the published mnemonic (`anvil.MNEMONIC`): public, worth nothing anywhere."""
INITIAL_WEI = 1000 * 10**18
"""Initial funds of identity and sponsor."""
READY_WAIT_S = 20.0
STOP_WAIT_S = 5.0
CALLED = {"model": "gemini-flash", "auth_scope": "localharness-proxy", "route": "gemini"}
"""What a call of an agent here is made of, as a profile's `[web]` says it."""
STATED = """[metadata]
app = "localharness.app.wasm"
face = "localharness.public_face"
persona = "localharness.persona"

[targets]
agent = "claude"
assistant = "docs"
page = "docs"
second-page = "claude"
guide = "{site}/llms.txt"
manual = "{site}/skill.md"
settings = "{site}/settings"
script = "{site}/client.js"
status = "{proxy}/api/status"
persona = "{site}/api/persona?name=docs"

[facts]
call_price_wei = 10000000000000000
call_price = "costs 0.01 credits"
call_path = "/v1beta/models/"
open_registration = true
streams = true
calls_need_token = true
has_owner = true
unknown_names_404 = true
agents_know_callers = true

[history]
page_face_p95_ms = 20.0
face_control_p95_ms = 20.0
site_p95_ms = 20.0
guide_p95_ms = 20.0
"""
"""The constant part of a devnet's profile: targets of probes, promises, its
figures."""
COMPILER = Path(__file__).with_name("compiler")
SAMPLE = "fn frame(t: i32) -> i32 { t + 1 }"
"""Compiles whatever is seeded."""


def check_parts() -> None:
    """Raise FleetError, with the command that brings it, for a part that no wheel can contain."""
    find_anvil()
    if find_spec("wasmtime") is None:
        raise FleetError(
            "wasmtime, which the bundled platform's loader uses, is not installed",
            remedy="pip install 'qa-fleet[devnet]'",
        )


class Devnet:
    """`profile` is the file that describes it, `keys` the folder with the fleet's two keys.

    `surfaces`: those of `fleet.devnet.surfaces` that it has besides, seeded where it has any defect. `ports`:
    of the chain and the platform, 0 for any.

    Raises FleetError when a part does not start, TryAgain when the folder is in use.
    """

    changes_every_s = 5.0
    """Of the surface `posture`."""

    def __init__(
        self,
        folder: Path,
        *,
        keys: Path,
        defects: Iterable[str] = (),
        surfaces: Iterable[str] = (),
        ports: tuple[int, int] = (0, 0),
    ) -> None:
        self.folder, self.keys = folder.absolute(), keys.absolute()
        self.defects, self.surfaces = frozenset(defects), frozenset(surfaces)
        self.profile = self.folder / "devnet.toml"
        self._ports = ports
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        check_parts()
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        async with AsyncExitStack() as stack:
            self.chain = await stack.enter_async_context(
                self._anvil(self.folder / "chain.json", self._ports[0])
            )
            rpc = await stack.enter_async_context(Rpc(self.chain.url))
            deployment = await self._deploy(rpc)
            for name in ("identity", "sponsor"):
                path = self.keys / name
                path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                address = address_of(load_key(path)) if path.exists() else create_key(path)
                await fund(rpc, address, INITIAL_WEI)
            stack.callback(self.profile.unlink, missing_ok=True)
            self.url = await self._serve(stack, deployment)
            self.opened = await self._open(stack)
            self.profile.write_text(self._describe(deployment), "utf-8")
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    def _anvil(self, state: Path, port: int) -> Anvil:
        """The chain; a devnet of the tests has one with other rules."""
        return Anvil(state, port=port)

    async def _deploy(self, rpc: Rpc) -> Deployment:
        """Deploy or load the contracts; a devnet of the tests leaves parts out."""
        return await deploy_or_load(rpc, self.folder / "deployment.json")

    async def _serve(self, stack: AsyncExitStack, deployment: Deployment) -> str:
        """Start the platform process; its URL once it says that it serves."""
        key = self.folder / "meter.key"
        key.unlink(missing_ok=True)
        write_new(key, METER_KEY.encode() + b"\n")
        command = [
            sys.executable,
            "-m",
            "fleet.devnet.platform",
            "--rpc",
            self.chain.url,
            "--diamond",
            deployment.diamond,
            "--meter-key-file",
            str(key),
            "--port",
            str(self._ports[1]),
            "--defects",
            ",".join(sorted(self.defects & PLATFORM_IDS)),
        ]
        log = stack.enter_context((self.folder / "platform.log").open("wb"))
        process = await anyio.open_process(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, start_new_session=True
        )
        stack.push_async_callback(_end, process)
        with anyio.move_on_after(READY_WAIT_S):
            assert process.stdout is not None
            words = b""
            async for chunk in process.stdout:
                words += chunk
                if b"\n" in words:
                    return str(json.loads(words.partition(b"\n")[0])["url"])
        raise FleetError("the reference platform did not start", remedy=f"see {self.folder / 'platform.log'}")

    async def _open(self, stack: AsyncExitStack) -> Opened:
        """The surfaces, which are seeded where anything is."""
        if not self.surfaces:
            return Opened()
        wanted, seeded = self.surfaces, bool(self.defects)
        room = opened(
            wanted, self.chain.url, self.folder, self.keys, seeded=seeded, every_s=self.changes_every_s
        )
        more = await anyio.to_thread.run_sync(room.__enter__)
        stack.push_async_callback(anyio.to_thread.run_sync, lambda: room.__exit__(None, None, None))
        return more

    def _describe(self, deployment: Deployment) -> str:
        """The profile of this devnet, as `config/platforms/*.toml` are written."""
        tool = '"{python}", "-S", "-B", "/opt/tc/rustlite"'
        defects = ",".join(sorted(self.defects & COMPILER_IDS))
        called = "\n".join(f'{key} = "{value}"' for key, value in CALLED.items())
        tables = "\n\n".join(self.opened.tables)
        return f"""name = "devnet"
call_targets = ["claude", "docs"]

[chain]
rpc = "{self.chain.url}"
ws = "{self.chain.ws_url}"
id = {CHAIN_ID}
diamond = "{deployment.diamond}"
token = "{deployment.token}"

[web]
site = "{self.url}"
face = "{self.url}/face/{{name}}/"
proxy = "{self.url}"
{called}
{self.opened.web}

[compiler]
root = "{COMPILER}"
command = [{tool}, "--defects", "{defects}"]
loader = [{tool}, "--defects", "{defects}", "--entry"]
environment = {{ PYTHONPATH = "/opt/tc:/opt/site" }}
warm = "python"
warm_entry = "rustlite.cli:main"
language = "rustlite"
family = "rust"
tool_chain = "python"
entries = ["frame", "render"]
sample = "{SAMPLE}"
no_entry_code = "LH0302"
too_large_code = "LH0303"

{STATED}
{tables}
"""


async def _end(process: Process) -> None:
    """Ask, wait a little, insist."""
    with anyio.CancelScope(shield=True):
        if process.returncode is None:
            process.terminate()
        with anyio.move_on_after(STOP_WAIT_S):
            await process.wait()
        if process.returncode is None:
            process.kill()
        await process.aclose()
