"""The compiler as the platform runs it: a process with bytes in, bytes out and an exit status."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import wasmtime

import fleet.devnet.compiler.rustlite as rustlite
from fleet.devnet.compiler.rustlite.compile import compile_source
from fleet.devnet.compiler.rustlite.generate import PARSER, build, header
from fleet.devnet.compiler.rustlite.loader import entry
from fleet.devnet.compiler.rustlite.parse import parse
from tests.devnet.corpus import CASES

FOLDER = Path(rustlite.__file__).parent
ROOT = Path(__file__).parents[2]
ENTRY = b"fn frame(t: i32) -> i32 { t }"
HANG = b"fn frame(t: i32) -> i32 { loop { if t > 0 { break; } } t }"
NEGATED = b"fn frame(t: i32) -> i32 { -(if t > 0 { 1 } else { 2 }) }"
AFTER_CONST = b"const W: i32 = 256; fn frame(t: i32) -> i32 { t + W }"
OVERLONG = b"\0asm\x01\0\0\0\x07\x7f\x00"
ALL = "compiler-panic,missing-entry,loader-crash,invalid-wasm,compiler-hang"


def run(source: bytes, *args: str, timeout: float = 20.0) -> subprocess.CompletedProcess[bytes]:
    argv = [sys.executable, "-I", "-B", str(FOLDER), *args]
    return subprocess.run(argv, input=source, capture_output=True, timeout=timeout, check=False, cwd="/tmp")


def valid(engine: wasmtime.Engine, module: bytes) -> bool:
    try:
        wasmtime.Module.validate(engine, module)
    except wasmtime.WasmtimeError:
        return False
    return True


def test_compiles_to_stdout() -> None:
    done = run(ENTRY)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == compile_source(ENTRY)
    assert run(done.stdout, "--entry").stdout == b"frame\n"


def test_refuses_on_one_line() -> None:
    done = run("// é\nfn frame() -> i32 { y }".encode())
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr == b"LH0202: no value named y in this scope (line 2, at `y`) [26..27]\n"


def test_program_without_entry_compiles() -> None:
    done = run(b"fn helper(n: i32) -> i32 { n + 1 }")
    assert done.returncode == 0
    assert run(done.stdout, "--entry").stdout == b"no entry\n"


def test_program_above_the_publish_cap_compiles(engine: wasmtime.Engine) -> None:
    done = run(b'fn frame() { log("' + b"x" * 20_000 + b'"); }')
    assert (done.returncode, len(done.stdout) > 16_384, valid(engine, done.stdout)) == (0, True, True)


def test_bad_usage_names_the_defects() -> None:
    done = run(b"", "--defects", "nope")
    assert done.returncode == 2
    assert b"invalid-wasm" in done.stderr


@pytest.mark.parametrize("name", ["frame", "render"])
def test_entry_functions_are_exported_without_pub(name: str, engine: wasmtime.Engine) -> None:
    source = f"fn {name}(t: i32) -> i32 {{ t }} pub fn other() {{}} fn hidden() {{}}"
    module = wasmtime.Module(engine, compile_source(source.encode()))
    assert [export.name for export in module.exports] == [name, "other"]
    assert entry(compile_source(source.encode()), frozenset()) == name


def test_log_reaches_the_host(engine: wasmtime.Engine) -> None:
    source = 'const T: &str = "é\\n"; fn frame() { log("one"); log(T); log("one"); }'
    store = wasmtime.Store(engine)
    said: list[bytes] = []

    def log(at: int, size: int) -> None:
        assert isinstance(memory, wasmtime.Memory)
        said.append(bytes(memory.read(store, at, at + size)))

    host = wasmtime.Func(store, wasmtime.FuncType([wasmtime.ValType.i32()] * 2, []), log)
    module = wasmtime.Module(engine, compile_source(source.encode()))
    exports = wasmtime.Instance(store, module, [host]).exports(store)
    memory, frame = exports["rustlite.memory"], exports["frame"]
    assert isinstance(frame, wasmtime.Func)
    frame(store)
    assert said == [b"one", "é\n".encode(), b"one"]


@pytest.mark.parametrize(
    ("module", "answer"),
    [
        (b"", "no entry"),
        (b"\0asm", "no entry"),
        (b"\0asm\x01\0\0\0\x07\xff", "no entry"),
        (OVERLONG, "no entry"),
        (b"\0asm\x01\0\0\0\x07\xff\xff\xff\xff\xff\xff", "no entry"),
        (b"\0asm\x01\0\0\0\x07\x0a\x01\x06render\x00\x00", "render"),
        (b"\0asm\x01\0\0\0\x07\x0a\x01\x06render\x03\x00", "no entry"),
        (b"\0asm\x01\0\0\0\x07\x0b\x01\x06render\x00\x00\x00", "no entry"),
        (b"\0asm\x01\0\0\0\x07\x0a\x01\x07render\x00\x00", "no entry"),
        (b"\0asm\x01\0\0\0\x07\x0a\x01\x06render\x00\x00\x07", "no entry"),
        (b"\0asm\x02\0\0\0\x07\x0a\x01\x06render\x00\x00", "no entry"),
        (b"\0asm\x01\0\0\0\x00\x02\x01x\x07\x12\x02\x06render\x00\x00\x05frame\x00\x00", "frame"),
    ],
)
def test_loader_answers_for_any_bytes(module: bytes, answer: str) -> None:
    assert entry(module, frozenset()) == answer


def test_loader_survives_every_truncation() -> None:
    module = compile_source(AFTER_CONST)
    answers = {entry(module[:cut], frozenset()) for cut in range(len(module))}
    assert answers <= {"no entry", "frame"}
    assert entry(module[: module.index(b"frame") + 2], frozenset()) == "no entry"


@pytest.mark.parametrize("source", ["// é\nfn f() -> i32 { y }", "fn f() { let größe = 1; }"])
def test_defect_panic_on_an_error_after_a_wide_character(source: str) -> None:
    done = run(source.encode(), "--defects", "compiler-panic")
    assert (done.returncode, done.stderr[:35]) == (101, b"thread 'main' panicked at slice_str")
    assert run(source.encode()).returncode == 1


def test_defect_panic_needs_a_wide_character_before_the_error() -> None:
    assert run("fn f() -> i32 { y } // é".encode(), "--defects", "compiler-panic").returncode == 1
    assert run("fn f() -> i32 { 'é' }".encode(), "--defects", "compiler-panic").returncode == 0


def test_defect_missing_entry_after_a_const(engine: wasmtime.Engine) -> None:
    with_it = compile_source(AFTER_CONST, frozenset({"missing-entry"}))
    assert (valid(engine, with_it), entry(with_it, frozenset())) == (True, "no entry")
    assert entry(compile_source(ENTRY, frozenset({"missing-entry"})), frozenset()) == "frame"
    assert entry(compile_source(AFTER_CONST), frozenset()) == "frame"


@pytest.mark.parametrize("module", [OVERLONG, b"\0asm\x01\0\0\0\x07\xff"])
def test_defect_loader_crash(module: bytes) -> None:
    assert run(module, "--entry", "--defects", "loader-crash").returncode == -6
    assert run(b"\0asm", "--entry", "--defects", "loader-crash").stdout == b"no entry\n"
    done = run(module, "--entry")
    assert (done.returncode, done.stdout) == (0, b"no entry\n")


def test_defect_invalid_wasm_for_a_negated_if(engine: wasmtime.Engine) -> None:
    done = run(NEGATED, "--defects", "invalid-wasm")
    assert (done.returncode, valid(engine, done.stdout)) == (0, False)
    assert valid(engine, run(NEGATED).stdout)
    assert valid(engine, run(b"fn frame(t: i32) -> i32 { -t }", "--defects", "invalid-wasm").stdout)


def test_defect_hang_on_break_in_if_in_loop() -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        run(HANG, "--defects", "compiler-hang", timeout=1.0)
    assert run(HANG).returncode == 0
    assert run(HANG.replace(b"break", b"continue"), "--defects", "compiler-hang").returncode == 0


def test_defects_off_and_unrelated_programs_are_untouched() -> None:
    assert run(ENTRY, "--defects", ALL).stdout == compile_source(ENTRY)


def test_every_import_of_the_compiler_is_its_own_or_the_jails() -> None:
    code = (
        "import sys; sys.path[:0] = sys.argv[1:]; import rustlite.cli, rustlite.compile;print(*sys.modules)"
    )
    argv = [sys.executable, "-I", "-S", "-c", code, str(FOLDER.parent)]
    loaded = subprocess.run(argv, capture_output=True, check=True, text=True).stdout.split()
    assert {name for name in loaded if name.split(".")[0] in ("fleet", "lark", "wasmtime", "pickle")} == set()


def test_the_built_parser_is_that_of_the_grammar() -> None:
    assert PARSER.read_text("utf-8").startswith(header()), "run `make setup`"
    lark = build()
    for case in CASES:
        assert parse(case.source).pretty() == lark.parse(case.source.decode("latin-1")).pretty()


def test_an_unbuilt_parser_is_no_panic_and_names_the_remedy(tmp_path: Path) -> None:
    folder = shutil.copytree(
        FOLDER, tmp_path / "rustlite", ignore=shutil.ignore_patterns("_parser*", "__pycache__")
    )
    argv = [sys.executable, "-I", "-S", "-B", str(folder)]
    done = subprocess.run(argv, input=ENTRY, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (127, b"")
    assert (
        done.stderr
        == b"rustlite: No module named 'rustlite._parser': `make setup`, or pip install 'qa-fleet[devnet]'\n"
    )
