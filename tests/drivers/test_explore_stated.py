"""What an explorer asks of a contract as a document states it: each question begins with the document."""

from __future__ import annotations

from typing import Any

from fleet.config import Platform
from fleet.drivers.desk import Question
from fleet.drivers.explore.chain.stated import StatedContract
from fleet.oracles.chain.fourbyte import selector_of

GUIDE = (
    "`tune(uint256)` sets the pitch; for the owner only\n`most()` is the largest coat\n"
    "`paint(uint256,uint256)` paints a hive, from 1 to most(); for the owner of the hive only\n"
    "`keeperOf(uint256)` is the owner of a hive\n`hives()` is how many hives there are; ids from 1 to it\n"
    "`gone(uint256)` is not in the contract; for the owner only\n"
)
HIVE = "0x" + "0" * 24 + "77" * 20
SITE = "http://apiary.test"
PLATFORM = Platform.model_validate(
    {
        "name": "apiary",
        "chain": {"rpc": "http://127.0.0.1:1", "id": 1, "diamond": "0x" + "11" * 20},
        "web": {"site": SITE, "face": SITE + "/of/{name}/", "proxy": SITE},
    }
)
LISTED = dict.fromkeys(
    map(
        selector_of,
        ("tune(uint256)", "most()", "paint(uint256,uint256)", "keeperOf(uint256)", "hives()"),
    ),
    "code",
)


def known() -> StatedContract:
    """With the guide read, as linked from the front page, and the first hive's owner."""
    contract = StatedContract(PLATFORM)
    contract.pages()
    contract.learn(
        "{site}/", {"status": 200, "text": "", "links": ["/guide.md", "http://evil.test/guide.md"]}
    )
    (page,) = contract.pages()
    assert page.steps[0].args == {"url": "{site}/guide.md"}
    contract.learn("{site}/guide.md", {"status": 200, "text": GUIDE})
    contract.values = {
        selector_of("most()"): f"0x{9:064x}",
        selector_of("hives()"): f"0x{1:064x}",
        f"{selector_of('keeperOf(uint256)')}({1:064x})": HIVE,
    }
    return contract


def given(question: Question) -> list[Any]:
    return [step.args.get("args") for step in question.steps if step.tool == "qa_chain"]


def test_reserved_functions_as_a_stranger_and_the_edges_of_a_range_as_the_owner() -> None:
    calls = list(known().calls(LISTED))
    assert all(one.steps[0].args == {"url": "{site}/guide.md"} for _, one in calls)
    assert [(selector, given(one)[-1]) for selector, one in calls if len(one.steps) == 2] == [
        (selector_of("tune(uint256)"), ["1"]),
        (selector_of("tune(uint256)"), [str((1 << 70) + 4_242)]),
        (selector_of("paint(uint256,uint256)"), ["1", "1"]),
    ]
    edges = [one for _, one in calls if len(one.steps) == 3]
    assert [given(one) for one in edges] == [[["1", "1"], ["1", "0"]], [["1", "9"], ["1", "10"]]]
    assert {step.args["sender"] for one in edges for step in one.steps[1:]} == {"0x" + "77" * 20}


def test_without_a_document_nothing_is_asked() -> None:
    contract = StatedContract(PLATFORM)
    assert list(contract.calls(LISTED)) == []
    assert contract.views(LISTED, all_=True) == []
    assert contract.owners(LISTED) == []


def test_a_page_that_was_not_asked_for_is_not_believed() -> None:
    contract = StatedContract(PLATFORM)
    contract.learn("{site}/guide.md", {"status": 200, "text": GUIDE})
    assert list(contract.calls(LISTED)) == []


def test_views_of_one_thing_are_read_together() -> None:
    (question,) = known().views(LISTED, all_=True)
    keeper = selector_of("keeperOf(uint256)")
    assert question.steps[1].args == {
        "watch": [selector_of("hives()"), f"{keeper}({1:064x})", f"{keeper}({2:064x})"]
    }
