"""What the text of an entry says, as features that can be compared. Pure; the words are in wording.toml.

Volatile parts (addresses, hashes, run names, times, amounts) are left out. Identifiers, routes, hosts, codes
and numbers with a unit are *marks*: they tell two defects apart. Other words become concepts with a sign,
which a negation before them turns.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from typing import Any, cast

from fleet.text import clean
from fleet.triage.same.word_atoms import STATUS, Atom, atoms_of
from fleet.triage.same.word_lists import (
    AFTER,
    BREAK,
    FILLER,
    NOT,
    OBJECT,
    RELATIONS,
    WISH,
    WordLists,
    lists,
    stem,
)

MAX_CHARS = 2_048
"""Most characters read of one text: as many as an entry of the log has bytes."""
MAX_WORDS = 120
"""Most words read of one text: bounds what one comparison costs."""
CLAIM = 3
"""Concepts of the sentences that state what is wrong."""
NEAR = 3
"""Concepts on either side of "before" that it relates."""

_PREFIX = re.compile(r"^\s*(?:\[[A-Za-z -]{1,16}\]|(?:bug|feature|feedback|issue)\s*:)\s*", re.IGNORECASE)
_SPLIT = re.compile(r"[^\s,;!?\"“”‘’<>|{}=→—–]+|[,;!?—–→|\n]")
_COMMAND = re.compile(r"(?<![\w.])([a-z]{2,16})(?: ([a-z]{2,16}))? <[a-z]{1,12}>")


@dataclass(slots=True)  # not frozen: that costs a tenth of reading a text
class Wording:
    """One text: concepts with the signs they have (1 said, 2 denied, 3 both), its marks by class, and what it
    says happens before what. `claimed` are
    those of its claim. `alone` are words of no list, `weight` the sum of all weights."""

    signs: dict[str, int]
    marks: dict[str, frozenset[str]]
    claimed: dict[str, frozenset[str]]
    orders: tuple[tuple[str, frozenset[str], frozenset[str]], ...]
    alone: frozenset[str]
    weight: float
    names: tuple[str, ...]
    key: frozenset[Any] = field(compare=False)


class Reader:
    """Reads texts; remembers what each word of them is, up to a bound."""

    KEPT = 65_536

    def __init__(self) -> None:
        self._lists = lists()
        self._special = {*self._lists.alternatives, FILLER, NOT, OBJECT, BREAK, WISH, *RELATIONS}
        self._atoms: dict[str, tuple[Atom, ...]] = {}
        self._names: dict[str, str] = {}
        """The concept of a token that is nothing else, "" for what is left out: most tokens of most texts."""
        self._unlisted: set[str] = set()

    def read(self, title: str, body: str = "") -> Wording:
        """The features of a text; work is bounded for any text."""
        text = title[:MAX_CHARS] if not body else f"{title[:MAX_CHARS]}\n{body[:MAX_CHARS]}"[:MAX_CHARS]
        if not text.isascii():
            text = unicodedata.normalize("NFKC", clean(text, MAX_CHARS, newlines=True)).replace("’", "'")
        if match := _PREFIX.match(text):
            text = text[match.end() :]
        tokens = _SPLIT.findall(text)[:MAX_WORDS]
        names = list(map(self._names.get, tokens))
        if None not in names and "<" not in text:
            return self._plain(cast(list[str], names))
        atoms: list[Atom] = []
        found = _COMMAND.findall(text) if "<" in text else ()
        for word in (word for match in found for word in match if word):
            concepts = self._lists.concepts
            name, _ = concepts.get(word) or concepts.get(stem(word)) or (stem(word), 1)
            if name[0] != "~" and name not in self._lists.generic:
                atoms.append(("command", name, ""))
        for token in tokens:
            known = self._atoms.get(token)
            if known is None:
                known = self._remember(token)
            atoms += known
        return self._wording(atoms)

    def _remember(self, token: str) -> tuple[Atom, ...]:
        if len(self._atoms) >= self.KEPT:
            for kept in (self._atoms, self._names, self._unlisted):
                kept.clear()
        found = self._atoms[token] = tuple(self._resolved(atom) for atom in atoms_of(token))
        kind, name, _ = found[0] if found else ("+", "", "")
        if len(found) < 2 and kind in "+?" and name not in self._special:
            self._names[token] = name
            if kind == "?":
                self._unlisted.add(name)
        return found

    def _resolved(self, atom: Atom) -> Atom:
        """A word that begins no phrase as its concept, once for all texts."""
        kind, word, stemmed = atom
        if kind != "w" or stemmed in self._lists.phrases:
            return atom
        name, sign = self._lists.concepts.get(word) or self._lists.concepts.get(stemmed) or ("", 0)
        return ("+-"[sign - 1], name, stemmed) if name else ("?", stemmed, stemmed)

    def _wording(self, atoms: list[Atom]) -> Wording:
        told = _Telling(self._lists)
        at, end = 0, len(atoms)
        while at < end:
            kind, value, _ = atoms[at]
            if kind in "+-?":
                told.concept(value, 2 if kind == "-" else 1)
                if kind == "?":
                    told.alone.add(value)
                at += 1
                continue
            if kind == "w":
                at += self._word(told, atoms, at)
                continue
            if kind == ".":
                told.stop()
            elif kind == ",":
                told.pause()
            elif kind == "n":
                self._number(told, atoms, at)
            else:
                told.mark(kind, value)
            at += 1
        return told.wording()

    def _plain(self, names: list[str]) -> Wording:
        """The same, sooner, for words alone: none that denies, ends a clause, or begins a phrase."""
        signs = dict.fromkeys(names, 1)
        signs.pop("", None)
        data, size = self._lists, len(signs)
        alone = frozenset(self._unlisted.intersection(signs))
        light = len(data.generic.intersection(signs))
        weight = light * data.weights["generic"] + (size - light) * data.weights["word"]
        return Wording(signs, {}, {}, (), alone, weight, tuple(signs), frozenset(signs))

    def _word(self, told: _Telling, atoms: list[Atom], at: int) -> int:
        """Tell the word or phrase at this place; how many atoms it has."""
        _, word, stemmed = atoms[at]
        for parts, name, sign in self._lists.phrases.get(stemmed, ()):
            size = len(parts)
            if tuple(one for _, _, one in atoms[at : at + size]) == parts:
                told.concept(name, sign)
                return size
        if known := self._lists.concepts.get(word) or self._lists.concepts.get(stemmed):
            told.concept(*known)
        else:
            told.concept(stemmed, 1)
            told.alone.add(stemmed)
        return 1

    def _number(self, told: _Telling, atoms: list[Atom], at: int) -> None:
        value = atoms[at][1]
        following = atoms[at + 1][2] if at + 1 < len(atoms) else ""
        leading = atoms[at - 1][2] if at else ""
        if STATUS.fullmatch(value):
            name, sign = self._lists.concepts.get(value, (f"status {value[:3]}", 1))
            told.concept(name, sign)
            told.mark("status", value[:3])
        elif following in self._lists.units_after:
            told.mark(f"number of {following}", value)
        elif leading in self._lists.units_before:
            told.mark(f"{leading} number", value)


class _Telling:
    """Gathers the features of one text, sentence by sentence.

    The first sentence with `CLAIM` concepts is the claim: what it denies, orders and names tells defects
    apart; later sentences are often logs and wishes. One that wishes ("should", "expected") denies nothing.
    """

    def __init__(self, data: WordLists) -> None:
        self._data = data
        self._signs: dict[str, int] = {}
        self._marks: dict[str, set[str]] = {}
        self._claimed: dict[str, set[str]] = {}
        self._orders: list[tuple[str, frozenset[str], frozenset[str]]] = []
        self.alone: set[str] = set()
        self._sentence: list[tuple[str, int]] = []
        self._clauses: list[list[str]] = [[]]
        self._relations: list[tuple[str, int, int]] = []
        self._negated = self._told = 0
        self._wish = self._object = self._word = False

    def concept(self, name: str, sign: int) -> None:
        after, self._word = self._word, name[0] != "~"
        if name[0] != "~":
            if self._negated:
                self._negated, self._object = 0, False
                sign = 3 - sign
            self._sentence.append((name, sign))
            self._clauses[-1].append(name)
            if kind := self._data.alternatives.get(name):
                self.mark(kind, name)
        elif name == NOT:
            self._negated = 1
        elif name == OBJECT:
            self._negated, self._object = 1, after
        elif name == FILLER:
            self._denied_back()
        elif name == BREAK:
            self.pause()
        elif name == WISH:
            self._wish = True
        elif name in RELATIONS:
            self._negated = 0
            self._relations.append((name, len(self._clauses) - 1, len(self._clauses[-1])))

    def _denied_back(self) -> None:
        """A "nothing" that no word follows denies the word before it: "moves nothing and ..."."""
        if self._object:
            name, sign = self._sentence[-1]
            self._sentence[-1] = (name, 3 - sign)
            self._negated = 0
        self._object = False

    def mark(self, kind: str, value: str) -> None:
        self._marks.setdefault(kind, set()).add(value)
        if self._told < CLAIM:
            self._claimed.setdefault(kind, set()).add(value)

    def pause(self) -> None:
        """The end of a clause."""
        self._denied_back()
        self._negated, self._word = 0, False
        self._clauses.append([])

    def stop(self) -> None:
        """The end of a sentence."""
        self._denied_back()
        for name, sign in self._sentence:
            self._signs[name] = self._signs.get(name, 0) | (3 if self._wish else sign)
        if self._told < CLAIM and not self._wish:
            self._orders += [self._order(*one) for one in self._relations[:4]]
        self._told += len(self._sentence)
        self._sentence, self._clauses, self._relations = [], [[]], []
        self._wish, self._negated, self._word = False, 0, False

    def wording(self) -> Wording:
        self.stop()
        marks = {kind: frozenset(values) for kind, values in self._marks.items()}
        claimed = {kind: frozenset(values) for kind, values in self._claimed.items()}
        orders = tuple(one for one in self._orders if one[1] and one[2])
        weights, generic = self._data.weights, self._data.generic
        light = sum(name in generic for name in self._signs)
        weight = light * weights["generic"] + (len(self._signs) - light) * weights["word"]
        said = self._signs if all(sign == 1 for sign in self._signs.values()) else self._signs.items()
        key = frozenset((*said, *marks.items(), *orders))
        alone = frozenset(self.alone)
        names = (*self._signs, *(f"{kind}={mark}" for kind, found in marks.items() for mark in found))
        return Wording(self._signs, marks, claimed, orders, alone, weight, names, key)

    def _order(self, name: str, clause: int, at: int) -> tuple[str, frozenset[str], frozenset[str]]:
        words = self._clauses[clause]
        left, right = frozenset(words[max(0, at - NEAR) : at]), frozenset(words[at : at + NEAR])
        sides = (left - right, right - left)
        return (RELATIONS[name], *(sides[::-1] if name == AFTER else sides))
