"""Clean errors: the exact code, and the exact span in bytes (marked « » in the source)."""

from __future__ import annotations

import pytest

from fleet.devnet.compiler.rustlite.compile import compile_source
from fleet.devnet.compiler.rustlite.diagnostic import CompileError, render

DEEP = 97
ERRORS = (
    ("LH0003", "fn f() { «é» }"),
    ("LH0003", "fn f() { «@» }"),
    ("LH0004", 'fn f() { log(«"abc); }'),
    ("LH0004", "fn f() { «/* abc }"),
    ("LH0004", "fn f() -> i32 { «'» }"),
    ("LH0005", "fn f() -> i32 { «'ab'» }"),
    ("LH0005", r"fn f() -> i32 { «'\q'» }"),
    ("LH0005", r"fn f() -> i32 { «'\0\'» }"),
    ("LH0005", r"fn f() -> i32 { «'\xff'» }"),
    ("LH0005", r"fn f() -> i32 { «'\u{d800}'» }"),
    ("LH0006", "fn f() -> i32 { «2147483648» }"),
    ("LH0006", "fn f() -> i32 { «-2147483649» }"),
    ("LH0006", "fn f() -> i32 { «0x1_0000_0000» }"),
    ("LH0006", "fn f() -> i64 { «9223372036854775808» }"),
    ("LH0006", "fn f() -> i64 { «" + "9" * 5000 + "» }"),
    ("LH0006", "fn f() -> f32 { «1e39» }"),
    ("LH0101", "fn f() -> «{» 1 }"),
    ("LH0101", "fn f() -> bool { 1 < 2 «<» 3 }"),
    ("LH0101", "fn f() { let x = 1 «}»"),
    ("LH0101", "«let» x = 1;"),
    ("LH0101", "fn f(a: i32,«,») {}"),
    ("LH0101", "fn «if»() {}"),
    ("LH0102", "fn f() {«»"),
    ("LH0102", "fn f() -> i32 { 1 + («»"),
    ("LH0201", "fn f() {} fn «f»() {}"),
    ("LH0201", "fn f() {} const «f»: i32 = 1;"),
    ("LH0201", "fn «log»() {}"),
    ("LH0201", "enum E { A, «A» }"),
    ("LH0201", "enum E {} enum «E» {}"),
    ("LH0201", "fn f(a: i32, «a»: i32) {}"),
    ("LH0202", "fn f() -> i32 { «y» }"),
    ("LH0202", "fn f() -> i32 { { let y = 1; } «y» }"),
    ("LH0202", "const A: i32 = «B»; const B: i32 = 1;"),
    ("LH0202", "const A: i32 = «A»;"),
    ("LH0202", "fn f() { «x» = 1; }"),
    ("LH0203", "fn f() { «g()» }"),
    ("LH0204", "fn f() -> i32 { «true» }"),
    ("LH0204", "fn f() -> i32 «{ 1; }»"),
    ("LH0204", "fn f() -> i32 { if true { 1 } else { «2.0» } }"),
    ("LH0204", "fn f(a: i32) { if «a» {} }"),
    ("LH0204", "fn f(a: i32) { if true { «a» } }"),
    ("LH0204", "fn f(a: i32) -> i32 { «if a > 0 { 1 } else { 2 }» 3 }"),
    ("LH0204", "fn f(a: i32, b: i64) -> i64 { a + «b» }"),
    ("LH0204", "fn g(a: i64) {} fn f(a: i32) { g(«a») }"),
    ("LH0204", "fn f() { let x: f32 = «1»; }"),
    ("LH0204", "fn f() -> i32 { «return» }"),
    ("LH0204", "fn f(a: i32) { match a { «true» => {}, _ => {} } }"),
    ("LH0204", "const A: i32 = «1.5»;"),
    ("LH0205", "fn f(a: bool) -> bool { «a + a» }"),
    ("LH0205", "fn f(a: f32) -> f32 { «a % a» }"),
    ("LH0205", "fn f(a: bool) -> bool { «-a» }"),
    ("LH0205", "fn f(a: i32) -> bool { «a && a» }"),
    ("LH0205", "fn f(a: f32) { match «a» { _ => {} } }"),
    ("LH0206", "fn f() { let x = 1; «x» = 2; }"),
    ("LH0206", "fn f(x: i32) { «x» += 2; }"),
    ("LH0206", "const X: i32 = 1; fn f() { «X» = 2; }"),
    ("LH0207", "fn g(a: i32) {} fn f() { «g()» }"),
    ("LH0207", 'fn f() { «log("a", 1)» }'),
    ("LH0208", "fn f() { «break»; }"),
    ("LH0208", "fn f() { loop { while { «continue» } { } } }"),
    ("LH0209", "fn f(a: i32) { «match a { 1 => {} }» }"),
    ("LH0209", "enum E { A, B } fn f(a: E) { «match a { E::A => {} }» }"),
    ("LH0209", "fn f(a: bool) { «match a { true => {} }» }"),
    ("LH0210", "fn g() -> i32 { 1 } const A: i32 = «g()»;"),
    ("LH0210", "const A: «()» = ();"),
    ("LH0211", "const A: i32 = «2147483647 + 1»;"),
    ("LH0211", "const A: i32 = «1 / 0»;"),
    ("LH0211", "const A: i32 = «1 << 32»;"),
    ("LH0213", "fn «f»(" + ",".join(f"a{i}: i32" for i in range(256)) + ") {}"),
    ("LH0214", "fn f(a: «u8») {}"),
    ("LH0214", "fn f() -> i32 { «X::A» as i32 }"),
    ("LH0215", "enum E { A } fn f() -> E { «E::B» }"),
    ("LH0216", "fn f(a: i32) -> bool { «a as bool» }"),
    ("LH0217", "fn f(a: i32) { match a { «n» => {} } }"),
    ("LH0218", 'fn f() { let s = «"a"»; }'),
    ("LH0218", 'const S: &str = "a"; fn f() { «S»; }'),
    ("LH0218", "fn f(s: «&str») {}"),
)


