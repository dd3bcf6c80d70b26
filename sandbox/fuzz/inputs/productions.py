"""Programs from a table of productions, with their depth and length under control.

A table is `{"start": name, "rules": {name: [alternative, ...]}}`; an alternative is a list of symbols, and a
symbol that is the name of a rule stands for one of its alternatives, any other for itself. A file of
productions says the same in lines: `name: text` and `| text`, where `<name>` is a rule's name. The symbols
LINE, DEEPER, SHALLOWER and SERIAL (in a file `\\n`, `\\>`, `\\<` and `\\#`) are a line break, its
indentation, and the number of the line, for a name that is there once. In a file `<?name>` is the rule if the
program has its name as a word elsewhere, or else nothing; a line `%names a b` says what a program may call
something else; and an operator is as likely as any other alternative: the rule of operators disappears into
those that it stands in.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from random import Random

from sandbox.fuzz.inputs.material import MOST_BYTES, choose
from sandbox.fuzz.inputs.rates import Alternative, AlternativeRates
from sandbox.fuzz.inputs.spelling import called
from sandbox.fuzz.port import InputSource

LINE, DEEPER, SHALLOWER, SERIAL = "\n", "\x0e", "\x0f", "\x10"
_ESCAPES = {"\\n": LINE, "\\>": DEEPER, "\\<": SHALLOWER, "\\#": SERIAL, "\\\\": "\\"}
_FOLDER = Path(__file__).with_name("productions")
_LOOSE = Path(__file__).with_name("loose")
_ENDLESS = 1 << 20
_SIGNS = re.compile(r"[^\w\s]{1,4}")
_MOST_SIGNS = 12
LONGEST = 3000
"""Characters after which a program ends as soon as it can; the shortest programs have one expression."""
KEPT = (0.2, 0.5, 0.5, 0.8, 1.0)
"""The part of the alternatives that one program is made of, so that what is common hides nothing."""

Step = tuple[Alternative, int]
"""An alternative, and the place in it of the symbol that the next step is for."""
Wanted = Callable[[str], Sequence[Step]]
"""The steps that are wanted from a rule on; none where chance may decide."""


@dataclass(frozen=True, slots=True)
class Productions:
    """`low` are the alternatives of each rule that nest the least, `high` the others, or all. `asked` are the
    symbols that stand for a rule whose name is used, `names` what may be called something else; `rates` is
    what a search learns of its alternatives."""

    start: str
    rules: Mapping[str, Sequence[Alternative]]
    low: Mapping[str, Sequence[Alternative]]
    high: Mapping[str, Sequence[Alternative]]
    asked: frozenset[str] = frozenset()
    names: tuple[str, ...] = ()
    rates: AlternativeRates | None = None


@cache
def of_family(family: str, *, loose: bool = False) -> Productions | None:
    """The family's table of well-formed programs, or that of anything at any place; None when it has none."""
    file = (_LOOSE if loose else _FOLDER) / f"{family}.txt"
    return read(file.read_text("utf-8")) if file.is_file() else None


def read(lines: str) -> Productions:
    """A table from its lines; the first rule is the start. Raises ValueError for a line that is neither."""
    written: dict[str, list[str]] = {}
    name, called_so = "", tuple[str, ...]()
    for number, line in enumerate(lines.split("\n"), 1):
        if line.startswith("#") or not line.strip():
            continue
        if line.startswith("%names "):
            called_so = tuple(line.split()[1:])
            continue
        if line[0].isspace():
            mark, _, body = line.lstrip(" ").partition(" ")
            if mark != "|" or not name:
                raise ValueError(f"line {number} is not an alternative")
        else:
            name, colon, body = line.partition(": ")
            if not colon or not name:
                raise ValueError(f"line {number} is not a rule")
        written.setdefault(name, []).append(body)
    names = {f"<{one}>" for one in written}
    asked = frozenset(f"<?{one}>" for one in written)
    rules = {
        f"<{one}>": [_symbols(body, names | asked) for body in bodies] for one, bodies in written.items()
    }
    found = table(f"<{next(iter(written))}>", _without_signs(rules))
    return replace(found, asked=asked, names=called_so)


def _without_signs(rules: Mapping[str, Sequence[Alternative]]) -> dict[str, list[Alternative]]:
    """The rules with each operator in the place of a rule of operators."""
    signs = {
        name: [one[0] for one in each]
        for name, each in rules.items()
        if 1 < len(each) <= _MOST_SIGNS and all(len(one) == 1 and _SIGNS.fullmatch(one[0]) for one in each)
    }
    made: dict[str, list[Alternative]] = {}
    for name, each in rules.items():
        if name not in signs:
            made[name] = [new for one in each for new in _spelled_out(one, signs)]
    return made


def _spelled_out(one: Alternative, signs: Mapping[str, Sequence[str]]) -> list[Alternative]:
    found: list[Alternative] = [()]
    for symbol in one:
        found = [(*left, sign) for left in found for sign in signs.get(symbol, (symbol,))]
    return found


def _symbols(body: str, names: set[str]) -> Alternative:
    """What stands in < > and is not a rule is text, for languages in which that is a type."""
    found = re.split(r"(<\??[\w.:-]+>|\\[n<>#\\])", body)
    return tuple(_ESCAPES.get(one, one) for one in _joined(found, names) if one)


def _joined(parts: Sequence[str], names: set[str]) -> list[str]:
    """Neighbours that are text as one symbol."""
    found: list[str] = []
    plain = False
    for one in parts:
        special = one in names or one in _ESCAPES
        if plain and not special:
            found[-1] += one
        else:
            found.append(one)
        plain = not special
    return found


