"""A listed host is not enough: no tunnel to it, no name that leads back to us."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest

from fleet.broker.broker import Broker
from fleet.broker.egress_policy import Origin
from fleet.files import ROOT
from tests.jail.test_broker_forward import Rig, rig, verdict
from tests.sandbox.doubles import listener, policy_for


@pytest.mark.anyio
async def test_connect_to_a_listed_host_is_off_too() -> None:
    """Inside a tunnel nothing but the host could be held: being listed is not enough."""
    async with rig() as it:
        policy = policy_for(f"https://127.0.0.1:{it.site.port}")
        assert policy.lists(Origin("https", "127.0.0.1", it.site.port))
        with listener() as sock:
            async with (broker := Broker(policy)).egress(sock):
                other = Rig(broker, it.site, sock.getsockname()[1])
                head = f"CONNECT 127.0.0.1:{it.site.port} HTTP/1.1\r\nhost: x\r\n\r\n"
                assert verdict(await other.raw(head.encode())) == (403, "tunnel")
        assert it.site.dials == 0


OWN, OTHER = "93.184.216.34", "93.184.216.35"

INSIDE = f"""
import asyncio, fcntl, json, socket, struct
from fleet.broker.broker import Broker
from fleet.broker.egress_policy import is_own
from tests.jail.test_broker_forward import Rig
from tests.sandbox.doubles import Server, listener, policy_for

def address(words):
    return struct.pack("16sHH4s8x", b"lo:1", socket.AF_INET, 0, socket.inet_aton(words))

with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as wire:
    fcntl.ioctl(wire, 0x8914, struct.pack("16sH14x", b"lo", 1))  # SIOCSIFFLAGS: up
    before = is_own("{OWN}")
    fcntl.ioctl(wire, 0x8916, address("{OWN}"))  # SIOCSIFADDR
    fcntl.ioctl(wire, 0x891C, address("255.255.255.255"))  # SIOCSIFNETMASK

async def rule(*found):
    async def resolve(_):
        return found
    async with Server() as site:
        url = f"http://listed.test:{{site.port}}"
        broker = Broker(policy_for(url, resolve=resolve))
        with listener() as sock:
            async with broker.egress(sock):
                said = await Rig(broker, site, sock.getsockname()[1]).rule(url + "/")
        return [*said, site.dials]

async def main():
    return [await rule("{OWN}"), await rule("{OTHER}", "{OWN}"), await rule("{OTHER}")]

print(json.dumps([before, is_own("{OWN}"), is_own("{OTHER}"), *asyncio.run(main())]))
"""


def apart() -> list[str]:
    """The words that start a program with a network of its own; [] where none can be made."""
    words = ["unshare", "--map-root-user", "--net"]
    usable = shutil.which("unshare") and subprocess.run([*words, "true"], capture_output=True).returncode == 0
    return words if usable else []


@pytest.mark.jail
@pytest.mark.skipif(
    not apart(), reason="no network of its own can be made for a program here (unshare --net)"
)
def test_a_listed_name_that_resolves_to_an_address_of_this_machine_is_not_dialled() -> None:
    done = subprocess.run(
        [*apart(), sys.executable, "-c", INSIDE],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    before, own, other, alone, among, elsewhere = json.loads(done.stdout)
    assert (before, own, other) == (False, True, False)
    assert (alone, among) == ([403, "address", 0], [403, "address", 0])
    assert elsewhere == [502, "unreachable", 0]  # it was dialled: nothing is there
