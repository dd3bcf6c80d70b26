"""Event streams: strict, and the same however the bytes arrive."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.agents.sse import MAX_EVENT, Decoder, StreamFault


def play(chunks: list[bytes]) -> tuple[list[Any], str]:
    decoder = Decoder()
    try:
        for chunk in chunks:
            decoder.feed(chunk)
        decoder.close()
    except StreamFault as fault:
        return decoder.events, str(fault)
    return decoder.events, ""


@pytest.mark.parametrize(
    ("stream", "events", "fault"),
    [
        (b"", [], ""),
        (b'data: {"a":1}\n\n', [{"a": 1}], ""),
        (b'data:{"a":1}\r\n\r\ndata: 2\r\r', [{"a": 1}, 2], ""),
        (b": note\n\ndata: 1\ndata: \n\n", [1], ""),
        (b"event: x\nid: 1\nretry: 5\ndata: [1,\ndata: 2]\n\n", [[1, 2]], ""),
        (b"data: [DONE]\n\n", [], ""),
        (b"\xef\xbb\xbfdata: 1\n\n", [1], ""),
        ('data: "ü€😀"\n\n'.encode(), ["ü€😀"], ""),
        (b"data: 1\n\ndata: 2\n", [1], "the stream ends inside an event"),
        (b"data: 1\n\ndata: 2", [1], "the stream ends inside an event"),
        (b"data: {\n\n", [], "an event that is not JSON: '{'"),
        (b'data: 1\n\ndata: "\xe2\x82"\n\n', [1], "not UTF-8"),
        (b'data: "\xe2\x82', [], "not UTF-8"),
        (b'data: 1\n\n{"a":1}\n\n', [1], "a line that is not a field: '{\"a\":1}'"),
        (b"data: 1\n\n\n\n", [1], ""),
        (b"data\n\n", [], "an event that is not JSON: ''"),
    ],
)
def test_streams(stream: bytes, events: list[Any], fault: str) -> None:
    assert play([stream]) == (events, fault)


def test_an_event_without_end_is_a_fault() -> None:
    assert play([b"data: " + b"x" * MAX_EVENT]) == ([], f"an event of more than {MAX_EVENT} characters")


PIECES = st.sampled_from(
    [
        b"data: 1",
        b'data: {"a":"\xe2\x82\xac"}',
        b"\n",
        b"\r",
        b"\r\n",
        b": c",
        b"data:",
        b"\xff",
        b"x",
        b"event: e",
        b"\n\n",
    ]
)


@given(st.lists(PIECES, max_size=20).map(b"".join), st.lists(st.integers(0, 200), max_size=12))
def test_cuts_do_not_matter(stream: bytes, cuts: list[int]) -> None:
    places = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    chunks = [stream[a:b] for a, b in itertools.pairwise(places)]
    assert play(chunks) == play([stream])
    assert play([bytes([byte]) for byte in stream]) == play([stream])
