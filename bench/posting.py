"""Marks B13 and B14: findings posted per second, and gas per finding (performance.md 4).

    python -m bench.posting [--rounds 5] [--count 200] [--json FILE]

One real anvil, bulk blocks, 300-byte envelopes. Each round runs the peer and ours on the same node and
takes turns at going first. The peer is web3.py pipelined in its documented way: build, sign with the
account, send_raw_transaction with local nonces, wait for the receipts. Ours is the whole path of the
fleet: policy, signature, journal record, broadcast, receipts. The limit is pre-signed bytes in
batches of 50, nothing else. Exit status 1 below the floor.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eth_account import Account
from web3 import Web3
from web3.types import Nonce, TxParams, Wei

from fleet.chain.keys import Secret, address_of, fresh
from fleet.chain.log.feedback import FeedbackLog
from fleet.chain.node.rpc import Rpc
from fleet.chain.signing.judge import SigningLimits
from fleet.chain.signing.signer import BATCH, Keys, Signer
from fleet.chain.signing.tx import UnsignedTx, sign
from fleet.config import ChainSection, GasSection
from fleet.devnet import artifact, node
from fleet.devnet.anvil import Anvil
from fleet.devnet.deploy import deploy
from fleet.errors import FleetError
from tests.doubles.chain_memory import MemoryJournal

FLOOR_RATIO = 4.0
"""B13 in CI: at least this many times the pipelined peer."""
FLOOR_GAS = 0.2
"""B14: a 300-byte finding costs at most this part of a 2048-byte one; exact, not noisy."""
SIZE = 300
GAS = 5_000_000
FEE = 10**11


@dataclass
class Bench:
    """What every contestant needs."""

    rpc: Rpc
    url: str
    chain_id: int
    diamond: str
    count: int


def texts(count: int, label: str, size: int = SIZE) -> list[str]:
    """Distinct envelopes of exactly `size` bytes."""
    return [f"qa/v1 source=bench {label} {place} ".ljust(size, "x") for place in range(count)]


async def rich_key(rpc: Rpc) -> Secret:
    key = fresh()
    await node.fund(rpc, address_of(key), 10**24)
    return key


async def ours(bench: Bench, label: str) -> float:
    """Seconds for the fleet's own path, read-back excluded as it is for the peer."""
    signer, log = await make_log(bench)
    started = time.perf_counter()
    sent = await signer.broadcast([log.request(text) for text in texts(bench.count, label)])
    await bench.rpc.call("evm_mine")
    receipts = await signer.collect(sent)
    seconds = time.perf_counter() - started
    failed = [item for item in receipts if isinstance(item, FleetError) or item.status != 1]
    assert not failed, failed[:1]
    return seconds


async def limit(bench: Bench, label: str) -> float:
    """Seconds for bytes that were signed before the clock started."""
    key = await rich_key(bench.rpc)
    log = FeedbackLog(bench.rpc, bench.diamond, GasSection())
    requests = [log.request(text) for text in texts(bench.count, label)]
    raws = [
        sign(
            UnsignedTx(
                chain_id=bench.chain_id,
                nonce=place,
                tip=0,
                max_fee=FEE,
                gas=item.gas,
                to=item.to,
                data=item.data,
            ),
            key,
        )
        for place, item in enumerate(requests)
    ]
    started = time.perf_counter()
    for start in range(0, len(raws), BATCH):
        page = raws[start : start + BATCH]
        await bench.rpc.batch([("eth_sendRawTransaction", ["0x" + item.raw.hex()]) for item in page])
    await bench.rpc.call("evm_mine")
    await bench.rpc.batch([("eth_getTransactionReceipt", [item.hash]) for item in raws])
    return time.perf_counter() - started


async def peer(bench: Bench, label: str) -> float:
    """Seconds for web3.py, pipelined with local nonces; in a thread, since it blocks."""
    key = await rich_key(bench.rpc)
    return await asyncio.to_thread(_peer, bench, label, key.reveal())


