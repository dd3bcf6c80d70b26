"""Types of expressions, one function body at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import nodes as n
from .check import LOG, CheckedProgram, collect, exhaustive, fit_literal, sized
from .diagnostic import CompileError, Span
from .operators import INTS, NUMBERS, SHIFTS, convert, fit, fold, result_type


def check(items: list[n.Item]) -> CheckedProgram:
    """The typed program. Raises CompileError LH0201-LH0218 and LH0006."""
    program = collect(items)
    known: dict[str, n.Const] = {}
    for item in items:
        if isinstance(item, n.Const):
            Body(program, known, n.UNIT).const(item)
            known[item.name] = item
    for item in items:
        if isinstance(item, n.Function):
            Body(program, known, item.returns).function(item)
    return program


class LocalScope:
    """Nested scopes over one flat list of variables; a shadowed variable keeps its own slot."""

    def __init__(self) -> None:
        self.locals: list[n.Local] = []
        self._open: list[dict[str, n.Local]] = [{}]

    def open(self) -> None:
        self._open.append({})

    def close(self) -> None:
        self._open.pop()

    def find(self, name: str) -> n.Local | None:
        return next((names[name] for names in reversed(self._open) if name in names), None)

    def define(self, name: str, kind: str, mutable: bool) -> n.Local:
        local = self.hidden(kind, name, mutable)
        self._open[-1][name] = local
        return local

    def hidden(self, kind: str, name: str = "", mutable: bool = False) -> n.Local:
        """A variable that no name reaches."""
        local = n.Local(name, kind, mutable, len(self.locals))
        self.locals.append(local)
        return local


class Body:
    """One body being checked. `want` is a hint for literals; `expect` is a demand."""

    def __init__(self, program: CheckedProgram, consts: dict[str, n.Const], returns: str) -> None:
        self.program, self.consts, self.returns = program, consts, returns
        self.scope = LocalScope()
        self.loops: list[n.Loop | n.While | None] = []

    def function(self, item: n.Function) -> None:
        for param in item.params:
            self.scope.define(
                param.name, sized(self.program.resolve(param.type), param.type.span), param.mutable
            )
        self.expect(item.body, item.returns)
        item.locals = self.scope.locals

    def const(self, item: n.Const) -> None:
        if item.type == n.UNIT:
            raise CompileError("LH0210", "a const needs a value", item.declared.span)
        if isinstance(item.init, (n.Literal, n.Name)) and item.type == n.STR:
            found = self.text(item.init)
        else:
            found = self.expr(item.init, item.type)
        self._same(item.type, found, item.init.span)
        item.value = evaluate(item.init)

    def expect(self, node: n.Expr, want: str) -> str:
        found = self.expr(node, want)
        self._same(want, found, self._blame(node))
        return found

    def expr(self, node: n.Expr, want: str | None = None) -> str:
        node.type = RULES[type(node)](self, node, want)
        return node.type

    def text(self, node: n.Expr) -> str:
        """A string where one is allowed: the argument of `log`, or the value of a const."""
        if isinstance(node, n.Name) and self.scope.find(node.name) is None and node.name in self.consts:
            node.target = self.consts[node.name]
            node.type = node.target.type
        elif isinstance(node, n.Literal):
            node.type = fit_literal(node, None)
        else:
            self.expr(node)
        self._same(n.STR, node.type, node.span)
        return n.STR

    @staticmethod
    def _same(want: str, found: str, span: Span) -> None:
        if found not in (want, n.NEVER):
            raise CompileError("LH0204", f"expected {want}, found {found}", span)

    @staticmethod
    def _blame(node: n.Expr) -> Span:
        """Where a wrong type is shown: the tail of a block rather than the whole block."""
        while isinstance(node, n.Block) and node.tail is not None:
            node = node.tail
        return node.span

    def literal(self, node: n.Literal, want: str | None) -> str:
        return sized(fit_literal(node, want), node.span)

    def unit(self, _node: n.Unit, _want: str | None) -> str:
        return n.UNIT

    def name(self, node: n.Name, _want: str | None) -> str:
        node.target = self.scope.find(node.name) or self.consts.get(node.name)
        if node.target is None:
            later = " above this line" if node.name in self.program.consts else " in this scope"
            raise CompileError("LH0202", f"no value named {node.name}{later}", node.span)
        return sized(node.target.type, node.span)

    def path(self, node: n.Path, _want: str | None) -> str:
        return self.program.variant(node)

    def call(self, node: n.Call, _want: str | None) -> str:
        if node.name == LOG:
            self._arity(node, 1)
            self.text(node.args[0])
            return n.UNIT
        callee = self.program.functions.get(node.name)
        if callee is None:
            raise CompileError("LH0203", f"no function named {node.name}", node.span)
        self._arity(node, len(callee.params))
        for arg, param in zip(node.args, callee.params, strict=True):
            self.expect(arg, self.program.resolve(param.type))
        return callee.returns

    @staticmethod
    def _arity(node: n.Call, want: int) -> None:
        if len(node.args) != want:
            raise CompileError(
                "LH0207", f"{node.name} takes {want} arguments, not {len(node.args)}", node.span
            )

    def unary(self, node: n.Unary, want: str | None) -> str:
        kind = self.expr(node.operand, want)
        takes = NUMBERS if node.op == "-" else INTS | {n.BOOL}
        if kind not in takes and kind != n.NEVER:
            raise CompileError("LH0205", f"{node.op} does not take {kind}", node.span)
        return kind

    def binary(self, node: n.Binary, want: str | None) -> str:
        hint = want if want in NUMBERS else None
        if _open(node.left) and not _open(node.right) and node.op not in SHIFTS:
            right = self.expr(node.right, hint)
            left = self.expr(node.left, right)
        else:
            left = self.expr(node.left, hint)
            right = self.expr(node.right, left)
        kind = right if left == n.NEVER else left
        if node.op in SHIFTS and right in INTS:
            right = kind
        if right not in (kind, n.NEVER):
            raise CompileError("LH0204", f"expected {kind}, found {right}", node.right.span)
        if kind == n.NEVER:
            return n.NEVER
        result = result_type(node.op, kind, plain_enum=kind in self.program.enums)
        if result is None:
            raise CompileError("LH0205", f"{node.op} does not take {kind}", node.span)
        return result

    def cast(self, node: n.Cast, _want: str | None) -> str:
        to = self.program.resolve(node.to)
        kind = self.expr(node.operand, to)
        plain = kind == n.BOOL or kind in self.program.enums
        if kind in (to, n.NEVER) or (kind in NUMBERS and to in NUMBERS) or (plain and to in INTS):
            return n.NEVER if kind == n.NEVER else to
        raise CompileError("LH0216", f"{kind} cannot be cast to {to}", node.span)

    def assign(self, node: n.Assign, _want: str | None) -> str:
        local = self.scope.find(node.name)
        if local is None:
            known = node.name in self.program.consts
            code, text = ("LH0206", "is a const") if known else ("LH0202", "is not a variable in this scope")
            raise CompileError(code, f"{node.name} {text}", node.name_span)
        if not local.mutable:
            raise CompileError("LH0206", f"{node.name} is not mutable", node.name_span)
        node.target = local
        if not node.op:
            self.expect(node.value, local.type)
            return n.UNIT
        found = self.expr(node.value, local.type)
        if node.op not in SHIFTS or found not in INTS:
            self._same(local.type, found, node.value.span)
        if result_type(node.op, local.type, plain_enum=False) is None:
            raise CompileError("LH0205", f"{node.op}= does not take {local.type}", node.span)
        return n.UNIT

    def block(self, node: n.Block, want: str | None) -> str:
        self.scope.open()
        diverges = False
        for stmt in node.stmts:
            diverges |= self.let(stmt) if isinstance(stmt, n.Let) else self.statement(stmt)
        kind = self.expr(node.tail, want) if node.tail is not None else n.UNIT
        self.scope.close()
        return n.NEVER if diverges and kind == n.UNIT else kind

    def statement(self, stmt: n.ExprStmt) -> bool:
        if stmt.semi:
            return self.expr(stmt.value) == n.NEVER
        return self.expect(stmt.value, n.UNIT) == n.NEVER

    def let(self, stmt: n.Let) -> bool:
        if stmt.declared is None:
            kind = self.expr(stmt.value)
        else:
            kind = sized(self.program.resolve(stmt.declared), stmt.declared.span)
            self.expect(stmt.value, kind)
        stmt.target = self.scope.define(stmt.name, kind, stmt.mutable)
        return stmt.value.type == n.NEVER

    def if_(self, node: n.If, want: str | None) -> str:
        self.expect(node.cond, n.BOOL)
        if node.otherwise is None:
            self.expect(node.then, n.UNIT)
            return n.UNIT
        then = self.expr(node.then, want)
        return self._join(then, node.otherwise, want)

    def _join(self, first: str, other: n.Expr, want: str | None) -> str:
        """The type of two branches: a branch that never ends takes the type of the other."""
        second = self.expr(other, want if first == n.NEVER else first)
        if first == n.NEVER:
            return second
        self._same(first, second, self._blame(other))
        return first

    def while_(self, node: n.While, _want: str | None) -> str:
        self.loops.append(None)
        self.expect(node.cond, n.BOOL)
        self.loops[-1] = node
        self.expect(node.body, n.UNIT)
        self.loops.pop()
        return n.UNIT

    def loop(self, node: n.Loop, _want: str | None) -> str:
        self.loops.append(node)
        self.expect(node.body, n.UNIT)
        self.loops.pop()
        return n.UNIT if node.broken else n.NEVER

    def match(self, node: n.Match, want: str | None) -> str:
        kind = self.expr(node.subject)
        if kind not in INTS | {n.BOOL} and kind not in self.program.enums:
            raise CompileError("LH0205", f"match does not take {kind}", node.subject.span)
        node.temp = self.scope.hidden(kind)
        joined = n.NEVER
        for arm in node.arms:
            for pattern in arm.patterns:
                self.pattern(pattern, kind)
            joined = self._join(joined, arm.body, want)
        exhaustive(node, kind, self.program)
        return joined

    def pattern(self, node: n.Literal | n.Path | n.Name, kind: str) -> None:
        if isinstance(node, n.Name):
            node.target = self.consts.get(node.name)
            if node.target is None:
                raise CompileError(
                    "LH0217", f"{node.name} is not a const: a pattern binds no names", node.span
                )
            node.type = node.target.type
        else:
            self.expr(node, kind)
        self._same(kind, node.type, node.span)

    def return_(self, node: n.Return, _want: str | None) -> str:
        if node.value is not None:
            self.expect(node.value, self.returns)
        else:
            self._same(self.returns, n.UNIT, node.span)
        return n.NEVER

    def jump(self, node: n.Jump, _want: str | None) -> str:
        loop = self.loops[-1] if self.loops else None
        if loop is None:
            raise CompileError("LH0208", f"{node.kind} outside a loop", node.span)
        if isinstance(loop, n.Loop) and node.kind == "break":
            loop.broken = True
        return n.NEVER


def _open(node: n.Expr) -> bool:
    """Whether the type of `node` comes from its surroundings: integer literals without a suffix."""
    if isinstance(node, n.Literal):
        return not node.suffix and isinstance(node.value, int) and not isinstance(node.value, bool)
    if isinstance(node, n.Unary):
        return _open(node.operand)
    return isinstance(node, n.Binary) and _open(node.left) and _open(node.right)


RULES: dict[type, Callable[[Body, Any, str | None], str]] = {
    n.Literal: Body.literal,
    n.Unit: Body.unit,
    n.Name: Body.name,
    n.Path: Body.path,
    n.Call: Body.call,
    n.Unary: Body.unary,
    n.Binary: Body.binary,
    n.Cast: Body.cast,
    n.Assign: Body.assign,
    n.Block: Body.block,
    n.If: Body.if_,
    n.While: Body.while_,
    n.Loop: Body.loop,
    n.Match: Body.match,
    n.Return: Body.return_,
    n.Jump: Body.jump,
}


def evaluate(node: n.Expr) -> n.Value:
    """The value of a typed const initialiser. Raises CompileError LH0210, LH0211 (does not fit)."""
    match node:
        case n.Literal():
            return node.value
        case n.Path():
            return node.value
        case n.Name(target=n.Const() as const):
            return const.value
        case n.Unary(op="!"):
            value = evaluate(node.operand)
            return not value if isinstance(value, bool) else ~int(value)
        case n.Unary():
            return fit(-evaluate(node.operand), node.type, node.span)  # type: ignore[operator]
        case n.Binary():
            left, right = evaluate(node.left), evaluate(node.right)
            return fold(node.op, left, right, node.type, node.span)
        case n.Cast():
            return convert(evaluate(node.operand), node.type)
    raise CompileError("LH0210", "a const needs a constant expression", node.span)
