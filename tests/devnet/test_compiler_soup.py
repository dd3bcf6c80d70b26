"""Properties: whatever comes in, the compiler accepts with valid wasm or refuses inside the source."""

from __future__ import annotations

import wasmtime
from hypothesis import given, settings
from hypothesis import strategies as st

from fleet.devnet.compiler.rustlite.compile import compile_source
from fleet.devnet.compiler.rustlite.diagnostic import CompileError, render
from fleet.devnet.compiler.rustlite.loader import entry
from tests.devnet.corpus import CASES

WORDS = """
fn f a b x frame render log E A B i32 i64 f32 bool const let mut pub enum if else while loop match return
continue true false _ as ( ) { } ( ) { } , ; : :: -> => = == != < > <= >= && || ! + - * / % & | ^ << >> += <<=
0 1 2 7 0xff 0xffffffff 2147483648 9999999999999999999 1.5 1e39 'a' 'é' '\\n' "s" "é" // /* */ é @ " '
"""
TOKENS = [*WORDS.split(), "\n"]
OPERATORS = ["+", "-", "*", "/", "&", "|", "^", "<<", ">>", "==", "<", "&&", "||"]
ATOMS = [
    "1",
    "a",
    "b",
    "true",
    "1.5",
    "-7",
    "E::A",
    "g(a)",
    "break",
    "(break)",
    "return",
    "(return)",
    "continue",
    "'x'",
    "()",
]
SOURCES = [case.source.decode() for case in CASES]
NONE: frozenset[str] = frozenset()

EXPRESSIONS = st.recursive(
    st.sampled_from(ATOMS),
    lambda e: st.one_of(
        st.builds("({} {} {})".format, e, st.sampled_from(OPERATORS), e),
        st.builds("if {} {{ {} }} else {{ {} }}".format, e, e, e),
        st.builds("{{ let b = {}; {} }}".format, e, e),
        st.builds("match {} {{ 1 => {}, -2 => {}, _ => {} }}".format, e, e, e, e),
        st.builds("loop {{ if {} {{ {}; }} }}".format, e, e),
        st.builds("{{ while {} {{ {}; }} {} }}".format, e, e, e),
        st.builds("-({})".format, e),
        st.builds("(({}) as {})".format, e, st.sampled_from(["i32", "i64", "f32"])),
    ),
    max_leaves=12,
)


def judge(engine: wasmtime.Engine, source: bytes) -> bool:
    """Whether it was accepted; fails the test when the outcome is neither clean nor valid."""
    try:
        module = compile_source(source)
    except CompileError as error:
        return _is_clean(error, source)
    wasmtime.Module.validate(engine, module)
    assert entry(module, NONE) in ("frame", "render", "no entry")
    return True


def _is_clean(refusal: CompileError, source: bytes) -> bool:
    start, end = refusal.span
    assert 0 <= start <= end <= len(source)
    assert render(refusal, source, NONE).endswith(f"[{start}..{end}]")
    return False


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(TOKENS), max_size=40))
def test_token_soup(engine: wasmtime.Engine, tokens: list[str]) -> None:
    judge(engine, " ".join(tokens).encode())


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(SOURCES), st.data())
def test_mutated_programs(engine: wasmtime.Engine, source: str, data: st.DataObject) -> None:
    words = source.split(" ")
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(words) - 1))
        words[at] = data.draw(st.sampled_from(TOKENS))
    judge(engine, " ".join(words).encode())


@settings(max_examples=200, deadline=None)
@given(EXPRESSIONS, st.sampled_from(["i32", "i64", "f32", "bool", "()"]))
def test_typed_nests(engine: wasmtime.Engine, body: str, kind: str) -> None:
    items = "enum E { A } fn g(a: i32) -> i32 { a }"
    judge(engine, f"{items} fn frame(a: i32, b: i64) -> {kind} {{ {body} }}".encode())


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes(engine: wasmtime.Engine, source: bytes) -> None:
    judge(engine, source)


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=60), st.sampled_from(SOURCES), st.integers(0, 80))
def test_loader_takes_any_bytes(noise: bytes, source: str, at: int) -> None:
    module = compile_source(source.encode())
    for hostile in (noise, b"\0asm\x01\0\0\0" + noise, module[:at] + noise + module[at:]):
        assert entry(hostile, NONE) in ("frame", "render", "no entry")