def refused(source: bytes) -> CompileError:
    with pytest.raises(CompileError) as caught:
        compile_source(source)
    return caught.value


@pytest.mark.parametrize(("code", "marked"), ERRORS, ids=lambda value: value[:50])
def test_error_has_code_and_span(code: str, marked: str) -> None:
    before, _, rest = marked.partition("«")
    inside, closed, after = rest.partition("»")
    end = before + inside if closed else before + rest
    error = refused((before + inside + after).encode())
    assert (error.code, error.span) == (code, (len(before.encode()), len(end.encode())))


def test_span_counts_bytes_not_characters() -> None:
    source = "// é😀\nfn f() -> i32 { y }".encode()
    assert refused(source).span == (source.index(b"y"), source.index(b"y") + 1)


def test_source_must_be_utf8() -> None:
    error = refused(b"// \xc3\x28")
    assert (error.code, error.span) == ("LH0001", (3, 4))


def test_source_has_a_cap() -> None:
    assert compile_source(b"//" + b" " * 65_534).startswith(b"\0asm")
    assert refused(b"//" + b" " * 65_535).code == "LH0002"


@pytest.mark.parametrize(
    ("opening", "closing"),
    [("(", ")"), ("-", ""), ("{", "}"), ("1 + (", ")"), ("if true {", "} else { 0 }"), ("!(", ")")],
)
def test_nesting_has_a_cap(opening: str, closing: str) -> None:
    def program(levels: int) -> bytes:
        return f"fn f(x: i32) -> i32 {{ {opening * levels} x {closing * levels} }}".encode()

    assert compile_source(program(30)).startswith(b"\0asm")
    assert refused(program(DEEP)).code == "LH0107"
    assert refused(program(6000)).code in ("LH0107", "LH0002")


def test_long_chains_end_cleanly() -> None:
    assert refused(b"fn f() -> i32 { " + b"1 + " * 9000 + b"1 }").code == "LH0107"
    assert refused(b"fn f(a: i32) { " + b"if a > 0 {} else " * 2000 + b"{} }").code == "LH0107"


def test_line_is_one_printable_line() -> None:
    source = b"\n\nfn f() { 'a\x1b' }"
    assert render(refused(source), source, frozenset()).splitlines() == [
        "LH0005: a char literal holds exactly one character (line 3, at `'a '`) [11..15]"
    ]


def test_snippet_is_cut_between_characters() -> None:
    source = ("fn f() { log(" + '"' + "é" * 40).encode()
    line = render(refused(source), source, frozenset())
    assert line.endswith('at `"' + "é" * 15 + f"`) [13..{len(source)}]")
