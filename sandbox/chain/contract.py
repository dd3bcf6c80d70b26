"""The contract surface that tools may touch: views by name, the few writes."""

from __future__ import annotations

from sandbox.chain.abi import AbiFunction

VIEWS: dict[str, AbiFunction] = {
    "feedbackCount": AbiFunction("0x2ed3f65b", (), ("uint256",)),
    "feedbackAt": AbiFunction("0x5274f07a", ("uint256",), ("address", "uint64", "string")),
    "feedbackRange": AbiFunction("0xcd1f7306", ("uint256", "uint256"), ("address[]", "uint64[]", "string[]")),
    "isTaken": AbiFunction("0x258adde2", ("string",), ("bool",)),
    "ownerOfName": AbiFunction("0x7f873749", ("string",), ("address",)),
    "ownerOfId": AbiFunction("0xc322ecfc", ("uint256",), ("address",)),
    "idOfName": AbiFunction("0x127c388a", ("string",), ("uint256",)),
    "nameOfId": AbiFunction("0x8a3e6c1c", ("uint256",), ("string",)),
    "idOf": AbiFunction("0xd94fe832", ("address",), ("uint256",)),
    "nextId": AbiFunction("0x61b8ce8c", (), ("uint256",)),
    "metadata": AbiFunction("0xa575f120", ("uint256", "bytes32"), ("bytes",)),
    "registrationCost": AbiFunction("0xdc4a7f7f", (), ("uint256",)),
    "treasuryBalance": AbiFunction("0x313dab20", (), ("uint256",)),
    "mainOf": AbiFunction("0xe8f7b638", ("address",), ("uint256",)),
    "mainNameOf": AbiFunction("0xa0297a25", ("address",), ("string",)),
    "isMain": AbiFunction("0x30c2d1dd", ("uint256",), ("bool",)),
    "mainCost": AbiFunction("0xb4c3b213", (), ("uint256",)),
    "facets": AbiFunction("0x7a0ed627", (), ("(address,bytes4[])[]",)),
    "facetFunctionSelectors": AbiFunction("0xadfca15e", ("address",), ("bytes4[]",)),
    "facetAddresses": AbiFunction("0x52ef6b2c", (), ("address[]",)),
    "facetAddress": AbiFunction("0xcdffacc6", ("bytes4",), ("address",)),
    "supportsInterface": AbiFunction("0x01ffc9a7", ("bytes4",), ("bool",)),
    "owner": AbiFunction("0x8da5cb5b", (), ("address",)),
    "creditOf": AbiFunction("0x75807250", ("address",), ("uint256",)),
    "sessionExpiryOf": AbiFunction("0x05218aaa", ("address",), ("uint256",)),
    "tokenBoundAccount": AbiFunction("0x0be76ed6", ("uint256",), ("address",)),
    "tokenBoundAccountByName": AbiFunction("0x20c9cb0a", ("string",), ("address",)),
    "ownerOf": AbiFunction("0x6352211e", ("uint256",), ("address",)),
    "balanceOf": AbiFunction("0x70a08231", ("address",), ("uint256",)),
    "tokenURI": AbiFunction("0xc87b56dd", ("uint256",), ("string",)),
}
"""Every function `qa_chain` may call; nothing here changes state."""

REGISTER = AbiFunction("0xf2c298be", ("string",), ("uint256",))
SET_METADATA = AbiFunction("0xa0bd575b", ("uint256", "bytes32", "bytes"))
APPROVE = AbiFunction("0x095ea7b3", ("address", "uint256"), ("bool",))
CLAIM_DAILY = AbiFunction("0x89934d3a")
WRITES: dict[str, AbiFunction] = {
    "register": REGISTER,
    "setMetadata": SET_METADATA,
    "claimDaily": CLAIM_DAILY,
    "releaseName": AbiFunction("0x48e69e68", ("uint256",)),
}
"""Writes of the diamond that a platform may lack; the signer's own table decides what is signed."""
