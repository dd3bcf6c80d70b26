"""Metadata keys against the figures of the real platform, and the shipped profiles' names of them."""

from __future__ import annotations

import pytest
from eth_utils.crypto import keccak

from fleet.chain.node.digest import metadata_key
from fleet.config import Platform, parse, read_text
from fleet.files import ROOT

GOLDEN = {  # platform-facts 1.4
    "localharness.persona": "c0dfa2291f9cb027836bd08c8e3129b679261fb145ef87957cfce36e9b4d27b8",
    "localharness.app.wasm": "ba56d1cecaaa93eccb4b8a2f96e46ac7aa4a94876b0460c28fe97a584dd717fb",
    "localharness.public_face": "d67419b52f5e7b77a7500271a54db3e615d9edf77362dd8891a80980bd88edeb",
    "localharness.public.html": "9570b8cd077cb5e764b2e22602be50d7bbc99d6eb316a6af48bbed5f9accbf8f",
    "localharness.gemini_key.enc": "4d55fa261f38f590e4a9e929dee22b1ae04e0ff785b90e637901bf6106a9bb6a",
    "localharness.capability": "703eb9edcb823b7146ff433a6db09cb3bcc7ee4c8870f8914e0dae67cedd5c6d",
    "localharness.lessons": "08564cae936ec460c48a23578c7df5665bad18fe42f3c5dbde517ad67a9d9c89",
}


@pytest.mark.parametrize(("name", "key"), GOLDEN.items())
def test_a_key_is_the_hash_of_its_name(name: str, key: str) -> None:
    assert metadata_key(name).hex() == key == keccak(text=name).hex()


@pytest.mark.parametrize("profile", ["localharness", "localharness-testnet", "example"])
def test_the_shipped_profiles_name_them_all(profile: str) -> None:
    path = ROOT / "config" / "platforms" / f"{profile}.toml"
    metadata = parse(Platform, read_text(path), file=str(path)).metadata
    assert set(metadata.names.values()) == set(GOLDEN)
    assert (metadata.names["app"], metadata.names["face"], metadata.names["persona"], metadata.face_app) == (
        "localharness.app.wasm",
        "localharness.public_face",
        "localharness.persona",
        "app",
    )
