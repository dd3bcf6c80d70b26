"""A devnet with the rules of Tempo: fees in tokens, a payer for another's, no coin that can be sent."""

from __future__ import annotations

from pathlib import Path

from fleet.chain.node import codec
from fleet.chain.node.hexes import as_int
from fleet.chain.node.rpc import Rpc
from fleet.devnet import node
from fleet.devnet.anvil import Anvil
from fleet.devnet.deploy import DEPLOYER
from fleet.devnet.devnet import Devnet

FEE_TOKEN = "0x20c0000000000000000000000000000000000000"
"""What an account of Tempo pays with that has not chosen another token; it has six decimals."""
_TRANSFER, _BALANCE_OF = bytes.fromhex("a9059cbb"), "0x70a08231"


class TempoAnvil(Anvil):
    """The pinned chain as one of Tempo."""

    def _command(self, binary: Path) -> list[str]:
        words = super()._command(binary)
        at = words.index("--hardfork")
        return [*words[:at], *words[at + 2 :], "--network", "tempo"]


class TempoDevnet(Devnet):
    """The devnet on such a chain."""

    def _anvil(self, state: Path, port: int) -> Anvil:
        return TempoAnvil(state, port=port)


async def fund(rpc: Rpc, address: str, wei: int) -> None:
    """As many tokens as that would be coins. Anvil wants the coins as well, for an ordinary transaction."""
    await node.fund(rpc, address, wei)
    inputs = codec.encode(["address", "uint256"], [address, wei // 10**12])
    await node.transact(rpc, DEPLOYER, FEE_TOKEN, _TRANSFER + inputs)


async def tokens(rpc: Rpc, address: str) -> int:
    """What an address has of the token, in its smallest unit."""
    data = _BALANCE_OF + codec.encode(["address"], [address]).hex()
    return as_int(await rpc.call("eth_call", [{"to": FEE_TOKEN, "data": data}, "latest"]))
