"""Every decoder of hostile bytes refuses what it does not accept, in its own words.

`FUZZ_OWN_SECONDS` (and `FUZZ_OWN_SEED`) search each for that long: `make fuzz-own`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from itertools import islice
from random import Random

import pytest

from tests.decoders.decoders import DECODERS, HostileDecoder
from tests.decoders.mutation import inputs

SECONDS = float(os.environ.get("FUZZ_OWN_SECONDS", "0"))
SEED = os.environ.get("FUZZ_OWN_SEED", "1")
EXECUTIONS = 250
"""Without a time: the same inputs every time."""


@pytest.mark.timeout(SECONDS + 120)
@pytest.mark.parametrize("name", DECODERS)
def test_a_decoder_refuses_in_its_own_words(name: str) -> None:
    decoder = DECODERS[name]
    for data in _chosen(name, decoder):
        if (why := _fault(decoder, data)) is not None:
            pytest.fail(f"{name}: {why[:300]}\non {_smallest(decoder, data)[:2_000]!r}")


def test_each_seed_is_accepted() -> None:
    """Else the search would stay in front of the door."""
    for decoder in DECODERS.values():
        for seed in decoder.seeds:
            try:
                decoder.decode(seed)
            except decoder.refuses as error:
                assert str(error).endswith("m")  # noqa: PT017  # the words of a node whose error it is


def _chosen(name: str, decoder: HostileDecoder) -> Iterator[bytes]:
    found = inputs(decoder.seeds, Random(f"{name} {SEED}"))
    if not SECONDS:
        yield from islice(found, EXECUTIONS)
        return
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        yield next(found)


def _fault(decoder: HostileDecoder, data: bytes) -> str | None:
    """What went wrong, or None."""
    try:
        decoder.decode(data)
    except decoder.refuses:
        return None
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def _smallest(decoder: HostileDecoder, data: bytes) -> bytes:
    """The same fault in fewer bytes: halves, quarters and so on left out."""
    kind, size = str(_fault(decoder, data)).partition(":")[0], len(data)
    while size := size // 2:
        at = 0
        while at < len(data):
            less = data[:at] + data[at + size :]
            if str(_fault(decoder, less)).partition(":")[0] == kind:
                data = less
            else:
                at += size
    return data
