"""Programs from tables of productions: the families' own, and one made of a Lark grammar."""

from __future__ import annotations

import re
from random import Random

import pytest

from fleet.devnet.compiler.rustlite.compile import compile_source
from fleet.devnet.compiler.rustlite.diagnostic import CompileError
from fleet.fuzzing.grammar import BadGrammar, examples, productions
from sandbox.fuzz.inputs.productions import generate, generator, of_family, parse, read, some
from sandbox.fuzz.inputs.table import seeds, strategies
from sandbox.programs.program import Program

RUST = Program(family="rust")
LARK = """
start: stmt+
stmt: "let" NAME "=" expr ";"
?expr: NAME | INT | "(" expr ")" | "-" expr
NAME: /[a-z]{1,3}/
INT: /[0-9]{1,4}/
%ignore " "
"""


def accepted(source: bytes) -> bool:
    try:
        compile_source(source)
    except CompileError:
        return False
    return True


def rate(name: str, count: int) -> float:
    source, corpus, chance = strategies(RUST, "compiler", "")[name], seeds(RUST, "compiler"), Random(3)
    made = [one for _ in range(2 * count) if (one := source(corpus, chance)) is not None and len(one) < 4000]
    return sum(map(accepted, made[:count])) / count


def test_typed_programs_are_mostly_accepted() -> None:
    assert rate("typed", 60) >= 0.8


def test_most_programs_with_a_pair_are_accepted() -> None:
    assert rate("places", 60) >= 0.8


def test_a_fifth_of_the_mix_is_accepted() -> None:
    names = [name for name in strategies(RUST, "compiler", "") if name != "pump"]
    assert sum(rate(name, 25) for name in names) / len(names) >= 0.2


def test_most_of_the_suspicious_programs_are_accepted() -> None:
    found = [accepted(one) for one in seeds(RUST, "compiler")]
    assert 0.7 <= sum(found) / len(found) < 0.9


def test_lines_of_a_table_are_rules_alternatives_and_layout() -> None:
    table = read('# a comment\nstart: if <b>:\\><s>\\<\n    | <T>\ns: \\nx = "\\\\"\nb: a\n   | \n')
    assert table.rules == {
        "<start>": [("if ", "<b>", ":", "\x0e", "<s>", "\x0f"), ("<T>",)],
        "<s>": [("\n", 'x = "', "\\", '"')],
        "<b>": [("a",), ()],
    }
    made = {generate(table, Random(seed), 0, 9, 99) for seed in range(40)}
    assert made == {'if a:\n    x = "\\"', 'if :\n    x = "\\"', "<T>"}


def test_a_rule_that_is_asked_for_is_there_where_its_name_is() -> None:
    table = read("start: <?K><?L>f(<a>)\na: 1\n    | K\nK: K=L;\nL: L=2;\n")
    assert {generate(table, Random(seed), 0, 9, 99) for seed in range(40)} == {"f(1)", "K=L;L=2;f(K)"}


def test_an_operator_is_an_alternative_and_a_serial_is_the_line() -> None:
    table = read("start: <b><b>\nb: x\\# <op> 1\\n\nop: +\n    | <<\n")
    assert table.rules["<b>"] == [("x", "\x10", " ", "+", " 1", "\n"), ("x", "\x10", " ", "<<", " 1", "\n")]
    assert "x0 + 1\nx1 << 1\n" in {generate(table, Random(seed), 0, 9, 99) for seed in range(40)}


def test_names_of_a_table_get_other_spellings() -> None:
    source = generator(read("%names abc\nstart: let abc = abc.d;\n"))
    made = [(source((), Random(seed)) or b"").decode() for seed in range(400)]
    assert 0.6 < made.count("let abc = abc.d;") / len(made) < 0.9
    names = {one.split()[1] for one in made}
    assert all(one == f"let {one.split()[1]} = {one.split()[1]}.d;" for one in made)
    assert max(map(len, names)) > 64 > 2 > min(map(len, names))
    for form in (r"[A-Z]", r"_\w", r".*[a-z]\d", r".*_"):
        assert any(re.fullmatch(form + ("" if form[-1] in "d_" else ".*"), name) for name in names), form


def test_a_part_of_a_table_keeps_an_end_and_leaves_much_out() -> None:
    table = of_family("rust")
    assert table is not None
    made = [some(table, Random(seed), 0.2) for seed in range(30)]
    for one in made:
        assert set(one.rules) == set(table.rules)
        assert all(one.low[name] and set(one.low[name]) <= set(table.low[name]) for name in table.rules)
        assert sum(map(len, one.rules.values())) < 0.5 * sum(map(len, table.rules.values()))
    assert len({str(one.rules) for one in made}) == 30
    assert some(table, Random(1), 1.0) is table


