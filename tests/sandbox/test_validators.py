"""Outputs of accepted sources: what is certainly invalid, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import wasmtime

from sandbox.judging import evm_code
from sandbox.judging.behaviour import behaviour
from sandbox.judging.validators import check, defines, invalid
from sandbox.programs.program import Program

RECORDED = Path(__file__).parent / "executions"
NOWHERE = "the deployment code jumps to a constant place that is not a JUMPDEST"
MISTYPED = bytes.fromhex("0061736d010000000105016000017f030201000a0601040042010b")
"""A function of i32 whose body is an i64."""


def wat(text: str) -> bytes:
    return bytes(wasmtime.wat2wasm(text))


def test_a_module_is_judged_by_an_engine_without_offsets() -> None:
    assert invalid("wasm", MISTYPED) == "type mismatch: expected i32, found i64"
    assert invalid("wasm", b"") == "unexpected end-of-file"
    assert check(Program(), "", wat('(module (func (export "frame")))')).kind == "accepted"


def test_a_module_that_uses_a_proposal_is_valid() -> None:
    shared = bytes.fromhex("0061736d010000000504010301") + b"\x01"  # a shared memory: threads
    assert invalid("wasm", shared) == ""
    wide = wat("(module (memory 1) (memory 1) (func (result i32) i64.const 1 drop i32.const 1))")
    assert invalid("wasm", wide) == ""
    assert invalid("wasm", wide.replace(b"\x42\x01\x1a\x41\x01", b"\x41\x01\x1a\x42\x01")).startswith(
        "type mis"
    )


@pytest.mark.parametrize(
    "source",
    [
        f"(module (func (param {'i32 ' * 1001})))",
        f"(module (func (result {'i32 ' * 1001}) unreachable))",
        f"(module (func (local {'i32 ' * 50_001})))",
        f"(module {'(table 1 funcref)' * 101})",
        f"(module {'(memory 1)' * 101})",
        f'(module (func (export "{"a" * 100_001}")))',
    ],
    ids=["parameters", "results", "locals", "tables", "memories", "name"],
)
def test_a_limit_of_the_engine_is_not_a_fault_of_the_module(source: str) -> None:
    with pytest.raises(wasmtime.WasmtimeError):
        wasmtime.Module.validate(wasmtime.Engine(), wat(source))
    assert invalid("wasm", wat(source)) == ""


def test_a_feature_that_the_engine_does_not_have_is_not_a_fault_of_the_module() -> None:
    legacy = "0061736d01000000010401600000030201000a08010600060019" + "0b0b"  # try catch_all end
    assert invalid("wasm", bytes.fromhex(legacy)) == ""


@pytest.mark.parametrize(
    ("source", "family", "wanted"),
    [
        ("fn frame(t: i32) -> i32 { t }", "rust", True),
        ("const A: i32 = 1;\npub fn frame() { }", "rust", True),
        ("// fn frame() {}\nfn other() {}", "rust", False),
        ('fn other() { let s = "fn frame() {}"; }', "rust", False),
        ("fn outer() { fn frame() {} }", "rust", False),
        ("impl A { fn frame(&self) {} }", "rust", False),
        ("fn frame<T>(t: T) {}", "rust", False),
        ("extern { fn frame(); }", "rust", False),
        ("unsafe fn frame() {}", "rust", False),
        ("function frame(): void {}", "typescript", False),
        ("export function frame(): void {}", "typescript", True),
        ("int frame(int t) { return t; }", "c", True),
        ("int frame(int t);", "c", False),
        ("static int frame(int t) { return t; }", "c", False),
        ("def frame(): pass", "vyper", False),
    ],
)
def test_an_entry_is_required_only_where_one_is_certainly_defined(
    source: str, family: str, wanted: bool
) -> None:
    assert defines(source, ("frame", "render"), family) is wanted
    program = Program(entries=("frame", "render"), family=family)
    empty = check(program, source, wat("(module)")).kind
    assert empty == ("missing-entry" if wanted else "accepted")
    assert check(program, source, wat('(module (func (export "render")))')).kind == "accepted"
    assert check(Program(family=family), source, wat("(module)")).kind == "accepted"


def codes(name: str) -> list[bytes]:
    rows = [json.loads(line) for line in (RECORDED / f"{name}.jsonl").read_text("utf-8").splitlines()]
    outputs = [bytes.fromhex(row["output"]).decode() for row in rows if row["code"] == 0]
    return [
        bytes.fromhex(line.removeprefix("0x")) for text in outputs for line in text.split() if "_" not in line
    ]


@pytest.mark.parametrize("name", ["solc", "solc-ir", "solc-old", "vyper-0.4.3", "vyper-0.3.8"])
def test_a_jump_into_nowhere_is_found_and_real_code_has_none(name: str) -> None:
    broken = 0
    for code in codes(name):
        assert evm_code.bad_jump(code) == ""
        targets = [at for at, byte in enumerate(code) if byte == evm_code.JUMPDEST]
        spoiled = (code[:at] + b"\xfe" + code[at + 1 :] for at in targets[:20])
        broken += any(evm_code.bad_jump(one) for one in spoiled)
    assert broken >= len(codes(name)) * 2 // 3


CALL = "601e" + "5f" * 7 + "f1"
JOINED = "57" + "601656" + "5b610fff90" + "5b" + "601b57" + "56" + "5b5056" + "5b00"
"""What success leaves on the stack is taken off where the flag says so, as `try` does it."""


@pytest.mark.parametrize("asked", ["806011", "801515" + "6013"])
def test_a_branch_on_the_success_of_a_call_settles_the_later_ones(asked: str) -> None:
    code = CALL + asked + JOINED
    if "15" in asked:
        code = code.replace("601e5f", "60205f").replace("6016", "6018").replace("601b", "601d")
    assert invalid("evm", code.encode()) == ""
    assert invalid("evm", code.replace("5b5056", "5b5b56").encode()) == NOWHERE


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("60105600", NOWHERE),
        ("5f6010575b00", ""),  # never taken
        ("60016010575b00", NOWHERE),
        ("6010565b" + "00" * 12 + "5b00", ""),
        (
            "600a56" + "00" * 6 + "605b5b00",
            "the deployment code jumps to a constant place that is not a JUMPDEST",
        ),
        ("345600", ""),  # a computed jump
        ("00601056", ""),  # behind the end
        ("600256", ""),  # old solc fails by it
        ("ef0001601056", ""),
        ("", ""),
        ("61", ""),
        ("xyz", "the deployment code is not hex"),
        ("600", "the deployment code is not hex"),
        ("73__$5f4f7b4b3a3e3d3c3b3a39383736353433$__3014", ""),
    ],
)
def test_evm_rules(code: str, said: str) -> None:
    assert invalid("evm", code.encode()) == said


@pytest.mark.parametrize(
    ("abi", "said"),
    [
        ("[]", ""),
        ('[{"type": "function", "name": "f", "inputs": [{"type": "uint8[2][]"}], "outputs": []}]', ""),
        ('[{"type": "constructor", "inputs": [{"type": "tuple", "components": [{"type": "bool"}]}]}]', ""),
        ('[{"type": "fallback"}, {"type": "receive"}]', ""),
        ("{}", "the ABI is not a list"),
        ("[", "the ABI is not JSON"),
        ('[{"type": "thing"}]', "an entry of the ABI is of no known kind"),
        ('[{"type": "event"}]', "an entry of the ABI has no name"),
        (
            '[{"type": "function", "name": "f", "inputs": [{"type": "uint7"}]}]',
            "a parameter of the ABI has a type that does not exist",
        ),
        (
            '[{"type": "error", "name": "f", "inputs": [{"type": "tuple"}]}]',
            "a tuple of the ABI has no components",
        ),
        ('[{"name": "f", "inputs": []}, {"name": "f"}]', "two functions of the ABI have one signature"),
        ('[{"name": "f", "inputs": [{"type": "bool"}]}, {"name": "f"}]', ""),
    ],
)
def test_abi_rules(abi: str, said: str) -> None:
    assert invalid("abi", abi.encode()) == said


def test_a_behaviour_is_what_functions_give_and_how_they_trap() -> None:
    add = '(module (func (export "f") (param i32 i32) (result i32) {} ))'
    one = behaviour(wat(add.format("(i32.add (local.get 0) (local.get 1))")))
    assert one
    assert one == behaviour(wat(add.format("(i32.add (local.get 1) (local.get 0)) (nop)")))
    assert one != behaviour(wat(add.format("(i32.sub (local.get 0) (local.get 1))")))
    divided = behaviour(wat(add.format("(i32.div_s (local.get 0) (local.get 1))")))
    assert divided not in ("", one)
    assert divided != behaviour(wat(add.format("(unreachable)")))


def test_the_order_of_host_calls_is_behaviour_and_their_addresses_are_not() -> None:
    head = '(module (import "e" "a" (func $a (param i32))) (import "e" "b" (func $b (param i32)))'
    calls = '(func (export "f") (call {} (i32.const {})) (call {} (i32.const 2))))'
    first = behaviour(wat(head + calls.format("$a", 1, "$b")))
    assert first == behaviour(wat(head + calls.format("$a", 99, "$b"))) != ""
    assert first != behaviour(wat(head + calls.format("$b", 1, "$a")))


@pytest.mark.parametrize(
    "text",
    [
        "(module)",
        '(module (func (export "f") (loop (br 0))))',
        '(module (func $f (export "f") (call $f)))',
        '(module (memory 9999) (func (export "f")))',
        '(module (import "e" "m" (memory 1)) (func (export "f")))',
        '(module (func (export "f") (param externref)))',
        '(module (func (export "f") (result v128) (v128.const i32x4 1 2 3 4)))',
        '(module (global (export "g") v128 (v128.const i32x4 1 2 3 4)) (func (export "f")))',
        '(module (func $s (loop (br 0))) (start $s) (func (export "f")))',
        '(module (import "e" "a" (func $a)) (func (export "f") (loop (call $a) (br 0))))',
    ],
)
def test_what_meets_a_limit_of_ours_has_no_behaviour(text: str) -> None:
    assert behaviour(wat(text)) == ""
