"""The compiler in process: what programs mean, and that modules are valid."""

from __future__ import annotations

import pytest
import wasmtime

from fleet.devnet.compiler.rustlite.compile import compile_source
from tests.devnet.corpus import CASES, Case


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_program_means_what_rust_says(case: Case, engine: wasmtime.Engine) -> None:
    module = wasmtime.Module(engine, compile_source(case.source))
    store = wasmtime.Store(engine)
    function = wasmtime.Instance(store, module, []).exports(store)["f"]
    assert isinstance(function, wasmtime.Func)
    for args, result in case.runs:
        assert function(store, *args) == result


def test_corpus_is_read() -> None:
    assert len(CASES) >= 70
    assert all(case.runs for case in CASES)


def test_division_traps_as_the_platform_does(engine: wasmtime.Engine) -> None:
    module = wasmtime.Module(engine, compile_source(b"pub fn f(a: i32) -> i32 { 1 / a }"))
    store = wasmtime.Store(engine)
    function = wasmtime.Instance(store, module, []).exports(store)["f"]
    assert isinstance(function, wasmtime.Func)
    with pytest.raises(wasmtime.Trap):
        function(store, 0)


@pytest.mark.parametrize("end", ["return", "break", "continue", "loop {}", "{ return; }"])
@pytest.mark.parametrize("kind", ["i32", "i64", "f32", "bool", "()"])
def test_an_argument_that_never_ends_fits_every_parameter(
    end: str, kind: str, engine: wasmtime.Engine
) -> None:
    source = f"fn c(a: i64, x: {kind}, y: f32) {{}}\nfn frame() {{ while true {{ c(1, {end}, 1.0); }} }}"
    wasmtime.Module.validate(engine, compile_source(source.encode()))
