"""A small repository with one defect, real trees and real jails over it, and what a fixer is given."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from fleet.config.platform import Platform
from fleet.config.propose import ProposeSection
from fleet.drivers.session import RunOver
from fleet.errors import PatchRefused
from fleet.events.model import TurnUsage
from fleet.findings.fingerprint import identity
from fleet.fix.build_calls import facts_of
from fleet.fix.gate.gate import fix_gate
from fleet.fix.gate.variants import make_variants
from fleet.fix.jails.tree_jail import LIMITS, TreeJails
from fleet.fix.model import CheckedPatch, FixAttempt, FixTask, GateReport, RegressionTest
from fleet.fix.ports import Fixer
from fleet.fix.repository.git import Git
from fleet.fix.repository.patch_rules import check_patch
from fleet.fix.repository.trees import GitTrees
from fleet.jail.bwrap.jail import BwrapJail
from fleet.jail.model import Image, Jail, Limits
from fleet.oracles.model import Exchange
from fleet.oracles.table import judge
from tests.fix import tasks
from tests.fix.repositories import git

ITEM = "c0ffee12ab34"
CANARY = "canary-7d1f-token-of-the-publisher"
SOURCE = '''"""A compiler of enums and functions."""

import sys

MODULE = bytes.fromhex("0061736d01000000")


def compile(source):
    text = source.strip()
    if text.startswith("fn "):
        return MODULE
    if not text.startswith("enum ") or "{" not in text or "}" not in text:
        raise SyntaxError("expected an item")
    body = text[text.index("{") + 1 : text.index("}")]
    names = [name.strip() for name in body.split(",") if name.strip()]
    if names[0].startswith("0"):
        raise SyntaxError("expected a name")
    return MODULE


def main():
    try:
        sys.stdout.buffer.write(compile(sys.stdin.buffer.read().decode("utf-8", "replace")))
    except SyntaxError as error:
        print("error:", error, file=sys.stderr)
        return 1
    except Exception as error:
        print("thread 'main' panicked at src/compiler.py:16:", repr(error), file=sys.stderr)
        return 101
    return 0


if __name__ == "__main__":
    sys.exit(main())
'''
OWN_TEST = """import unittest

from src.compiler import MODULE, compile


class Own(unittest.TestCase):
    def test_two(self):
        self.assertEqual(compile("enum E{A,B}"), MODULE)

    def test_a_name_is_expected(self):
        self.assertRaises(SyntaxError, compile, "enum E{0}")
"""
FILES = {
    "src/__init__.py": "",
    "src/compiler.py": SOURCE,
    "tests/__init__.py": "",
    "tests/test_own.py": OWN_TEST,
}


def make_repository(folder: Path, **changed: str) -> str:
    """A repository with these files in one commit; its URL."""
    for path, text in (FILES | changed).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-q", "-m", "first"]):
        git(folder, *words)
    return folder.as_uri()


def task(url: str, limits: ProposeSection, *, title: str = "an enum without variants panics") -> FixTask:
    on = tasks.repository(
        url,
        test=["{python}", "-m", "unittest", "-q", "tests.test_own"],
        timeout_s=10,
        regression={
            "path": "tests/test_qa_{item}.py",
            "template": "pytest-compiler",
            "command": ["{python}", "-m", "pytest", "-q", "-p", "no:cacheprovider", "{path}"],
        },
        compiler={"command": ["{python}", "-I", "-S", "{tree}/src/compiler.py"]},
    )
    sender = "0x" + "5e" * 20
    one = tasks.item(ITEM, title=title, senders=(sender,))
    return tasks.task(on, one, limits=limits, run="run1", sender=sender)


TEST = RegressionTest(f"tests/test_qa_{ITEM}.py", "def test(): pass\n", f"QA-FLEET {ITEM} SHOWN:")
"""Where the gate's test is; for attempts that are judged by the patch alone."""


@dataclass
class Purse:
    """A budget in memory; RunOver once `tokens` are spent."""

    left_s: float = 60.0
    tokens: int = 1_000_000
    charged: list[TurnUsage | None] = field(default_factory=list)

    def seconds(self) -> float:
        if self.left_s <= 0:
            raise RunOver("budget_exceeded", "no time is left")
        return self.left_s

    async def reserve(self, tokens: int) -> Purse:
        if tokens > self.tokens:
            raise RunOver("budget_exceeded", "tokens")
        return self

    async def settle(self, usage: TurnUsage | None) -> None:
        self.charged.append(usage)
        if usage:
            self.tokens -= (usage.input_tokens or 0) + (usage.output_tokens or 0)


@dataclass(frozen=True)
class Attempted:
    """The rule that refused a patch, "" for one that was checked."""

    rule: str
    words: str
    said: FixAttempt
    patch: CheckedPatch | None = None


@dataclass(frozen=True)
class Bench:
    """Trees and jails of one state directory."""

    state: Path
    limits: Limits = LIMITS

    def jail(self, image: Image) -> Jail:
        (self.state / "spool").mkdir(exist_ok=True)
        return BwrapJail(image, pool=0, spool=self.state / "spool")

    @property
    def jails(self) -> TreeJails:
        return TreeJails(self.jail, PLATFORM, self.limits)

    @property
    def trees(self) -> GitTrees:
        return GitTrees(Git(), self.state)

    async def attempt(self, one: FixTask, fixer: Fixer) -> Attempted:
        """One attempt up to its checked patch, without the other steps of the gate."""
        async with self.trees.open(one) as tree:
            await tree.put(TEST.path, TEST.text.encode())
            said = FixAttempt("")
            try:
                said = await fixer.fix(one, tree, self.jails, ())
                text = await tree.diff(without=[TEST.path])
                patch = check_patch(
                    text, base=tree.base, test=TEST, repository=one.repository, limits=one.limits
                )
            except PatchRefused as refused:
                return Attempted(refused.rule, str(refused), said)
            return Attempted("", "", said, patch)

    async def gate(self, one: FixTask, fixer: Fixer) -> GateReport:
        """The whole gate, on the item as a run of the fleet would name it."""
        async with self.trees.open(one) as tree:
            (result,) = await self.jails.ask(tree.path, one, one.calls)
        (call,) = one.calls
        (found,) = judge((Exchange(call.tool, call.args, result),), facts_of(PLATFORM))
        name = identity(found.surface, found.sighting, one.calls)
        return await fix_gate(
            replace(one, item=replace(one.item, names=(name,))),
            trees=self.trees,
            jails=self.jails,
            fixer=fixer,
            platform=PLATFORM,
            check_patch=check_patch,
            make_variants=make_variants,
            note=lambda step: None,
        )


PLATFORM = Platform.model_validate(
    {
        "compiler": {"command": ["rustlite"], "sample": "fn frame(t: i32) -> i32 { t }"},
        "name": "sample",
        "chain": {"rpc": "http://127.0.0.1:1/", "id": 1, "diamond": "0x" + "d1" * 20},
    }
)
