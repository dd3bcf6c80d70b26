"""A grammar in Lark's notation, for a search: as a table of productions for the guest, and as examples.

Lark and Hypothesis are the extra `fuzz`; they are imported when a target names a grammar.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fleet.errors import FleetError
from sandbox.fuzz.inputs.productions import DEEPER, LINE, SHALLOWER, parse

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy
    from lark import Lark
    from lark.lexer import Pattern

TERMINAL_EXAMPLES = 24
"""Texts that stand in the table for a terminal which is a regular expression."""
LONGEST_TERMINAL = 64
_LAYOUT = {"_INDENT": DEEPER, "_DEDENT": SHALLOWER, "_NEWLINE": LINE}
"""What a grammar of an indented language declares for its indenter, and how a text shows it."""


class BadGrammar(FleetError):
    """The text is not a grammar from which a program can be made."""


def productions(grammar: str, start: str = "start") -> str:
    """The table of sandbox/fuzz/inputs/productions.py in JSON, the same for the same grammar. Raises
    BadGrammar.

    A rule's tokens are written with a blank between them where the grammar ignores blanks.
    """
    made = _lark(grammar, start)
    blank = [" "] if made.ignore_tokens else []
    terminals = {one.name: one for one in made.terminals}
    rules: dict[str, list[list[str]]] = {}
    for rule in made.rules:
        alternative: list[str] = []
        for symbol in rule.expansion:
            name = f"<{symbol.name}>"
            if symbol.is_term and symbol.name in _LAYOUT and symbol.name not in terminals:
                alternative.append(_LAYOUT[symbol.name])
            else:
                alternative += [name, *blank] if symbol.is_term else [name]
        rules.setdefault(f"<{rule.origin.name}>", []).append(alternative)
    for name, terminal in terminals.items():
        rules[f"<{name}>"] = [[text] for text in _texts(terminal.pattern)]
    written = json.dumps({"start": f"<{start}>", "rules": rules}, ensure_ascii=False, sort_keys=True)
    try:
        parse(written)
    except ValueError as error:
        raise BadGrammar(f"no program comes of this grammar: {error}") from None
    return written


def examples(grammar: str, count: int, seed: int, start: str = "start") -> tuple[str, ...]:
    """At most `count` distinct programs by Hypothesis, the same for the same seed and versions. Raises
    BadGrammar."""
    from hypothesis import strategies as st
    from hypothesis.errors import HypothesisException
    from hypothesis.extra.lark import from_lark

    made = _lark(grammar, start)
    texts = {one.name: _terminal(one.pattern) for one in made.terminals}
    texts |= {name: st.just(_LAYOUT.get(name, "")) for name in _declared(made)}
    if made.ignore_tokens:  # two words that the grammar takes for two, a compiler takes for one
        texts = {name: each.map(lambda text: f"{text} ") for name, each in texts.items()}
    try:
        return _drawn(from_lark(made, start=start, explicit=texts), count, seed)
    except (HypothesisException, ValueError) as error:
        raise BadGrammar(f"no programs of this grammar: {error}") from None


def _lark(grammar: str, start: str) -> Lark:
    try:
        from lark import Lark
        from lark.exceptions import LarkError
    except ImportError:
        raise BadGrammar("a grammar needs Lark", remedy="pip install 'qa-fleet[fuzz]'") from None
    try:
        return Lark(grammar, start=start, parser="earley", lexer="dynamic", keep_all_tokens=True)
    except (LarkError, ValueError, AssertionError) as error:
        raise BadGrammar(f"not a grammar in Lark's notation: {error}") from None


def _declared(made: Lark) -> list[str]:
    """Terminals that the grammar uses and does not define."""
    known = {one.name for one in made.terminals}
    used = {one.name for rule in made.rules for one in rule.expansion if one.is_term}
    return sorted(used - known)


def _terminal(pattern: Pattern) -> SearchStrategy[str]:
    from hypothesis import strategies as st

    if pattern.type == "str":
        return st.just(pattern.value)
    return st.from_regex(pattern.to_regexp(), fullmatch=True)


def _texts(pattern: Pattern) -> Sequence[str]:
    """The text of a terminal, or examples of its regular expression, short ones first."""
    from hypothesis.errors import HypothesisException

    if pattern.type == "str":
        return (pattern.value,)
    try:
        found = _drawn(_terminal(pattern), TERMINAL_EXAMPLES, 0)
    except (HypothesisException, ValueError) as error:
        raise BadGrammar(f"no text for the terminal {pattern.value}: {error}") from None
    short = [one for one in found if len(one) <= LONGEST_TERMINAL]
    return sorted(short, key=lambda one: (len(one), one)) or found[:1]


def _drawn(strategy: SearchStrategy[str], count: int, seed: int) -> tuple[str, ...]:
    """Distinct values without lone surrogates, in the order in which they came."""
    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis import seed as seeded

    found: dict[str, None] = {}

    @seeded(seed)
    @settings(
        max_examples=count,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def draw(text: str) -> None:
        if len(found) < count and _encodes(text):
            found[text] = None

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        draw()
    return tuple(found)


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
