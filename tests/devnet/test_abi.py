"""The committed artifacts: call-compatible with the published surface, and what solc makes today."""

from __future__ import annotations

from typing import Any

import pytest

from fleet.chain.node.abi import ERRORS, FUNCTIONS
from fleet.chain.node.digest import keccak256
from fleet.chain.signing.delegate import DELEGATE
from fleet.devnet import artifact, solc
from fleet.devnet.artifact import signatures

# platform-facts 1.3, copied by hand: selector, signature, outputs
PUBLISHED = """
e341a623 submitFeedback(string)
2ed3f65b feedbackCount() uint256
5274f07a feedbackAt(uint256) address,uint64,string
cd1f7306 feedbackRange(uint256,uint256) address[],uint64[],string[]
ac8063ff clearFeedback()
f2c298be register(string) uint256
258adde2 isTaken(string) bool
7f873749 ownerOfName(string) address
c322ecfc ownerOfId(uint256) address
127c388a idOfName(string) uint256
8a3e6c1c nameOfId(uint256) string
d94fe832 idOf(address) uint256
61b8ce8c nextId() uint256
a0bd575b setMetadata(uint256,bytes32,bytes)
a575f120 metadata(uint256,bytes32) bytes
dc4a7f7f registrationCost() uint256
637e9d5c setRegistrationCost(uint256)
313dab20 treasuryBalance() uint256
0d86419a withdrawTreasury(address,uint256)
48e69e68 releaseName(uint256)
74223f6d adminBurnNames(uint256[])
12597def adminResetAll()
cb5e0a4e registerMain(uint256)
6ba5ca16 clearMain()
e8f7b638 mainOf(address) uint256
a0297a25 mainNameOf(address) string
30c2d1dd isMain(uint256) bool
b4c3b213 mainCost() uint256
b746033c setMainCost(uint256)
7a0ed627 facets() (address,bytes4[])[]
adfca15e facetFunctionSelectors(address) bytes4[]
52ef6b2c facetAddresses() address[]
cdffacc6 facetAddress(bytes4) address
01ffc9a7 supportsInterface(bytes4) bool
8da5cb5b owner() address
f2fde38b transferOwnership(address)
1f931c1c diamondCut((address,uint8,bytes4[])[],address,bytes)
d567c752 depositCredits(uint256)
75807250 creditOf(address) uint256
88962a60 meter(address,uint256)
89934d3a claimDaily()
6352211e ownerOf(uint256) address
70a08231 balanceOf(address) uint256
c87b56dd tokenURI(uint256) string
"""

OURS = {"setMeter(address)", "meterAddress()"}
"""What the devnet adds: who may charge credits is set by hand, not by a deployment script."""

# "+" marks what is indexed
EVENTS = """
c7e666f164da054d2ca2bd712fb261158473066d414c8cfc33a1b9c7df775fe7 FeedbackSubmitted(address+,uint256,string)
d152b1cd3646070da50e66ed2a625bd222cc2516cd14779b3fb4c1a9aef9d091 FeedbackCleared(uint256)
c118700a4fa70d79a8f1df06b1d2ff9aeaf09bdc4c528a45ddd5182856864594 Registered(uint256+,address+,string)
38671a025122228b2316fd2a2a03ca9a3aad2820f6a4b0b7ec17f3ce4bb7c123 MetadataSet(uint256+,bytes32+,bytes)
348635b2b7fd93284e75e27977bc4decbf5c71d4f2b3a4872dfa359f1b4b69f4 RegistrationCostUpdated(uint256,uint256)
ddf252ad...3b3ef Transfer(address+,address+,uint256+)
b2232cfcdfe9248c8e15965f3a14bb0e2fa87da5ae3a188e2361f31b26f7ddc1 NameReleased(uint256+,string,address+)
a3c65d85...73f6 MainRegistered(address+,uint256+,string)
574add9e...9b10 MainCleared(address+,uint256+)
8be0079c531659141344cd1fd0a4f28419497f9722a3daafe3b4186f6b6457e0 OwnershipTransferred(address+,address+)
8faa7087...b673 DiamondCut((address,uint8,bytes4[])[],address,bytes)
"""

