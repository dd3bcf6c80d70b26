"""Types from bytecode: what the analysis says, in a real jail too; a failing child leaves types unknown."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

from fleet.devnet import artifact
from fleet.jail.bwrap.jail import BwrapJail
from fleet.jail.model import End, Image
from sandbox.chain import evm_types
from sandbox.chain.evm_types import CodeFunction

OWNER = "0x8da5cb5b"
TRANSFER = "0xf2fde38b"


def deployed(name: str) -> bytes:
    """The code that an artifact's deployment leaves, its constructor cut off."""
    return artifact.load(name).code.partition(b"\xf3\xfe")[2]


CODE = deployed("OwnershipFacet")


def test_types_mutability_and_what_is_read() -> None:
    (found,) = evm_types.analysed([CODE])
    assert (found[OWNER].arguments, found[OWNER].mutability) == ("", "view")
    assert (found[TRANSFER].arguments, found[TRANSFER].mutability) == ("address", "nonpayable")
    assert found[OWNER].reads


@pytest.mark.anyio
@pytest.mark.jail
async def test_in_a_jail_as_beside_it(tmp_path: Path) -> None:
    image = Image(mounts=((Path(__file__).parent, "targets"),), guest="targets.evm_types_guest")
    jail = BwrapJail(image, pool=0, spool=tmp_path)
    line = json.dumps([CODE.hex(), "fe", ""]).encode()
    try:
        outcome = await jail.call(line + b"\n", deadline_s=30)
    finally:
        await jail.aclose()
    assert (outcome.end, outcome.code) == (End.EXITED, 0)
    said, *none = json.loads(outcome.stdout)
    assert (said[TRANSFER]["arguments"], said[TRANSFER]["mutability"]) == ("address", "nonpayable")
    assert none == [{}, {}]


CHILDREN = {
    "dies after a line": "import os; input(); print(GOOD, flush=True); os.abort()",
    "does not end": "import time; input(); print(GOOD, flush=True); time.sleep(60)",
    "floods": "input(); print(GOOD)\nwhile True: print('x' * 65536)",
    "eats memory": "input(); print(GOOD, flush=True); bytearray(1 << 30)",
}
GOOD = '{"8da5cb5b": ["address", "view", ["0:0"]]}'
LIES = {
    "not JSON": "{",
    "another type": "[]",
    "a number": '{"8da5cb5b": [1, "view", []]}',
    "an unknown mutability": '{"8da5cb5b": ["", "lovely", []]}',
    "a long selector": '{"8da5cb5b00": ["", "view", []]}',
    "markup for types": '{"8da5cb5b": ["<b>", "view", []]}',
}


def analysed_by(child: str, monkeypatch: pytest.MonkeyPatch, folder: Path) -> list[dict[str, CodeFunction]]:
    script = folder / "child.py"
    script.write_text(f"GOOD = {GOOD!r}\n{child}\n")
    monkeypatch.setattr(evm_types, "_CHILD", script)
    monkeypatch.setattr(evm_types, "WALL_S", 1.0)
    return evm_types.analysed([CODE, CODE])


@pytest.mark.parametrize("child", CHILDREN)
def test_a_child_that_fails_leaves_what_it_said_before(
    child: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first, second = analysed_by(CHILDREN[child], monkeypatch, tmp_path)
    assert first == {OWNER: CodeFunction("address", "view", ("0:0",))}
    assert second == {}


@pytest.mark.parametrize("lie", LIES)
def test_what_is_not_well_formed_is_unknown(lie: str) -> None:
    assert evm_types._read(LIES[lie].encode()) == {}


def test_codes_beyond_the_limits_are_not_analysed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert evm_types.analysed([b"\0" * (evm_types.MAX_CODE + 1)]) == [{}]
    monkeypatch.setattr(evm_types, "MAX_ALL", len(CODE))
    assert [bool(one) for one in evm_types.analysed([CODE, CODE])] == [True, False]


def test_an_answer_stays_within_what_a_jail_may_write(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    many = "import json; input(); print(json.dumps({f'{n:08x}': ['', 'view', []] for n in range(900)}))"
    first, second = analysed_by(f"{many}\n{many.partition('input(); ')[2]}", monkeypatch, tmp_path)
    assert (len(first), len(second)) == (900, evm_types.MAX_DESCRIBED - 900)


def test_without_the_library_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert evm_types.analysed([CODE]) == [{}]
