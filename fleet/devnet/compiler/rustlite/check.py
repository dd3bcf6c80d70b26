"""The names of a program and the rules about types that need no expression walk."""

from __future__ import annotations

from dataclasses import dataclass, field

from . import nodes as n
from .diagnostic import CompileError, Span
from .operators import RANGE

PARAMS = 255
"""Most parameters of a function; wasm engines stop at 1,000."""
LOG = "log"
"""The one function of the host: `log("text")`."""


@dataclass(slots=True)
class CheckedProgram:
    """A checked program; `items` keeps the order of the source."""

    items: list[n.Item]
    functions: dict[str, n.Function] = field(default_factory=dict)
    consts: dict[str, n.Const] = field(default_factory=dict)
    enums: dict[str, n.Enum] = field(default_factory=dict)

    def resolve(self, name: n.TypeName) -> str:
        if name.name in n.BUILTIN or name.name in (n.UNIT, n.STR) or name.name in self.enums:
            return name.name
        raise CompileError("LH0214", f"no type named {name.name}", name.span)

    def variant(self, path: n.Path) -> str:
        """The type of `E::A`; sets its value. Raises CompileError LH0214 and LH0215."""
        enum = self.enums.get(path.owner)
        if enum is None:
            raise CompileError("LH0214", f"no enum named {path.owner}", path.span)
        names = [name for name, _ in enum.variants]
        if path.member not in names:
            raise CompileError("LH0215", f"{path.owner} has no variant {path.member}", path.span)
        path.value, path.type = names.index(path.member), path.owner
        return path.owner


def collect(items: list[n.Item]) -> CheckedProgram:
    """The names of a program, before any body is looked at. Raises CompileError LH0201, LH0213, LH0214."""
    program = CheckedProgram(items)
    for item in items:
        if isinstance(item, n.Enum):
            _define(item, item.name in program.enums or item.name in n.BUILTIN)
            _distinct(item.variants)
            program.enums[item.name] = item
    for item in items:
        if isinstance(item, n.Function):
            _define(item, item.name in program.functions or item.name == LOG)
            program.functions[item.name] = item
            if item.result is not None:
                item.returns = sized(program.resolve(item.result), item.result.span)
            if len(item.params) > PARAMS:
                raise CompileError("LH0213", f"more than {PARAMS} parameters", item.span)
            _distinct([(p.name, p.span) for p in item.params])
        elif isinstance(item, n.Const):
            _define(item, item.name in program.consts)
            program.consts[item.name] = item
            item.type = program.resolve(item.declared)
    for name, const in program.consts.items():
        _define(const, name in program.functions or name == LOG)
    return program


def _define(item: n.Item, taken: bool) -> None:
    if taken:
        raise CompileError("LH0201", f"{item.name} is defined more than once", item.span)


def _distinct(names: list[tuple[str, Span]]) -> None:
    seen: set[str] = set()
    for name, span in names:
        if name in seen:
            raise CompileError("LH0201", f"{name} is defined more than once", span)
        seen.add(name)


def sized(kind: str, span: Span) -> str:
    """`kind` where a value is stored or passed on. Raises CompileError LH0218 for a string."""
    if kind == n.STR:
        raise CompileError("LH0218", "a string can only be a const or the argument of log", span)
    return kind


def fit_literal(node: n.Literal, want: str | None) -> str:
    """The type of a literal where `want` is expected. Raises CompileError LH0006 when it cannot hold it."""
    if isinstance(node.value, bool):
        return n.BOOL
    if isinstance(node.value, float):
        return n.F32
    if isinstance(node.value, bytes):
        return n.STR
    kind = node.suffix or (want if want in RANGE else n.I32)
    low, high = RANGE[kind]
    if node.bits and node.value <= 2 * high + 1:
        node.value = (node.value - low) % (2 * high + 2) + low
    if not low <= node.value <= high:
        raise CompileError("LH0006", f"literal out of range for {kind}", node.span)
    return kind


def exhaustive(match: n.Match, kind: str, program: CheckedProgram) -> None:
    """CompileError LH0209 unless the arms of `match` cover every value of `kind`."""
    if any(not arm.patterns for arm in match.arms):
        return
    patterns = [p for arm in match.arms for p in arm.patterns]
    if kind in program.enums:
        covered = {p.value for p in patterns if isinstance(p, n.Path)}
        missing = [name for i, (name, _) in enumerate(program.enums[kind].variants) if i not in covered]
    else:
        seen = {p.value for p in patterns if isinstance(p, n.Literal)}
        missing = (
            [text for text, v in (("true", True), ("false", False)) if v not in seen]
            if kind == n.BOOL
            else ["_"]
        )
    if missing:
        raise CompileError("LH0209", f"match does not cover {', '.join(missing[:3])}", match.span)
