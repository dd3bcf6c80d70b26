"""One anvil with the contracts, each test from the same block; a WebAssembly engine; the platform."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pytest
import wasmtime

from fleet.chain.node.rpc import Rpc
from fleet.devnet import node
from fleet.devnet.anvil import Anvil
from fleet.devnet.deploy import Deployment, deploy, grant
from fleet.devnet.platform.chain import DiamondDouble
from fleet.errors import TxFailed
from tests.devnet.platform_server import Client, memory_chain, platform

ALICE = "0x3c44cdddb6a900fa2b585dd299e03d12fa4293bc"
BOB = "0x90f79bf6eb2c4f870365e785982e1f101e93b906"

OWNER_ONLY = "LibDiamond: not owner"


def topic(address: str) -> str:
    """An address as an indexed event argument."""
    return "0x" + "0" * 24 + address[2:]


@dataclass(frozen=True)
class World:
    """A deployed platform, spoken to by function name."""

    rpc: Rpc
    at: Deployment

    async def view(self, name: str, *args: Any) -> Any:
        return await self.rpc.view(self.at.diamond, name, *args)

    async def send(self, sender: str, name: str, *args: Any) -> dict[str, Any]:
        return await node.invoke(self.rpc, sender, self.at.diamond, name, *args)

    async def refused(self, sender: str, name: str, *args: Any) -> str:
        """The decoded reason of a mined transaction that reverted."""
        with pytest.raises(TxFailed) as caught:
            await self.send(sender, name, *args)
        assert caught.value.kind == "reverted"
        return str(caught.value).removeprefix("reverted: ")

    async def mint(self, sender: str, name: str) -> int:
        await self.send(sender, "register", name)
        ident: int = await self.view("idOfName", name)
        return ident

    async def rich(self, account: str, amount: int) -> None:
        """Gives tokens and the allowance that lets the diamond pull them."""
        await grant(self.rpc, self.at, account, amount)
        await node.invoke(self.rpc, account, self.at.token, "approve", self.at.diamond, amount)


@pytest.fixture(scope="module")
async def deployed(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    state = tmp_path_factory.mktemp("chain") / "chain.json"
    async with Anvil(state) as anvil, Rpc(anvil.url) as rpc:
        yield World(rpc, await deploy(rpc))


@pytest.fixture
async def world(deployed: World) -> AsyncIterator[World]:
    snapshot = await deployed.rpc.call("evm_snapshot")
    yield deployed
    assert await deployed.rpc.call("evm_revert", [snapshot])


@pytest.fixture(scope="module")
def engine() -> Iterator[wasmtime.Engine]:
    with closing(wasmtime.Engine()) as made:
        yield made


@pytest.fixture(scope="module")
def chain() -> DiamondDouble:
    return memory_chain()


@pytest.fixture(scope="module")
def client(chain: DiamondDouble) -> Iterator[Client]:
    with platform(chain=chain) as made:
        yield made