@pytest.mark.parametrize("family", ["rust", "solidity", "vyper", "typescript", "wat"])
def test_programs_have_little_in_common_and_most_are_small(family: str) -> None:
    source, chance = strategies(Program(family=family), "compiler", "")["typed"], Random(4)
    made = [(source((), chance) or b"").decode() for _ in range(120)]
    words = [set(re.findall(r"\w{2,}|[^\w\s]", one)) for one in made]
    common = [word for word in set().union(*words) if sum(word in one for one in words) > 0.97 * len(words)]
    assert len(common) < (32 if family in ("wat", "vyper") else 18), sorted(common)
    sizes = sorted(map(len, made))
    assert sizes[-1] > 3 * sizes[60]


@pytest.mark.parametrize("lines", ["start a", "  | a", "start: a\n  a"])
def test_a_line_that_is_neither_is_an_error(lines: str) -> None:
    with pytest.raises(ValueError, match="is not a"):
        read(lines)


@pytest.mark.parametrize("text", ["[]", "{}", '{"start": "<s>", "rules": {"<s>": [3]}}', "not JSON"])
def test_what_is_not_a_table_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"not a table|Expecting value"):
        parse(text)


def test_depth_and_length_have_a_bound() -> None:
    table = parse('{"start": "<s>", "rules": {"<s>": [["a"], ["(", "<s>", "<s>", ")"]]}}')
    for seed in range(200):
        made = generate(table, Random(seed), 4, 6, 40)
        depth = max(made[:end].count("(") - made[:end].count(")") for end in range(len(made) + 1))
        assert 4 <= depth <= 6
        assert len(made) < 60


@pytest.mark.parametrize("family", ["solidity", "typescript", "vyper", "wat"])
def test_most_programs_of_a_loose_table_are_small_and_no_two_alike(family: str) -> None:
    source, chance = strategies(Program(family=family), "compiler", "")["loose"], Random(5)
    made = [(source((), chance) or b"").decode() for _ in range(300)]
    assert len(set(made)) > 280
    assert sorted(map(len, made))[150] < 200


TABLES = [
    *((family, False) for family in ("rust", "solidity", "vyper", "typescript", "wat")),
    *((family, True) for family in ("solidity", "typescript", "vyper", "wat")),
]


@pytest.mark.parametrize(("family", "loose"), TABLES)
def test_every_rule_of_a_family_is_in_reach(family: str, loose: bool) -> None:
    table = of_family(family, loose=loose)
    assert table is not None
    reached, waiting = {table.start}, [table.start]
    while waiting:
        for one in table.rules[waiting.pop()]:
            names = [f"<{name[2:]}" if name in table.asked else name for name in one]
            waiting += [name for name in names if name in table.rules and name not in reached]
            reached |= set(waiting)
    assert reached == set(table.rules)


def test_a_lark_grammar_becomes_a_table_whose_texts_it_accepts() -> None:
    lark = pytest.importorskip("lark")
    table = productions(LARK)
    assert table == productions(LARK)
    source = generator(parse(table))
    parser = lark.Lark(LARK, parser="earley")
    made = {source((), Random(seed)) or b"" for seed in range(60)}
    assert len(made) > 30
    for one in made:
        parser.parse(one.decode())


def test_examples_of_a_grammar_are_distinct_and_the_same_for_the_same_seed() -> None:
    lark = pytest.importorskip("lark")
    found = examples(LARK, 20, 4)
    assert found == examples(LARK, 20, 4) != examples(LARK, 20, 5)
    assert 10 <= len(found) == len(set(found)) <= 20
    for one in found:
        lark.Lark(LARK, parser="earley").parse(one)


def test_an_indented_grammar_keeps_its_layout() -> None:
    grammar = 'start: "if" "x" ":" _INDENT "y" _DEDENT\n%declare _INDENT _DEDENT\n%ignore " "'
    made = generator(parse(productions(grammar)))((), Random(1))
    assert made == b"if x : y "


@pytest.mark.parametrize("grammar", ["start: (", "start: missing", "start: start", ""])
def test_what_no_program_comes_of_is_an_error(grammar: str) -> None:
    with pytest.raises(BadGrammar):
        productions(grammar)
