"""A loader's first questions: each has modules that answer it wrongly."""

from __future__ import annotations

from random import Random

from sandbox.fuzz.inputs import table
from sandbox.fuzz.inputs.exports import EXPORTS, KINDS, export_mutation, names
from sandbox.fuzz.inputs.wasm_module import MAGIC, WasmSection, parse, read

MODULES = table.modules()
MADE = [one for seed in range(6000) if (one := export_mutation(MODULES, Random(seed))) is not None]


def sections() -> list[WasmSection]:
    return [
        one for module in MADE if (found := parse(module)) for one in found.sections if one.kind == EXPORTS
    ]


def test_exports_are_read_with_name_kind_and_index() -> None:
    found = parse(MODULES[3])
    assert found is not None
    body = next(one.body for one in found.sections if one.kind == EXPORTS)
    assert names(body) == [(b"memory", 2, 0), (b"frame", 0, 1)]
    assert names(body[:-1]) == [(b"memory", 2, 0)]
    assert names(b"") == names(b"\x05") == []


def test_heads_are_cut_and_of_other_versions() -> None:
    heads = {one[:8] for one in MADE}
    assert {MAGIC[:size] for size in range(1, 9)} <= heads
    assert any(one[:4] == MAGIC[:4] and len(one) == 8 and one != MAGIC for one in heads)


def test_entries_are_of_every_kind_and_past_the_end() -> None:
    found = [entry for one in sections() for entry in names(one.body)]
    assert set(KINDS) <= {kind for name, kind, _ in found if name == b"frame"}
    assert {0, 1, 2, 3} <= {index for _, kind, index in found if kind == 0}
    assert max(index for *_, index in found) > 1 << 31
    assert max(len(name) for name, *_ in found) > 16_000
    assert b"" in {name for name, *_ in found}


def test_counts_and_lengths_are_claimed_that_are_not_there() -> None:
    bodies = [one.body for one in sections()]
    claimed = {count[0] for body in bodies if (count := read(body, 0))}
    assert {0, 1, 64, 1001, 65_536, 1 << 31, (1 << 32) - 1} <= claimed
    assert any(body == b"\0" for body in bodies)
    bare = {(one.kind, one.body) for module in MADE if (found := parse(module)) for one in found.sections}
    assert {(kind, body) for kind in range(16) for body in (b"", b"\0")} - bare == set()


def test_what_is_no_module_has_no_exports() -> None:
    assert export_mutation((b"text",), Random(1)) is None
    assert export_mutation((), Random(1)) is None
