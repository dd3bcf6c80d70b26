"""What nodes say, in their own words, means the same to us."""

from __future__ import annotations

import pytest

from fleet.chain.node.errors import Meaning, meaning_of
from fleet.chain.signing.broadcast import is_taken, refusal
from fleet.errors import RpcError, Unfunded
from fleet.retry import NO_RETRY, NODE_BUSY, NODE_FAULTY

SAID = [
    (Meaning.KNOWN, -32000, "already known"),  # geth, Reth
    (Meaning.KNOWN, -32010, "AlreadyKnown"),  # Nethermind
    (Meaning.KNOWN, -32000, "Known transaction"),  # Besu
    (Meaning.KNOWN, -32000, "ALREADY_EXISTS: already known"),  # Erigon
    (Meaning.KNOWN, -32003, "transaction already imported"),  # anvil
    (Meaning.POOR, -32000, "insufficient funds for gas * price + value: balance 0, tx cost 1"),
    (Meaning.POOR, -32010, "InsufficientFunds, Account balance: 0, cumulative cost: 21000"),
    (Meaning.POOR, -32004, "Upfront cost exceeds account balance"),
    (Meaning.POOR, -32000, "INSUFFICIENT_FUNDS: sender balance"),
    (Meaning.POOR, -32003, "Insufficient funds for gas * price + value"),
    (Meaning.TAKEN, -32000, "nonce too low: next nonce 5, tx nonce 3"),
    (Meaning.TAKEN, -32010, "OldNonce, Current nonce: 5, nonce of rejected tx: 3"),
    (Meaning.TAKEN, -32010, "OwnNonceAlreadyUsed"),
    (Meaning.TAKEN, -32010, "ReplacementNotAllowed"),
    (Meaning.TAKEN, -32001, "Nonce too low"),
    (Meaning.TAKEN, -32000, "replacement transaction underpriced"),
    (Meaning.TAKEN, -32000, "could not replace existing tx"),
    (Meaning.BUSY, -32005, "daily request count exceeded, request rate limited"),
    (Meaning.BUSY, -32005, "limit exceeded"),
    (Meaning.BUSY, 429, "Your app has exceeded its compute units per second capacity"),
    (Meaning.BUSY, -32007, "15/second request limit reached - reduce calls per second"),
    (Meaning.BEHIND, -32000, "header not found"),
    (Meaning.BEHIND, -32000, "Unknown block"),
    (Meaning.BEHIND, -32602, "BlockOutOfRangeError: block height is 5 but requested was 9"),
    (Meaning.FAULTY, -32603, "Internal error"),
    (Meaning.NO_BATCH, -32600, "batch requests are not supported"),
    (Meaning.NO_BATCH, -32000, "Batch size is too large"),
    # about the request, whatever its code
    (Meaning.OTHER, 3, "execution reverted"),
    (Meaning.OTHER, -32603, "execution reverted: rate"),
    (Meaning.OTHER, -32005, "query returned more than 10000 results"),
    (Meaning.OTHER, -32000, "gas limit exceeded"),
    (Meaning.OTHER, -32602, "invalid argument 0: hex string without 0x prefix"),
    (Meaning.OTHER, -32000, "transaction underpriced"),
]


@pytest.mark.parametrize(("meaning", "code", "message"), SAID)
def test_each_nodes_words_have_one_meaning(meaning: Meaning, code: int, message: str) -> None:
    assert meaning_of(code, message) is meaning


def test_a_revert_with_data_is_never_trouble_of_the_node() -> None:
    assert meaning_of(-32603, "VM Exception", "0x08c379a0") is Meaning.OTHER


@pytest.mark.parametrize("said", [message for meaning, _, message in SAID if meaning is Meaning.TAKEN])
def test_a_taken_nonce_is_signed_again(said: str) -> None:
    assert is_taken(RpcError(said, code=-32000))


@pytest.mark.parametrize("said", [message for meaning, _, message in SAID if meaning is Meaning.POOR])
def test_a_sender_that_cannot_pay_is_named(said: str) -> None:
    found = refusal(RpcError(said, code=-32010), "0xab", "identity")
    assert isinstance(found, Unfunded)
    assert "0xab" in found.remedy


def test_attempts_end_with_patience_and_heed_what_the_node_asks() -> None:
    assert NODE_FAULTY.next_pause(0, draw=0.5) == 0.05
    assert NODE_FAULTY.next_pause(9, 1.9) is None
    assert NODE_BUSY.next_pause(0, 0.0, asked_s=3.0) == 3.0
    assert NODE_BUSY.next_pause(0, 0.0, asked_s=60.0) is None  # longer than anything waits for
    assert NO_RETRY.next_pause(0) is None
