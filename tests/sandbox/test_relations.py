"""Pairs of sources that must behave alike: what is made of a source, and that it does."""

from __future__ import annotations

import pytest
import wasmtime

from fleet.devnet.compiler.rustlite.compile import compile_source
from sandbox.fuzz.relations import related, variants
from sandbox.judging.behaviour import behaviour
from tests.devnet.corpus import CASES

STEP = "fn f(t: i32) -> i32 { let mut step = 2; step += t; step }"


def by_relation(source: str) -> dict[str, str]:
    """The first variant of each relation."""
    return {one.relation: one.source for one in reversed(variants(source))}


def test_variants_of_every_program_of_the_corpus_behave_like_it() -> None:
    compared: dict[str, int] = {}
    for case in CASES:
        source = case.source.decode()
        done = behaviour(compile_source(case.source))
        for one in variants(source):
            assert behaviour(compile_source(one.source.encode())) == done, (case.id, one)
            assert related(source, one.source) == related(one.source, source) == one.relation
            compared[one.relation] = compared.get(one.relation, 0) + bool(done)
    assert min(compared[name] for name in ("renamed locals", "dead code", "reordered items")) >= 10


@pytest.mark.parametrize(
    ("source", "renamed"),
    [
        (STEP, "fn f(t: i32) -> i32 { let mut zq0 = 2; zq0 += t; zq0 }"),
        ("fn f() { let a: i32 = 1; } // a", "fn f() { let zq0: i32 = 1; } // a"),
        ("export function f(): i32 { const a = 1; return a + 1; }", None),
        ("let a = 1; function f() { return a; }", ""),  # of the file, perhaps exported
        ("fn f() { let a = 1; b.a; }", ""),  # a member has this name
        ("fn f() { let a = 1; a(); }", ""),
        ('fn f() { let a = 1; log("{a}"); }', ""),
        ("function f() { let a = 1; g({a}); }", ""),  # the name of a property as well
        ("fn a() { let a = 1; }", ""),
        ("struct S { a: i32 } fn f() { let a = 1; }", ""),
        (
            "(module (func (param $n i32) (result i32) (local.get $n)))",
            "(module (func (param $zq0 i32) (result i32) (local.get $zq0)))",
        ),
        ("x = 1", ""),
        ("", ""),
    ],
)
def test_only_certain_locals_are_renamed(source: str, renamed: str | None) -> None:
    made = by_relation(source).get("renamed locals", "")
    assert made == renamed if renamed is not None else "zq0" in made


def test_locals_get_short_capital_and_long_names() -> None:
    source = "fn f() { let a = 1; let b = a; }"
    long = [f"_{'zq'.ljust(68, 'o')}{at}" for at in range(2)]
    assert len(long[0]) == 70
    assert [one.source for one in variants(source) if one.relation == "renamed locals"] == [
        "fn f() { let zq0 = 1; let zq1 = zq0; }",
        "fn f() { let Zqa = 1; let Zqb = Zqa; }",
        f"fn f() {{ let {long[0]} = 1; let {long[1]} = {long[0]}; }}",
    ]


@pytest.mark.parametrize(
    ("source", "reordered"),
    [
        ("const A: i32 = 1; fn f() {} fn g() {}", "const A: i32 = 1;\nfn g() {}\nfn f() {}"),
        (
            "export function f(): void {} function g(): void {}",
            "function g(): void {}\nexport function f(): void {}",
        ),
        ('fn f() { log("x"); } fn g() {}', ""),
        ("fn f() {} mod m { } fn g() {}", ""),
        ("fn f() {} macro", ""),
        ("let x = f(); function f() {} function g() {}", ""),
        ("fn f() {}", ""),
    ],
)
def test_only_functions_without_data_are_reordered(source: str, reordered: str) -> None:
    assert by_relation(source).get("reordered items", "") == reordered


def test_a_function_that_nothing_calls_calls_every_other_one() -> None:
    source = "fn g(a: i32, p: bool,) -> i32 { a }\nfn u() { }\nfn v(e: E) -> E { e }"
    calls = f"{source}\nfn zq7() {{ let _ = g(1, true); u(); }}\n"
    assert related(source, calls) == related(calls, source) == "dead code"
    assert not any("zq7" in one.source for one in variants("fn v(e: E) -> E { e }"))


def test_a_function_that_nothing_calls_is_dead_code() -> None:
    source = '(module (func (export "f") (result i32) (i32.const 3)))'
    dead = by_relation(source)["dead code"]
    assert "$zqdead" in dead
    assert behaviour(bytes(wasmtime.wat2wasm(dead))) == behaviour(bytes(wasmtime.wat2wasm(source))) != ""
    assert "dead code" not in by_relation("(module) (module)")


@pytest.mark.parametrize("variant", ["fn f(t: i32) -> i32 { t }", STEP.replace("2", "3"), STEP, ""])
def test_other_sources_are_not_related(variant: str) -> None:
    assert related(STEP, variant) == ""


def test_a_source_that_is_too_large_or_has_our_names_has_no_variants() -> None:
    assert variants(STEP + " " * 70_000) == ()
    assert variants(STEP.replace("step", "zqdead")) == ()
