"""Expressions to flat WebAssembly instructions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import nodes as n
from .strings import Strings

WASM = {n.I32: "i32", n.BOOL: "i32", n.I64: "i64", n.F32: "f32", n.UNIT: "", n.NEVER: ""}
INT_OPS = {
    **{"+": "add", "-": "sub", "*": "mul", "/": "div_s", "%": "rem_s", "&": "and", "|": "or", "^": "xor"},
    **{"<<": "shl", ">>": "shr_s", "==": "eq", "!=": "ne"},
    **{"<": "lt_s", ">": "gt_s", "<=": "le_s", ">=": "ge_s"},
}
FLOAT_OPS = {
    **{"+": "add", "-": "sub", "*": "mul", "/": "div", "==": "eq", "!=": "ne"},
    **{"<": "lt", ">": "gt", "<=": "le", ">=": "ge"},
}
CASTS = {
    ("i32", "i64"): "i64.extend_i32_s",
    ("i64", "i32"): "i32.wrap_i64",
    ("i32", "f32"): "f32.convert_i32_s",
    ("i64", "f32"): "f32.convert_i64_s",
    ("f32", "i32"): "i32.trunc_sat_f32_s",
    ("f32", "i64"): "i64.trunc_sat_f32_s",
}


def wasm(kind: str) -> str:
    """The wasm value type of `kind`, "" when it has none; an enum is its variant's index."""
    return WASM.get(kind, "i32")


def result(kind: str) -> str:
    return f" (result {wasm(kind)})" if wasm(kind) else ""


