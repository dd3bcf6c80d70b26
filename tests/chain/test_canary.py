"""No key in any exception, log line, repr or journal record, whatever goes wrong while it is in use."""

from __future__ import annotations

import base64
import logging
import traceback
from pathlib import Path

import pytest

from fleet.chain.keys import Secret
from fleet.chain.node.rpc import Rpc
from fleet.chain.ports import Role
from fleet.errors import FleetError
from tests.chain.conftest import Chain, LossyRpc, make_kit

pytestmark = [pytest.mark.anyio, pytest.mark.devnet]


def forms(key: Secret) -> list[str]:
    raw = key.reveal()
    return [
        raw.hex(),
        raw.hex().upper(),
        base64.b64encode(raw).decode(),
        str(int.from_bytes(raw, "big")),
        repr(raw),
    ]


async def test_keys_stay_out_of_everything(
    chain: Chain, tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    said: list[str] = []

    async def attempt(act: object) -> None:
        try:
            said.append(repr(await act))  # type: ignore[misc]
        except FleetError as error:
            said.append("".join(traceback.format_exception(error)) + repr(error) + error.remedy)

    async with LossyRpc(chain.rpc.url) as rpc:
        kit = await make_kit(chain, rpc)
        wallet = kit.wallet(tmp_path)
        wallet.scope.keys.new("a")  # type: ignore[attr-defined]
        throwaway = wallet.scope.keys.get("a")
        diamond = chain.at.diamond
        await attempt(kit.log.post("fine"))
        await attempt(kit.signer.submit(kit.post("dry", gas=60_000)))
        await attempt(wallet.submit("a", diamond, b"\xac\x80\x63\xff", 0, 10**6))
        await attempt(wallet.submit("a", diamond, bytes.fromhex("89934d3a"), 0, 10**6))
        await attempt(wallet.token("a", "x"))
        rpc.drop = 99
        await attempt(kit.log.post("lost"))
    async with Rpc("http://127.0.0.1:1") as away:
        await attempt((await make_kit(chain, away)).signer.submit(kit.post("away")))
    said += [
        repr(kit),
        repr(vars(kit.signer)),
        repr(wallet.scope),
        repr(kit.journal),
        repr(kit.signer._standing),
    ]
    said += [caplog.text, *capsys.readouterr()]
    text = "\n".join(said)
    assert kit.signer.address(Role.IDENTITY) in text
    for key in (kit.identity, kit.sponsor_key, throwaway):
        for form in forms(key):
            assert form not in text
