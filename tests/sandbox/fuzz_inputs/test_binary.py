"""Mutation of modules: sections and numbers are found, and every edge is reached."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox.fuzz.inputs import binary, table
from sandbox.fuzz.inputs.wasm_module import MAGIC, WasmSection, leb, parse, read

MODULES = table.modules()


@pytest.mark.parametrize("module", MODULES, ids=range(len(MODULES)))
def test_a_module_is_its_sections(module: bytes) -> None:
    wasmtime = pytest.importorskip("wasmtime")
    wasmtime.Module.validate(wasmtime.Engine(), module)
    found = parse(module)
    assert found is not None
    assert found.raw == module
    assert found.rest == b""
    assert [one.kind for one in found.sections if one.kind] == sorted(
        (one.kind for one in found.sections if one.kind), key=lambda kind: (kind, 9.5)[kind == 12]
    )


@given(st.binary(max_size=60))
@settings(max_examples=80, deadline=None, database=None)
def test_any_bytes_after_the_head_come_back(data: bytes) -> None:
    found = parse(MAGIC + data)
    assert found is not None
    assert found.raw == MAGIC + data


def test_a_section_that_leaves_the_module_is_left_over() -> None:
    found = parse(MAGIC + b"\x01\x01\x00" + b"\x07\xff")
    assert found is not None
    assert (found.sections, found.rest) == ((WasmSection(1, b"\x01", b"\x00"),), b"\x07\xff")
    assert parse(b"text") is None


@given(st.integers(0, 2**64 - 1), st.integers(0, 10))
@settings(max_examples=80, deadline=None, database=None)
def test_numbers_come_back_overlong_or_not(value: int, width: int) -> None:
    written = leb(value, width)
    assert len(written) >= width
    assert read(written, 0) == (value, len(written))
    assert read(written[:-1], 0) is None


def test_every_section_is_mutated_in_each_way() -> None:
    module, chance = MODULES[1], Random(1)
    whole = parse(module)
    assert whole is not None
    made = {binary.wasm_mutation((module,), chance) or b"" for _ in range(20_000)}
    ends = [len(MAGIC)]
    for one in whole.sections:
        ends.append(ends[-1] + len(one.raw))
    assert {module[:end] for end in ends[:-1]} <= made  # cut at each boundary
    for at, one in enumerate(whole.sections):
        start = ends[at]
        head, tail = module[:start], module[ends[at + 1] :]
        assert head + bytes([one.kind]) + leb(len(one.body), 5) + one.body + tail in made
        assert head + bytes([one.kind]) + leb(0xFFFF_FFFF) + one.body + tail in made
        assert head + one.raw + one.raw + tail in made
        assert head + tail in made
        assert head + bytes([one.kind]) + b"\0" + tail in made


def test_a_name_that_is_not_utf8_keeps_its_section_whole() -> None:
    made = [binary.wasm_mutation((MODULES[1],), Random(seed)) or b"" for seed in range(3000)]
    bad = [one for one in made if b"fram\xff" in one]
    assert bad
    found = [parse(one) for one in bad]
    assert any(one is not None and one.rest == b"" and len(one.sections) == 4 for one in found)


def test_what_is_not_a_module_is_mutated_by_bytes_only() -> None:
    assert binary.wasm_mutation((b"data: x\n\n",), Random(1)) is None
    made = {binary.byte_mutation((b"data: x\n\n",), Random(seed)) for seed in range(300)}
    assert len(made) > 200