def _peer(bench: Bench, label: str, raw_key: bytes) -> float:
    w3 = Web3(Web3.HTTPProvider(bench.url))
    account = Account.from_key(raw_key)
    abi = artifact.load("FeedbackFacet").abi
    contract = w3.eth.contract(address=Web3.to_checksum_address(bench.diamond), abi=abi)
    started = time.perf_counter()
    nonce = w3.eth.get_transaction_count(account.address)
    hashes = []
    for place, text in enumerate(texts(bench.count, label)):
        fields: TxParams = {
            "from": account.address,
            "nonce": Nonce(nonce + place),
            "gas": GAS,
            "maxFeePerGas": Wei(FEE),
            "maxPriorityFeePerGas": Wei(0),
            "chainId": bench.chain_id,
        }
        tx = contract.functions.submitFeedback(text).build_transaction(fields)
        signed = account.sign_transaction(tx)
        hashes.append(w3.eth.send_raw_transaction(signed.raw_transaction))
    w3.provider.make_request("evm_mine", [])  # type: ignore[arg-type]
    for item in hashes:
        assert w3.eth.wait_for_transaction_receipt(item, poll_latency=0.01)["status"] == 1
    return time.perf_counter() - started


async def make_log(bench: Bench) -> tuple[Signer, FeedbackLog]:
    section = ChainSection(rpc=bench.url, id=bench.chain_id, diamond=bench.diamond)
    signer = Signer(
        bench.rpc,
        section,
        MemoryJournal(),
        keys=Keys(identity=await rich_key(bench.rpc)),
        fences=SigningLimits(rung=lambda: "observe"),
    )
    return signer, FeedbackLog(bench.rpc, bench.diamond, GasSection(), signer)


async def gas_of(bench: Bench, size: int) -> int:
    """Gas of one entry of `size` bytes that was read back."""
    _, log = await make_log(bench)
    outcome = await log.post(texts(1, f"gas {size}", size)[0])
    return outcome.gas_used


async def measure(rounds: int, count: int) -> dict[str, Any]:
    """Everything in one run, as one JSON-ready object."""
    with tempfile.TemporaryDirectory() as folder:
        async with (
            Anvil(Path(folder) / "chain.json", history=1, dump_every_s=3600) as anvil,
            Rpc(anvil.url) as rpc,
        ):
            deployment = await deploy(rpc)
            bench = Bench(rpc, anvil.url, deployment.chain_id, deployment.diamond, count)
            await gas_of(bench, SIZE)  # the first entry also pays for the log's own slot
            gas = {str(size): await gas_of(bench, size) for size in (SIZE, 2048)}
            await rpc.call("evm_setAutomine", [False])
            rates = await race(bench, rounds)
    medians = {name: round(statistics.median(values), 1) for name, values in rates.items()}
    ratios = [own / other for own, other in zip(rates["ours"], rates["peer"], strict=True)]
    limits = [own / other for own, other in zip(rates["ours"], rates["limit"], strict=True)]
    return {
        "B13": {
            "unit": "findings/s",
            "medians": medians,
            "ratio_to_peer": round(statistics.median(ratios), 2),
            "ratio_to_limit": round(statistics.median(limits), 2),
            "floor": FLOOR_RATIO,
        },
        "B14": {"gas": gas, "ratio": round(gas[str(SIZE)] / gas["2048"], 3), "floor": FLOOR_GAS},
        "rounds": rounds,
        "count": count,
    }


async def race(bench: Bench, rounds: int) -> dict[str, list[float]]:
    """Rates per round; who goes first rotates, since a growing log slows the node down."""
    runners: dict[str, Callable[[Bench, str], Coroutine[Any, Any, float]]] = {
        "ours": ours,
        "peer": peer,
        "limit": limit,
    }
    rates: dict[str, list[float]] = {name: [] for name in runners}
    order = list(runners)
    for place in range(rounds):
        for name in order:
            rates[name].append(bench.count / await runners[name](bench, f"{name} {place}"))
        order = order[1:] + order[:1]
    return rates


def main() -> int:
    parser = argparse.ArgumentParser(description="posting marks B13 and B14")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    result = asyncio.run(measure(options.rounds, options.count))
    text = json.dumps(result, indent=1)
    print(text)
    if options.json:
        options.json.write_text(text + "\n")
    good = result["B13"]["ratio_to_peer"] >= FLOOR_RATIO and result["B14"]["ratio"] <= FLOOR_GAS
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