class Emitter:
    """The instructions of one function body.

    `frames` are the open wasm blocks, innermost last: `br` counts them from the end.
    """

    def __init__(self, strings: Strings, defects: frozenset[str]) -> None:
        self.strings, self.defects = strings, defects
        self.code: list[str] = []
        self.frames: list[str] = []

    def expr(self, node: n.Expr) -> None:
        RULES[type(node)](self, node)
        if node.type == n.NEVER:
            self.code.append("unreachable")  # so that whatever type is expected here validates

    def constant(self, kind: str, value: n.Value) -> None:
        if isinstance(value, bytes):
            self.code += [f"i32.const {self.strings.address(value)}", f"i32.const {len(value)}"]
        elif kind == n.F32:
            self.code.append(f"f32.const {float(value).hex()}")
        else:
            self.code.append(f"{wasm(kind)}.const {int(value)}")

    def literal(self, node: n.Literal) -> None:
        self.constant(node.type, node.value)

    def unit(self, node: n.Unit) -> None:
        pass

    def name(self, node: n.Name) -> None:
        if isinstance(node.target, n.Const):
            self.constant(node.type, node.target.value)
        elif node.target is not None and wasm(node.type):
            self.code.append(f"local.get {node.target.slot}")

    def path(self, node: n.Path) -> None:
        self.constant(n.I32, node.value)

    def call(self, node: n.Call) -> None:
        for arg in node.args:
            self.expr(arg)
            if arg.type == n.UNIT:
                self.code.append("i32.const 0")  # a parameter of type () has a slot too
        self.code.append("call $log" if node.name == "log" else f"call $f_{node.name}")

    def unary(self, node: n.Unary) -> None:
        kind = wasm(node.type) or "i32"
        if node.op == "!":
            self.expr(node.operand)
            self.code += ["i32.eqz"] if node.type == n.BOOL else [f"{kind}.const -1", f"{kind}.xor"]
        elif kind == "f32":
            self.expr(node.operand)
            self.code.append("f32.neg")
        else:
            self.code.append(f"{kind}.const 0")
            if "invalid-wasm" in self.defects and isinstance(node.operand, n.If):
                node.operand.type = n.UNIT  # seeded defect: an `if` under a minus is taken for a statement
            self.expr(node.operand)
            self.code.append(f"{kind}.sub")

    def binary(self, node: n.Binary) -> None:
        self.expr(node.left)
        if node.op in ("&&", "||"):
            self.code.append("if (result i32)")
            self.frames.append("logic")
            for node_or_value in (node.right, 0) if node.op == "&&" else (1, node.right):
                if isinstance(node_or_value, int):
                    self.code.append(f"i32.const {node_or_value}")
                else:
                    self.expr(node_or_value)
                self.code.append("else")
            self.code[-1] = "end"
            self.frames.pop()
            return
        self.expr(node.right)
        kind = node.right.type if node.left.type == n.NEVER else node.left.type
        if node.op in ("<<", ">>"):
            self._convert(node.right.type, kind)
        self._operate(node.op, kind)

    def _operate(self, op: str, kind: str) -> None:
        name = wasm(kind) or "i32"
        self.code.append(f"{name}.{(FLOAT_OPS if name == 'f32' else INT_OPS)[op]}")

    def _convert(self, kind: str, to: str) -> None:
        pair = (wasm(kind), wasm(to))
        if pair in CASTS:
            self.code.append(CASTS[pair])

    def cast(self, node: n.Cast) -> None:
        self.expr(node.operand)
        self._convert(node.operand.type, node.type)

    def assign(self, node: n.Assign) -> None:
        assert node.target is not None
        if node.op:
            self.code.append(f"local.get {node.target.slot}")
        self.expr(node.value)
        if node.op:
            if node.op in ("<<", ">>"):
                self._convert(node.value.type, node.target.type)
            self._operate(node.op, node.target.type)
        self._store(node.target)

    def _store(self, local: n.Local) -> None:
        if wasm(local.type):
            self.code.append(f"local.set {local.slot}")

    def block(self, node: n.Block) -> None:
        for stmt in node.stmts:
            self.expr(stmt.value)
            if isinstance(stmt, n.Let):
                assert stmt.target is not None
                self._store(stmt.target)
            elif wasm(stmt.value.type):
                self.code.append("drop")
        if node.tail is not None:
            self.expr(node.tail)

    def if_(self, node: n.If) -> None:
        self.expr(node.cond)
        self.code.append(f"if{result(node.type)}")
        self.frames.append("if")
        self.expr(node.then)
        if node.otherwise is not None:
            self.code.append("else")
            self.expr(node.otherwise)
        self.code.append("end")
        self.frames.pop()

    def while_(self, node: n.While) -> None:
        self._loop(node.body, node.cond)

    def loop(self, node: n.Loop) -> None:
        self._loop(node.body, None)

    def _loop(self, body: n.Block, cond: n.Expr | None) -> None:
        self.code += ["block", "loop"]
        self.frames += ["break", "continue"]
        if cond is not None:
            self.expr(cond)
            self.code += ["i32.eqz", "br_if 1"]
        self.expr(body)
        self.code += ["br 0", "end", "end"]
        del self.frames[-2:]

    def match(self, node: n.Match) -> None:
        assert node.temp is not None
        self.expr(node.subject)
        self.code += [f"local.set {node.temp.slot}", f"block{result(node.type)}"]
        self.frames.append("match")
        for arm in node.arms:
            self.code.append("block")
            self.frames.append("arm")
            for index, pattern in enumerate(arm.patterns):
                self.code.append(f"local.get {node.temp.slot}")
                self.expr(pattern)
                self.code += [f"{wasm(node.temp.type)}.eq"] + ["i32.or"] * (index > 0)
            if arm.patterns:
                self.code += ["i32.eqz", "br_if 0"]
            self.expr(arm.body)
            self.code += ["br 1", "end"]
            self.frames.pop()
        self.code += ["unreachable", "end"]
        self.frames.pop()

    def return_(self, node: n.Return) -> None:
        if node.value is not None:
            self.expr(node.value)
        self.code.append("return")

    def jump(self, node: n.Jump) -> None:
        # how many open blocks lie between here and the innermost `kind`
        depth = 0
        while self.frames[-1 - depth] != node.kind:
            if "compiler-hang" in self.defects and (node.kind, self.frames[-1 - depth]) == ("break", "if"):
                continue  # seeded defect: does not step over an `if`
            depth += 1
        self.code.append(f"br {depth}")


RULES: dict[type, Callable[[Emitter, Any], None]] = {
    n.Literal: Emitter.literal,
    n.Unit: Emitter.unit,
    n.Name: Emitter.name,
    n.Path: Emitter.path,
    n.Call: Emitter.call,
    n.Unary: Emitter.unary,
    n.Binary: Emitter.binary,
    n.Cast: Emitter.cast,
    n.Assign: Emitter.assign,
    n.Block: Emitter.block,
    n.If: Emitter.if_,
    n.While: Emitter.while_,
    n.Loop: Emitter.loop,
    n.Match: Emitter.match,
    n.Return: Emitter.return_,
    n.Jump: Emitter.jump,
}
