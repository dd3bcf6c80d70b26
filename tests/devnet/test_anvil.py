"""The chain's process: it starts, it ends with its parent, and its state survives all of it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import anyio
import pytest

from fleet.chain.node.rpc import Rpc
from fleet.devnet import node
from fleet.devnet.anvil import BLOCK_GAS_LIMIT, CHAIN_ID, Anvil, find_anvil
from fleet.devnet.deploy import DEPLOYER
from fleet.errors import FleetError, TryAgain
from fleet.files import ROOT

pytestmark = [pytest.mark.anyio, pytest.mark.devnet]

SINK = "0x" + "11" * 20

PARENT = """
import sys, anyio
from pathlib import Path
from fleet.chain.node.rpc import Rpc
from fleet.devnet.anvil import Anvil
from fleet.devnet.deploy import DEPLOYER
from fleet.devnet import node

async def main():
    async with Anvil(Path(sys.argv[1]), dump_every_s=3600) as anvil, Rpc(anvil.url) as rpc:
        receipt = await node.transact(rpc, DEPLOYER, "0x" + "11" * 20, b"")
        print(anvil.pid, receipt["transactionHash"], flush=True)
        await anyio.sleep_forever()

anyio.run(main)
"""


class Orphan(NamedTuple):
    """A parent that holds an anvil, in another process."""

    parent: subprocess.Popen[str]
    anvil: int
    tx: str


def start_parent(state: Path) -> Orphan:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(state)], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    assert parent.stdout is not None
    pid, tx = parent.stdout.readline().split()
    parent.stdout.close()
    return Orphan(parent, int(pid), tx)


def gone(pid: int) -> bool:
    """True for a process that ended, also when nobody has collected it yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except FileNotFoundError:
        return True


def sockets(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/net/tcp").read_text().split()


def within(seconds: float, holds: Callable[[], bool]) -> bool:
    end = time.monotonic() + seconds
    while not holds() and time.monotonic() < end:
        time.sleep(0.02)
    return holds()


async def height(url: str) -> int:
    async with Rpc(url) as rpc:
        return int(await rpc.call("eth_blockNumber"), 16)


async def mine(url: str, blocks: int = 1) -> None:
    async with Rpc(url) as rpc:
        for _ in range(blocks):
            await rpc.call("evm_mine")


async def test_it_is_ready_with_the_promised_chain(tmp_path: Path) -> None:
    async with Anvil(tmp_path / "chain.json") as anvil, Rpc(anvil.url) as rpc:
        assert int(await rpc.call("eth_chainId"), 16) == CHAIN_ID
        block = await rpc.call("eth_getBlockByNumber", ["latest", False])
        assert int(block["gasLimit"], 16) == BLOCK_GAS_LIMIT
        pid = anvil.pid
        assert anvil.alive
    assert gone(pid)
    assert not anvil.alive


async def test_it_listens_on_loopback_only(tmp_path: Path) -> None:
    async with Anvil(tmp_path / "chain.json") as anvil:
        table = sockets(anvil.pid)
        assert f"0100007F:{anvil.port:04X}" in table
        assert f"00000000:{anvil.port:04X}" not in table


async def test_the_chain_outlives_the_process(tmp_path: Path) -> None:
    state = tmp_path / "chain.json"
    async with Anvil(state) as anvil, Rpc(anvil.url) as rpc:
        tx = (await node.transact(rpc, DEPLOYER, SINK, b""))["transactionHash"]
    async with Anvil(state, port=anvil.port) as again, Rpc(again.url) as rpc:
        assert again.port == anvil.port
        assert (await rpc.call("eth_getTransactionReceipt", [tx]))["status"] == "0x1"
        assert await rpc.call("eth_getTransactionCount", [DEPLOYER, "latest"]) == "0x1"


@pytest.mark.crash
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT])
async def test_it_ends_with_its_parent_and_keeps_the_chain(tmp_path: Path, how: signal.Signals) -> None:
    state = tmp_path / "chain.json"
    orphan = await anyio.to_thread.run_sync(start_parent, state)
    orphan.parent.send_signal(how)
    orphan.parent.wait(timeout=60)
    # at once: the new one has to wait until the old one has written its state and gone
    async with Anvil(state) as anvil, Rpc(anvil.url) as rpc:
        assert gone(orphan.anvil)
        assert (await rpc.call("eth_getTransactionReceipt", [orphan.tx]))["status"] == "0x1"


