"""The static page at the widths of a screen and of a phone, light and dark: nothing is cut off or broken."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest

from fleet.files import ROOT
from fleet.triage.items.life import ItemState
from fleet.triage.outputs.html_page import to_html
from tests.sandbox.browsing import needs_browser
from tests.triage.outputs.test_formats import HEADER, ITEMS, OWN, item, paged
from tests.triage.test_hostile_browser import looked_at

pytestmark = needs_browser

WORDS = """JSON.stringify((() => {
  const cut = [], broken = [];
  for (const one of document.querySelectorAll('body *')) {
    const box = one.getBoundingClientRect(), head = one.closest('thead');
    if (head && getComputedStyle(head).position === 'absolute') continue;  // on a phone it is for readers
    if (box.width && box.right > innerWidth + 1)
      cut.push(one.localName + '.' + one.className);
  }
  for (const cell of document.querySelectorAll('td:not(.finding), th, summary bdi')) {
    const walk = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
    for (let node; node = walk.nextNode();)
      for (const word of node.data.matchAll(/[^\\s-]{1,24}(?=[\\s-]|$)/g)) {
        const range = document.createRange();
        range.setStart(node, word.index);
        range.setEnd(node, word.index + word[0].length);
        const tops = new Set([...range.getClientRects()].map(r => Math.round(r.top)));
        if (tops.size > 1 && !/.{25}/.test(node.data.split(/[\\s-]/).find(w => w.includes(word[0]))))
          broken.push(word[0]);
      }
  }
  return { wide: document.documentElement.scrollWidth - innerWidth, cut, broken,
           rows: document.querySelectorAll('tbody tr').length };
})())"""
LONG = "GET {site}/" + "a" * 120 + ": 404, expected a page that the site itself names"
TITLES = ("short", LONG, "the compiler ends in a panic (status 101): thread 'main' panicked at slice_str:48")
SURFACES = ("security", "on-chain", "compiler", "ux", "perf", "unknown")
LISTED = tuple(
    item(
        number,
        TITLES[number % 3],
        **OWN
        | {
            "state": state,
            "surface": SURFACES[number % 6],
            "severity": ("critical", "medium", "unknown")[number % 3],
            "count": 10**number % 99_999,
            "score": 1234.5,
            "stale": True,
            "until": "2027-01-31T00:00:00Z",
            "links": (),
            "reason": "",
        },
    )
    for number, state in enumerate(get_args(ItemState), 1)
)
BESIDE = replace(HEADER, unproven=HEADER.unproven[:1], outages=HEADER.outages[:1])


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 768, 390, 320])
def test_no_word_is_broken_and_nothing_is_cut_off(
    monkeypatch: pytest.MonkeyPatch, width: int, dark: bool
) -> None:
    visited, seen = looked_at(to_html(LISTED, BESIDE), monkeypatch, WORDS, width, dark)
    assert visited.events == []
    assert seen == {"wide": 0, "cut": [], "broken": [], "rows": len(LISTED)}


@pytest.mark.parametrize("width", [1280, 390])
def test_no_text_of_a_stranger_widens_the_page(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    hostile = (*ITEMS, item(9, "x" * 2_000), item(10, "x", surface="y" * 200, severity="z" * 40))
    _, seen = looked_at(to_html(hostile, HEADER), monkeypatch, WORDS, width)
    assert (seen["wide"], seen["cut"]) == (0, [])


OPEN = "document.querySelectorAll('details').forEach(one => one.open = true)"
RULES = (ROOT / "node_modules/axe-core/axe.min.js").read_text("utf-8")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_an_open_page_has_everything_and_breaks_no_rule_of_accessibility(
    monkeypatch: pytest.MonkeyPatch, width: int, dark: bool
) -> None:
    """axe-core finds nothing, no word is broken, nothing is cut off, and every picture is there."""
    items, pages = paged()
    page = to_html(items, BESIDE, pages)
    words = WORDS.replace("(() => {", f"(() => {{ {OPEN};", 1)
    visited, seen = looked_at(page, monkeypatch, words, width, dark)
    assert (visited.events, visited.requests) == ([], [])
    assert (seen["wide"], seen["cut"], seen["broken"]) == (0, [], [])
    script = f"""(async () => {{ {OPEN}; {RULES};
      const found = await axe.run(document);
      return JSON.stringify({{
        violations: found.violations.map(one => [one.id, one.nodes[0].html]),
        pictures: [...document.images].filter(one => one.naturalWidth > 0).length,
        colours: new Set([...document.querySelectorAll('.word')].map(
          one => getComputedStyle(one).color)).size,
      }})
    }})()"""
    _, judged = looked_at(page, monkeypatch, script, width, dark, waits=True)
    assert judged == {"violations": [], "pictures": 3, "colours": 3}


def test_the_list_is_filtered_and_sorted_by_the_page_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    items, pages = paged()
    script = """JSON.stringify((() => {
      const shown = () => [...document.querySelectorAll('table.items > tbody > tr')]
        .filter(row => !row.hidden).map(row => row.dataset.severity + row.dataset.rank);
      const [severity, surface, order] = document.querySelectorAll('.tools select');
      const change = (field, value) => {
        field.value = value;
        field.dispatchEvent(new Event('input', {bubbles: true}));
      };
      const text = document.querySelector('.tools input'), found = {all: shown()};
      change(text, 'ORIGIN allowed'); found.text = shown(); change(text, '');
      change(severity, 'medium'); found.severity = shown(); change(severity, 'all');
      change(surface, 'ux'); found.surface = shown(); change(surface, 'all');
      change(order, 'severity'); found.order = shown();
      found.said = document.querySelector('.tools output').textContent;
      return found;
    })())"""
    reverse = [replace(one, rank=4 - one.rank if one.rank else 0) for one in items]
    _, seen = looked_at(to_html(reverse, BESIDE, pages), monkeypatch, script)
    assert seen == {
        "all": ["medium1", "high2", "critical3", "high99999999"],
        "text": ["high2"],
        "severity": ["medium1"],
        "surface": ["high99999999"],
        "order": ["critical3", "high2", "medium1", "high99999999"],
        "said": "4 of 4 shown",
    }
