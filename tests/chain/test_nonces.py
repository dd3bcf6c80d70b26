"""NonceBook: one per sender, and not one for every throwaway key that there ever was."""

from __future__ import annotations

from typing import cast

import pytest

from fleet.chain.node.rpc import Rpc
from fleet.chain.signing.broadcast import KEPT, NonceBook

pytestmark = pytest.mark.anyio
NO_NODE = cast(Rpc, None)


async def test_a_process_that_stays_keeps_the_latest_senders_and_forgets_the_others() -> None:
    book = NonceBook(NO_NODE)
    sponsor = book.of("0xsponsor")
    first = book.of("0x0")
    for number in range(10 * KEPT):
        book.of(f"0x{number}")
        assert book.of("0xsponsor") is sponsor
    assert len(book) == KEPT
    assert book.of(f"0x{10 * KEPT - 1}") is book.of(f"0x{10 * KEPT - 1}")
    assert book.of("0x0") is not first


async def test_a_sender_in_use_is_never_forgotten() -> None:
    book = NonceBook(NO_NODE)
    held = book.of("0xheld")
    async with held.lock:
        for number in range(2 * KEPT):
            book.of(f"0x{number}")
        assert book.of("0xheld") is held
