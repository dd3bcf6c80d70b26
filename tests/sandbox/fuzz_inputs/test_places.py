"""Every pair of constructs has programs, and every form of spelling."""

from __future__ import annotations

import re
from dataclasses import replace
from random import Random

from sandbox.fuzz.inputs import spelling, tokens
from sandbox.fuzz.inputs.material import Edit, Material, mutation
from sandbox.fuzz.inputs.places import constructs, contexts, each_place, in_turn, pairs, places
from sandbox.fuzz.inputs.productions import read
from sandbox.fuzz.inputs.rates import AlternativeRates
from sandbox.fuzz.inputs.tokens import text

TABLE = read("start: f <e>\ne: (<e>)\n    | <s>\ns: a\n    | - <e>\n    | <e> <op> <e>\nop: +\n    | *\n")


def test_what_hands_on_is_part_of_the_way() -> None:
    assert [way[-1][0] for way in constructs(TABLE, "<e>")] == [
        ("a",),
        ("- ", "<e>"),
        ("<e>", " ", "+", " ", "<e>"),
        ("<e>", " ", "*", " ", "<e>"),
    ]
    assert len(contexts(TABLE)[1]) == 6  # after f, after -, and on both sides of each operator


def test_every_pair_is_made() -> None:
    source, chance = places(TABLE, "generic"), Random(1)
    made = {(source((), chance) or b"").decode() for _ in range(2000)}
    plain = {re.sub(r"[()]", "", one) for one in made}
    short = {"f a", "f - a", "f a + a", "f a * a", "f - - a", "f - a + a", "f - a * a"}
    left = {f"f {inner} {sign} a" for inner in ("- a", "a + a", "a * a") for sign in "+*"}
    right = {f"f a {sign} {inner}" for inner in ("- a", "a + a", "a * a") for sign in "+*"}
    assert short | left | right <= plain


def test_each_pair_comes_once_before_any_comes_again() -> None:
    source, chance = each_place(read("start: f <e>\n    | g <e>\ne: a\n    | b\n    | c\n")), Random(1)
    first, again = ([(source((), chance) or b"").decode() for _ in range(6)] for _ in range(2))
    assert sorted(first) == sorted(again) == ["f a", "f b", "f c", "g a", "g b", "g c"]
    assert first != again


def test_few_pairs_are_of_constructs_with_places_of_their_own() -> None:
    """Six places and four constructs at each, of which one is an atom."""
    source, chance = each_place(TABLE), Random(1)
    made = [(source((), chance) or b"").decode() for _ in range(400)]
    assert all(one.startswith("f ") and len(one) < 12 for one in made)
    nested = sum(len(re.findall(r"[-+*]", one)) > 1 for one in made)
    assert 100 < nested < 240  # most were without the share


def test_what_is_always_refused_is_seldom_made() -> None:
    rates = AlternativeRates()
    table = replace(read("start: f <e>\ne: a\n    | b\n    | c\n"), rates=rates)
    source, chance = each_place(table), Random(1)
    for _ in range(60):
        made = source((), chance) or b""
        rates.judged(made, accepted=made != b"f b")
    assert rates.share("<e>", ("b",)) < 0.2
    assert rates.share("<e>", ("a",)) == rates.share("<e>", ("c",)) == 1.0
    made_then = [source((), chance) for _ in range(100)]
    assert made_then.count(b"f b") < 15
    assert min(made_then.count(b"f a"), made_then.count(b"f c")) > 40


SMALL = "start: f <e>\n    | g <e>\ne: a\n    | b\n    | c\n    | d\n"


def test_programs_of_pairs_have_each_once_before_any_comes_again() -> None:
    source, chance = pairs(read(SMALL)), Random(1)
    first, again = ({(source((), chance) or b"").decode() for _ in range(8)} for _ in range(2))
    assert first == again == {f"{outer} {inner}" for outer in "fg" for inner in "abcd"}


def test_a_program_has_many_pairs_while_there_are_some_left() -> None:
    source, chance = pairs(TABLE), Random(2)
    made = [(source((), chance) or b"").decode() for _ in range(12)]
    assert max(map(len, made)) > 40
    plain = {re.sub(r"[()]", "", one) for one in made}
    assert any("- a" in one for one in plain)
    assert {"+", "*"} <= set("".join(plain))