def parse(grammar: str) -> Productions:
    """A table from JSON. Raises ValueError when it is something else, or when nothing can be made of it."""
    found = json.loads(grammar)
    try:
        rules = {str(name): [tuple(map(str, one)) for one in each] for name, each in found["rules"].items()}
        return table(str(found["start"]), rules)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not a table of productions: {error!r}") from None


def table(start: str, rules: Mapping[str, Sequence[Alternative]]) -> Productions:
    """Raises ValueError when the start is not a rule or does not end."""
    height = dict.fromkeys(rules, _ENDLESS)
    changed = True
    while changed:
        changed = False
        for name, each in rules.items():
            least = min((_height(one, height) for one in each), default=_ENDLESS)
            if least < height[name]:
                height[name], changed = least, True
    if height.get(start, _ENDLESS) >= _ENDLESS:
        raise ValueError(f"no end is in reach of {start}")
    ended = {name: [one for one in each if _height(one, height) < _ENDLESS] for name, each in rules.items()}
    low = {
        name: [one for one in each if _height(one, height) == height[name]] for name, each in ended.items()
    }
    high = {name: [one for one in each if one not in low[name]] or each for name, each in ended.items()}
    return Productions(start, ended, low, high)


def _height(alternative: Alternative, height: Mapping[str, int]) -> int:
    return 1 + max((height[one] for one in alternative if one in height), default=0)


def some(productions: Productions, chance: Random, part: float) -> Productions:
    """The table with about this part of its alternatives; at least one that nests the least stays."""
    if part >= 1:
        return productions
    random = chance.random
    rules, low, high = {}, {}, {}
    for name, each in productions.rules.items():
        least = productions.low[name]
        flat = [one for one in least if random() < part] or [choose(chance, least)]
        deep = [one for one in productions.high[name] if random() < part] if len(least) < len(each) else []
        rules[name], low[name], high[name] = [*flat, *deep], flat, deep or flat
    return replace(productions, rules=rules, low=low, high=high)


def generate(  # noqa: PLR0913  state of one derivation
    productions: Productions,
    chance: Random,
    eager: int,
    deepest: int,
    longest: int,
    path: Sequence[Step] = (),
    wanted: Wanted | None = None,
) -> str:
    """A text in which rules nest to `eager` where they can, to about `deepest` at most; after `longest`
    characters the rest is as short as it can be. `path` are the first steps from the start on; `wanted` is
    asked at each rule before that."""
    if productions.rates:
        productions.rates.begin()
    made = _expanded(productions, productions.start, chance, (eager, deepest, longest), path, wanted)
    waiting = {at: one for at, one in enumerate(made) if one in productions.asked}
    used = True
    while waiting and used:
        whole = "".join("" if at in waiting else one for at, one in enumerate(made))
        used = False
        for at, one in list(waiting.items()):
            if re.search(rf"(?<![\w\\]){re.escape(one[2:-1])}\b", whole):
                del waiting[at]
                rule = f"<{one[2:]}"
                made[at] = "".join(_expanded(productions, rule, chance, (0, 3, 60), ()))
                used = True
    return "".join("" if at in waiting else one for at, one in enumerate(made))


def _expanded(
    productions: Productions,
    start: str,
    chance: Random,
    bounds: tuple[int, int, int],
    path: Sequence[Step],
    wanted: Wanted | None = None,
) -> list[str]:
    rules, low, high, rates = productions.rules, productions.low, productions.high, productions.rates
    eager, deepest, longest = bounds
    waiting: list[tuple[str, int, Sequence[Step]]] = [(start, 0, path)]
    made: list[str] = []
    length, indent, lines = 0, 0, 0
    while waiting:
        symbol, depth, way = waiting.pop()
        if symbol in rules:
            if wanted and not way and length < longest and depth < deepest:
                way = wanted(symbol)
            if way:
                chosen, at = way[0]
            else:
                options = rules if eager <= depth < deepest else high if depth < eager else low
                alternatives = (options if length < longest else low)[symbol]
                chosen = rates.choose(symbol, alternatives, chance) if rates else choose(chance, alternatives)
                at = -1
            if rates:
                rates.note(symbol, chosen)
            for index in range(len(chosen) - 1, -1, -1):
                waiting.append((chosen[index], depth + 1, way[1:] if index == at else ()))
        elif symbol == LINE:
            made.append("\n" + "    " * indent)
            lines += 1
        elif symbol == DEEPER:
            indent += 1
        elif symbol == SHALLOWER:
            indent -= 1
        elif symbol == SERIAL:
            made.append(str(lines))
        else:
            made.append(symbol)
            length += len(symbol)
    return made


def generator(productions: Productions) -> InputSource:
    """Programs of every size, each of a part of the table, for any corpus."""

    def generated(_corpus: Sequence[bytes], chance: Random) -> bytes | None:
        table = some(productions, chance, choose(chance, KEPT))
        eager, deepest = int(chance.random() ** 2 * 5), 3 + int(chance.random() ** 2 * 20)
        return finished(generate(table, chance, eager, deepest, size(chance)), productions, chance)

    return generated


def size(chance: Random) -> int:
    """Characters of a program, to `LONGEST`; small ones as often as large ones by the number's digits."""
    return round(math.exp(chance.random() * math.log(LONGEST)))


def finished(made: str, productions: Productions, chance: Random) -> bytes | None:
    """The text as an input; of every fourth program some names are others."""
    if productions.names and chance.random() < 0.25:
        made = called(made, productions.names, chance)
    text = made.encode("utf-8", "replace")
    if productions.rates:
        productions.rates.end(text)
    return text if 0 < len(text) <= MOST_BYTES else None
