"""The program between the stages: made by `lower`, given types by `check`, read by `codegen`."""

from __future__ import annotations

from dataclasses import dataclass, field

from .diagnostic import Span

I32, I64, F32, BOOL, UNIT, NEVER, STR = "i32", "i64", "f32", "bool", "()", "!", "&str"
BUILTIN = frozenset({I32, I64, F32, BOOL})
Value = int | float | bool | bytes


@dataclass(eq=False, repr=False)
class Node:
    span: Span
    type: str = field(default=UNIT, init=False)


@dataclass(eq=False, repr=False)
class Literal(Node):
    value: Value
    suffix: str = ""
    bits: bool = False  # hex or binary: a bit pattern, may fill the sign bit


@dataclass(eq=False, repr=False)
class Unit(Node):
    pass


@dataclass(eq=False, repr=False)
class Name(Node):
    name: str
    target: Local | Const | None = field(default=None, init=False)


@dataclass(eq=False, repr=False)
class Path(Node):
    owner: str
    member: str
    value: int = field(default=0, init=False)


@dataclass(eq=False, repr=False)
class Call(Node):
    name: str
    args: list[Expr]


@dataclass(eq=False, repr=False)
class Unary(Node):
    op: str
    operand: Expr


@dataclass(eq=False, repr=False)
class Binary(Node):
    op: str
    left: Expr
    right: Expr


@dataclass(eq=False, repr=False)
class Cast(Node):
    operand: Expr
    to: TypeName


@dataclass(eq=False, repr=False)
class Assign(Node):
    name: str
    op: str  # "" for a plain `=`, else the binary operator
    value: Expr
    name_span: Span
    target: Local | None = field(default=None, init=False)


@dataclass(eq=False, repr=False)
class Let(Node):
    name: str
    mutable: bool
    declared: TypeName | None
    value: Expr
    target: Local | None = field(default=None, init=False)


@dataclass(eq=False, repr=False)
class ExprStmt(Node):
    value: Expr
    semi: bool


@dataclass(eq=False, repr=False)
class Block(Node):
    stmts: list[Let | ExprStmt]
    tail: Expr | None


@dataclass(eq=False, repr=False)
class If(Node):
    cond: Expr
    then: Block
    otherwise: Block | If | None


@dataclass(eq=False, repr=False)
class While(Node):
    cond: Expr
    body: Block


@dataclass(eq=False, repr=False)
class Loop(Node):
    body: Block
    broken: bool = field(default=False, init=False)


@dataclass(eq=False, repr=False)
class Match(Node):
    subject: Expr
    arms: list[Arm]
    temp: Local | None = field(default=None, init=False)


@dataclass(eq=False, repr=False)
class Arm:
    span: Span
    patterns: list[Literal | Path | Name]  # empty: `_`
    body: Expr


@dataclass(eq=False, repr=False)
class Return(Node):
    value: Expr | None


@dataclass(eq=False, repr=False)
class Jump(Node):
    kind: str  # "break" or "continue"


Expr = (
    Literal
    | Unit
    | Name
    | Path
    | Call
    | Unary
    | Binary
    | Cast
    | Assign
    | Block
    | If
    | While
    | Loop
    | Match
    | Return
    | Jump
)


@dataclass(eq=False, repr=False)
class TypeName:
    span: Span
    name: str


@dataclass(eq=False, repr=False)
class Local:
    """One variable; shadowing makes another one. `slot` is its index in the wasm function."""

    name: str
    type: str
    mutable: bool
    slot: int


@dataclass(eq=False, repr=False)
class Param:
    span: Span
    name: str
    mutable: bool
    type: TypeName


@dataclass(eq=False, repr=False)
class Function:
    span: Span
    name: str
    public: bool
    params: list[Param]
    result: TypeName | None
    body: Block
    locals: list[Local] = field(default_factory=list, init=False)
    returns: str = field(default=UNIT, init=False)

    @property
    def exported(self) -> bool:
        return self.public or self.name in ("frame", "render")


@dataclass(eq=False, repr=False)
class Const:
    span: Span
    name: str
    declared: TypeName
    init: Expr
    type: str = field(default=UNIT, init=False)
    value: Value = field(default=0, init=False)


@dataclass(eq=False, repr=False)
class Enum:
    span: Span
    name: str
    variants: list[tuple[str, Span]]


Item = Function | Const | Enum