def test_pairs_of_a_program_that_was_not_accepted_come_once_more() -> None:
    rates = AlternativeRates()
    source, chance = pairs(replace(read(SMALL), rates=rates)), Random(1)
    made = []
    for _ in range(9):
        made.append(source((), chance) or b"")
        if made[-1] != b"f b":
            rates.judged(made[-1], accepted=True)
    assert sorted(made) == sorted(
        [b"f b", *(f"{outer} {inner}".encode() for outer in "fg" for inner in "abcd")]
    )


def test_turns_begin_far_from_each_other() -> None:
    order = in_turn(range(1000), 0)
    assert sorted(order) == list(range(1000))
    assert in_turn(range(1000), 3)[0] == order[int(1000 * (3 * 0.618034 % 1))]
    part = {one for turn in range(7, 15) for one in in_turn(range(1000), turn)[:200]}
    assert len(part) == 1000  # eight rounds of a fifth each


def test_a_table_without_a_pair_makes_nothing() -> None:
    assert each_place(read("start: a\n    | b\n"))((), Random(1)) is None


def test_rates_say_nothing_of_what_is_not_of_the_table() -> None:
    rates = AlternativeRates()
    rates.judged(b"a", accepted=False)
    assert rates.share("<e>", ("a",)) == 1.0
    rates.begin()
    rates.note("<e>", ("a",))
    rates.end(b"a")
    rates.judged(b"b", accepted=False)
    assert rates.share("<e>", ("a",)) == 1.0


def after(edit: Edit, source: str, family: str = "rust") -> set[str]:
    made = set()
    for seed in range(1500):
        parts = list(tokens.tokens(source.encode(), family))
        edit(parts, Material((source.encode(),), family), Random(seed))
        made.add(text(parts).decode())
    return made


def test_a_name_is_another_one_everywhere() -> None:
    found = after(spelling.renamed, "let abc = abc + 1;")
    names = {one.split()[1] for one in found}
    assert found == {f"let {name} = {name} + 1;" for name in names}
    assert max(map(len, names)) > 128
    assert any(
        not name.isascii() for name in (one.split()[1] for one in after(spelling.renamed, "let a", "c"))
    )
    assert all("($" in one for one in after(spelling.renamed, "($abc)", "wat"))


def test_names_that_are_there_are_called_something_else_or_what_another_one_is() -> None:
    made = {spelling.called("let i = k;", ("i", "k", "x"), Random(seed)) for seed in range(300)}
    assert "let i = k;" not in made
    assert {"let i = i;", "let k = k;"} <= made
    assert any(re.fullmatch(r"let _[a-z]\w* = k;", one) for one in made)


def test_numbers_strings_and_blanks_take_their_forms() -> None:
    assert {"0xff", "0xFF", "0b11111111", "00255", "2_55", "255i64"} <= after(spelling.respelled, "255")
    lengths = {len(one) - 2 for one in after(spelling.stretched, '"abc"')}
    assert {0, 1, 64, 65, 257, 4096} <= lengths | {1}
    found = after(spelling.blanks, "a b")
    assert {"a/**/ b", "a /**/b", "a b // é漢", "a \r\nb", "a //\nb"} & found >= {"a b // é漢", "a //\nb"}
    assert {"f(a,)", "f(a;)"} <= after(spelling.commas, "f(a)")


def test_a_mutation_is_another_program() -> None:
    source = mutation((spelling.respelled, spelling.commas), "rust")
    made = {source((b"f 1",), Random(seed)) for seed in range(200)}
    assert b"f 1" not in made
    assert b"f 0x1" in made


def test_large_sources_are_remembered_within_a_bound() -> None:
    sources = [b" " * 100_000 + str(number).encode() for number in range(12)]
    first = tokens.parsed(sources[0], "rust")
    assert tokens.parsed(sources[0], "rust") is first
    for one in sources:
        tokens.parsed(one, "rust")
    assert tokens.parsed(sources[-1], "rust") is tokens.parsed(sources[-1], "rust")
    assert tokens.parsed(sources[0], "rust") is not first
