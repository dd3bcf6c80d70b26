"""An item that became confirmed fires once per stage, when nothing holds it back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fleet.store.rows import ItemRow
from fleet.triggers.items import ItemWatch, asked_ident, item_asked, item_key, item_of
from fleet.triggers.model import manual_key
from tests.doubles.triggers import FiringRecorder, MemoryFacts

pytestmark = pytest.mark.anyio
A, B = "aaaaaaaaaaaa", "bbbbbbbbbbbb"
AT = "2026-11-23T07:00:00Z"


def row(name: str, *, severity: str = "high", state: str = "confirmed", since: str = AT) -> ItemRow:
    return ItemRow(
        fingerprint=name,
        state=state,
        severity=severity,
        surface="compiler",
        title="t",
        persona="qa-fuzz",
        repro="qa_compile()",
        names=(name,),
        since=since,
        trusted=True,
    )


class Book(MemoryFacts):
    def __init__(self, *rows: ItemRow) -> None:
        self.rows = list(rows)

    async def items(self, platform: str, states: object = ()) -> list[ItemRow]:  # type: ignore[override]
        return [one for one in self.rows if one.state in states]  # type: ignore[operator]


class Shop:
    def __init__(self, *rows: ItemRow, personas: tuple[str, ...] = ("qa-fix",)) -> None:
        self.book, self.sink, self.why = Book(*rows), FiringRecorder(), ""
        self.watch = ItemWatch("p", self.book, self.sink, lambda event: personas, self._waits)

    async def _waits(self, item: ItemRow) -> str:
        return self.why

    async def looks(self, times: int = 3) -> list[str]:
        for _ in range(times):
            await self.watch.turn()
        return self.sink.keys


async def test_one_item_a_look_the_gravest_first_and_each_once() -> None:
    shop = Shop(row(A, severity="low"), row(B, severity="critical"), row("c" * 12, state="fixed"))
    assert await shop.looks(1) == [item_key("qa-fix", B, AT)]
    assert await shop.looks(4) == [item_key("qa-fix", B, AT), item_key("qa-fix", A, AT)]
    assert (shop.sink.repeats, shop.sink.skips) == ([], [])


async def test_what_has_to_wait_leaves_no_trace_and_fires_later() -> None:
    shop = Shop(row(A))
    shop.why = "the dial says observe"
    assert (await shop.looks(5), shop.sink.skips, dict(shop.book)) == ([], [], {})
    shop.why = ""
    assert await shop.looks() == [item_key("qa-fix", A, AT)]


async def test_an_item_that_comes_back_fires_again() -> None:
    shop, later = Shop(row(A)), "2026-11-24T07:00:00Z"
    await shop.looks()
    shop.book.rows = [row(A, state="fixed", since=later)]
    await shop.looks()
    shop.book.rows = [row(A, state="regression", since=later)]
    assert await shop.looks() == [item_key("qa-fix", A, AT), item_key("qa-fix", A, later)]


async def test_a_stranger_s_item_never_fires_and_nobody_listening_changes_nothing() -> None:
    stranger = replace(row(A), trusted=False)
    assert await Shop(stranger).looks() == []
    shop = Shop(row(A), personas=())
    assert (await shop.looks(), dict(shop.book)) == ([], {})


async def test_a_sink_that_fails_is_tried_again() -> None:
    shop = Shop(row(A))
    fire, shop.sink.fire = shop.sink.fire, broken  # type: ignore[method-assign]
    await shop.looks(1)
    assert (len(shop.sink.skips), dict(shop.book)) == (1, {})
    shop.sink.fire = fire  # type: ignore[method-assign]
    assert await shop.looks() == [item_key("qa-fix", A, AT)]


async def broken(firing: object) -> bool:
    raise RuntimeError("no")


def test_a_key_names_its_item() -> None:
    assert item_of(item_key("qa-fix", A, AT)) == A
    assert item_of(f"qa-fix@{AT}") == item_of("qa-fix@manual:12345678") == ""
    asked = manual_key("qa-fix", asked_ident(B, "0" * 16))
    assert (item_asked(asked), item_of(asked)) == (B, "")
    assert item_asked("qa-fix@manual:proposeb0") == ""