@pytest.mark.crash
async def test_a_new_one_waits_for_the_old_one_to_be_gone(tmp_path: Path) -> None:
    state = tmp_path / "chain.json"
    orphan = await anyio.to_thread.run_sync(start_parent, state)
    os.kill(orphan.anvil, signal.SIGSTOP)  # as if it took long to write its state
    try:
        orphan.parent.kill()
        orphan.parent.wait(timeout=60)
        with pytest.raises(TryAgain):
            async with Anvil(state, lock_wait_s=0.2):
                pass
    finally:
        os.kill(orphan.anvil, signal.SIGCONT)
    async with Anvil(state) as anvil:
        assert await height(anvil.url) == 1


async def test_the_terminal_cannot_interrupt_it(tmp_path: Path) -> None:
    async with Anvil(tmp_path / "chain.json") as anvil:
        assert os.getsid(anvil.pid) == anvil.pid


@pytest.mark.crash
async def test_nobody_needs_to_start_it_again_for_it_to_go(tmp_path: Path) -> None:
    orphan = await anyio.to_thread.run_sync(start_parent, tmp_path / "chain.json")
    orphan.parent.kill()
    orphan.parent.wait(timeout=60)
    assert within(10, lambda: gone(orphan.anvil))


@pytest.mark.crash
async def test_killed_anvil_loses_at_most_the_interval(tmp_path: Path) -> None:
    state = tmp_path / "chain.json"
    async with Anvil(state, dump_every_s=1) as anvil:
        await mine(anvil.url, 3)
        await anyio.sleep(1.6)
        os.kill(anvil.pid, signal.SIGKILL)
        assert await anvil.ended() == -signal.SIGKILL
        assert not anvil.alive
    async with Anvil(state) as anvil:
        assert await height(anvil.url) == 3


async def test_a_torn_state_file_is_replaced_by_the_last_good_one(tmp_path: Path) -> None:
    state = tmp_path / "chain.json"
    async with Anvil(state) as anvil:
        await mine(anvil.url, 2)
    async with Anvil(state) as anvil:
        await mine(anvil.url)
    state.write_text(state.read_text()[:-40])
    async with Anvil(state) as anvil:
        assert await height(anvil.url) == 2
        await mine(anvil.url)
    async with Anvil(state) as anvil:
        assert await height(anvil.url) == 3
    assert state.with_suffix(".torn").exists()


async def test_a_torn_state_file_without_a_copy_is_one_clear_error(tmp_path: Path) -> None:
    state = tmp_path / "chain.json"
    state.write_text("{")
    with pytest.raises(FleetError, match="failed to parse json file") as caught:
        async with Anvil(state):
            pass
    assert str(state) in caught.value.remedy
    assert state.read_text() == "{"


async def test_a_removed_state_file_starts_a_new_chain_for_good(tmp_path: Path) -> None:
    state = tmp_path / "chain.json"
    for _ in range(2):
        async with Anvil(state) as anvil:
            await mine(anvil.url)
    state.unlink()
    async with Anvil(state) as anvil:
        assert await height(anvil.url) == 0
    state.write_text("")
    with pytest.raises(FleetError, match="failed to parse json file"):
        async with Anvil(state):
            pass


async def test_two_cannot_share_a_state_file(tmp_path: Path) -> None:
    state = tmp_path / "chain.json"
    async with Anvil(state) as anvil:
        with pytest.raises(TryAgain, match="in use by another process"):
            async with Anvil(state, lock_wait_s=0.1):
                pass
        assert await height(anvil.url) == 0


async def test_a_taken_port_is_one_clear_error(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(FleetError, match="anvil ended at once") as caught:
            async with Anvil(tmp_path / "chain.json", port=port):
                pass
    assert f"port {port} is taken" in caught.value.remedy


async def test_a_missing_binary_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(FleetError, match="not installed") as caught:
        find_anvil(tmp_path, path=str(tmp_path))
    assert caught.value.remedy == "make setup"


async def test_the_pinned_binary_comes_before_the_search_path(tmp_path: Path) -> None:
    other = tmp_path / "anvil"
    other.write_text("#!/bin/sh\n")
    other.chmod(0o755)
    assert find_anvil(tmp_path, path=str(tmp_path)) == other
    assert find_anvil(path=str(tmp_path)).is_relative_to(ROOT / "node_modules")


async def test_a_program_without_the_expected_parent_does_not_start(tmp_path: Path) -> None:
    tether = ROOT / "fleet" / "devnet" / "parent_death.py"
    marker = tmp_path / "ran"
    command = [sys.executable, "-I", str(tether), "1", "/usr/bin/touch", str(marker)]
    done = await anyio.run_process(command, check=False)
    assert done.returncode == 75
    assert not marker.exists()


def test_a_chain_without_any_state_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        Anvil(tmp_path / "chain.json", history=0)