REVERTS = """
4c806526 EmptyFeedback()
a8fe583b FeedbackTooLong(uint256)
7f19f48d InvalidName(string)
30cd7471 NotOwner()
b9c08761 NotOwner(uint256,address)
9eee17ad CannotReleaseMain()
8c9e2391 CannotReleaseGuild()
0ed9cff4 UnknownToken(uint256)
a931601b NotMeter()
43fb9453 InsufficientCredits()
d311bc39 NotConfigured()
"""

ABI: list[dict[str, Any]] = [entry for name in artifact.FACETS for entry in artifact.load(name).abi]


def rows(table: str) -> list[list[str]]:
    return [line.split() for line in table.strip().splitlines()]


def entry_of(kind: str, signature: str) -> dict[str, Any]:
    (found,) = {
        str(entry): entry
        for entry in ABI
        if entry["type"] == kind and list(signatures([entry], kind)) == [signature]
    }.values()
    return found


@pytest.mark.parametrize("row", rows(PUBLISHED), ids=lambda row: row[1])
def test_every_published_function_is_in_the_abi(row: list[str]) -> None:
    selector, signature, *outputs = row
    assert keccak256(signature.encode())[:4].hex() == selector
    entry = entry_of("function", signature)
    spelled = list(signatures([{**entry, "inputs": entry["outputs"]}], "function"))
    assert spelled == [f"{entry['name']}({outputs[0] if outputs else ''})"]
    changes = not outputs or signature == "register(string)"
    assert entry["stateMutability"] == ("nonpayable" if changes else "view")


def test_the_diamond_has_nothing_that_is_not_published() -> None:
    published = {row[1] for row in rows(PUBLISHED)}
    assert set(signatures(ABI, "function")) - published == OURS


@pytest.mark.parametrize("row", rows(EVENTS), ids=lambda row: row[1])
def test_every_published_event_is_in_the_abi(row: list[str]) -> None:
    topic, marked = row
    signature = marked.replace("+", "")
    head, _, tail = topic.partition("...")
    found = keccak256(signature.encode()).hex()
    assert found.startswith(head)
    assert found.endswith(tail)
    inputs = entry_of("event", signature)["inputs"]
    assert [item["indexed"] for item in inputs] == [kind.endswith("+") for kind in _top_level(marked)]


def _top_level(marked: str) -> list[str]:
    inside = marked.partition("(")[2][:-1]
    depth, parts = 0, [""]
    for letter in inside:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


@pytest.mark.parametrize("row", rows(REVERTS), ids=lambda row: row[1])
def test_every_published_error_is_in_the_abi(row: list[str]) -> None:
    selector, signature = row
    assert keccak256(signature.encode())[:4].hex() == selector
    assert signature in set(signatures(ABI, "error"))
    assert bytes.fromhex(selector) in ERRORS


def test_the_fleet_s_own_table_agrees_with_the_contracts() -> None:
    theirs = {function.signature: function for function in FUNCTIONS.values()}
    for signature in set(signatures(ABI, "function")) - OURS:
        function, entry = theirs[signature], entry_of("function", signature)
        outputs = ",".join(function.outputs)
        assert list(signatures([{**entry, "inputs": entry["outputs"]}], "function")) == [
            f"{entry['name']}({outputs})"
        ]
        assert function.writes == (entry["stateMutability"] == "nonpayable")


def test_the_committed_artifacts_are_what_the_pinned_solc_makes() -> None:
    committed = {path.stem: path.read_text("utf-8") for path in artifact.ARTIFACTS.glob("*.json")}
    committed[DELEGATE.stem] = DELEGATE.read_text("utf-8")
    assert solc.compile_contracts() == committed
