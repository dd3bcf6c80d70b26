"""Which two observations are one defect: the kind and the parts of its place, whatever met it and how."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import pytest

from fleet.findings.fingerprint import identity
from fleet.findings.kinds import Kind, kind_of, kinds
from fleet.findings.sighting import Sighting
from fleet.oracles.account.site_rows import SENT, SERVED, site_row
from fleet.oracles.model import Exchange, Facts, Oracle
from fleet.oracles.place import placed
from fleet.oracles.table import ORACLES, judge
from fleet.personas.model import Probe, Step
from fleet.runs.proof.attempt import Attempt
from fleet.runs.proof.candidates import Candidate, answered, candidates, covering
from fleet.store.rows import FindingRow

FACTS = Facts(
    site="http://h:1", proxy="http://h:2", face="http://h:1/face/{name}/", promised={"call_price_wei": 5}
)
Answered = tuple[str, Mapping[str, Any], Mapping[str, Any]]


def kind(oracle: Oracle) -> Kind:
    found = kind_of(oracle.id)
    assert found is not None
    return found


def shown(oracle: Oracle, example: Sequence[Exchange] | None = None, facts: Facts | None = None) -> Sighting:
    found = judge(example or oracle.example, facts or oracle.given)
    return next(one.sighting for one in found if one.oracle == oracle.id)


def name(found: Sighting) -> str:
    return identity("ux", found, ())


def moved(oracle: Oracle, **words: str) -> list[Exchange]:
    """Its example with other words in the arguments; what was answered stays."""
    made = []
    for one in oracle.example:
        text = json.dumps(dict(one.args), default=list)
        for before, after in words.items():
            text = text.replace(f"{{{before}}}", after)
        made.append(Exchange(one.tool, json.loads(text), one.result))
    return made


@pytest.mark.parametrize("oracle", ORACLES, ids=lambda one: one.id)
def test_an_oracle_states_parts_of_its_kinds_place_and_no_others(oracle: Oracle) -> None:
    place = set(kind(oracle).place)
    for one in oracle.judge(oracle.example, oracle.given):
        assert set(one.sighting.where) <= place
    assert set(shown(oracle).where) == place


@pytest.mark.parametrize("oracle", ORACLES, ids=lambda one: one.id)
def test_an_address_of_the_platform_is_no_part_of_a_place(oracle: Oracle) -> None:
    """The site spelled out, on whatever port it is today."""
    pasts = oracle.given.past and oracle.id != "cost-regression"  # by the address that was measured
    if "account" not in oracle.judges and not pasts:
        facts = Facts(
            **{name: getattr(oracle.given, name) for name in ("past", "history", "promised")},
            site="http://h:9",
        )
        assert name(shown(oracle)) == name(shown(oracle, moved(oracle, site="http://h:9"), facts))


OF_A_PAGE = [one for one in ORACLES if set(one.judges) <= {"page", "view"} and kind(one).subject == "web"]
FACTS_OF_TWO = Facts(site="http://site", proxy="http://h:2")


@pytest.mark.parametrize("oracle", OF_A_PAGE, ids=lambda one: one.id)
def test_another_page_is_another_defect_only_where_the_kind_says_so(oracle: Oracle) -> None:
    here, below = shown(oracle), shown(oracle, moved(oracle, site="{site}/below"))
    apart = bool({"route", "trace"} & set(kind(oracle).place))
    assert (name(here) != name(below)) is apart


@pytest.mark.parametrize("oracle", OF_A_PAGE, ids=lambda one: one.id)
def test_another_host_is_another_defect_unless_the_code_says_where_it_is(oracle: Oracle) -> None:
    here = shown(oracle, facts=FACTS_OF_TWO)
    there = shown(oracle, moved(oracle, site="{proxy}"), FACTS_OF_TWO)
    assert (name(here) != name(there)) is ("script" not in kind(oracle).place)


def test_two_different_defects_never_share_a_fingerprint() -> None:
    found = [(one, shown(one)) for one in ORACLES]
    for (one, first), (other, second) in combinations(found, 2):
        names = [kind(each).same_as or kind(each).id for each in (one, other)]
        same = names[0] == names[1] and first.where == second.where
        assert (name(first) == name(second)) is same, (one.id, other.id)


@pytest.mark.parametrize("kind", kinds().values(), ids=lambda one: one.id)
def test_each_part_of_a_place_tells_two_defects_apart_and_nothing_else_does(kind: Kind) -> None:
    base: dict[str, str] = dict.fromkeys(kind.place, "a")
    one = Sighting("one title", "one signature", kind=kind.id, where=base)
    assert name(one) == identity(
        "security", Sighting("x", "y", kind=kind.id, where=base, former=(("z", True),)), ()
    )
    for part in kind.place:
        assert name(one) != name(Sighting("t", "s", kind=kind.id, where=base | {part: "b"}))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("/n/qa-abcdefgh-1/x", "/n/qa-zyxwvuts-22/x"),
        ("of 0x" + "a1" * 20, "of 0x" + "b2" * 20),
        ("a  b", "a b"),
    ],
)
def test_what_differs_between_runs_is_taken_out_of_a_part(one: str, other: str) -> None:
    first, second = (Sighting("t", "s", kind="error-leak", where={"trace": text}) for text in (one, other))
    assert name(first) == name(second)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("{face:docs}x?q=1", "{site}/face/docs/x?q=2"),
        ("{face:docs}", "http://h:1/face/claude"),
        ("{site}/notes/7", "{site}/notes/8/"),
        ("{site}", "http://h:1/"),
    ],
)
def test_a_page_has_one_spelling(one: str, other: str) -> None:
    found = [
        placed(Sighting("t", "s"), "malformed-json", Exchange("qa_fetch", {"url": url}, {}), FACTS)
        for url in (one, other)
    ]
    assert found[0].where == found[1].where


# One defect, met in several ways ------------------------------------------------------------------

CANARY = "qacanary1"
ATTACK = f"%3Cscript%3E{CANARY}%3C%2Fscript%3E"


def explored(*calls: Answered) -> Candidate:
    steps = tuple(Step(tool=tool, args=dict(args)) for tool, args, _ in calls)
    return answered(steps, [result for _, _, result in calls], FACTS)[0]


def probed(kind: str, expect: str, *calls: Answered, surface: Any = "ux") -> Candidate:
    steps = tuple(Step(tool=tool, args=dict(args)) for tool, args, _ in calls)
    probe = Probe(id="a", severity="low", expect=expect, finding="something is wrong", steps=steps, kind=kind)
    asked = tuple({"tool": tool, "args": args} for tool, args, _ in calls)
    seen = Attempt(state="finding", asked=asked, results=tuple(dict(result) for _, _, result in calls))
    return candidates(probe, seen, surface, FACTS)[0]


def fetched(url: str, **result: Any) -> Answered:
    return "qa_fetch", {"url": url, "canary": CANARY}, {"status": 200, **result}


def browsed(url: str, ran: bool) -> Answered:
    page = {"status": 200, "final_url": "http://h:1/x", "fragment": False, "unjudged": (), "canary_ran": ran}
    return "qa_browse", {"url": url, "script_canary": CANARY}, page


def from_origin(path: str, origin: str, allowed: str) -> Answered:
    args = {"url": "{site}" + path} | ({"origin": origin} if origin else {})
    return "qa_fetch", args, {"status": 200, "allow_origin": allowed}


def said(message: str, **more: Any) -> Answered:
    args = {"target": "claude", "message": message}
    return "qa_call", args, {"ok": True, "status": 200, "reply": "x", "address": "0x" + "aa" * 20, **more}


def claiming(message: str, **more: Any) -> Answered:
    tool, args, result = said(message, claimed="0x" + "51" * 20, caller="0x" + "51" * 20)
    return tool, dict(args) | more, result


def viewed(url: str, *rules: str) -> Answered:
    found = [{"id": rule, "impact": "serious", "nodes": 1} for rule in rules]
    page = {
        "status": 200,
        "final_url": "http://h:1/x",
        "fragment": False,
        "unjudged": (),
        "violations": found,
    }
    return "qa_browse", {"url": url}, page


TRACE = 'Traceback (most recent call last):\n  File "/srv/app/clock.py", line 88, in stamp\nValueError: bad'
EVIL = "https://evil.test"
LOST = {"outcome": "accepted", "valid": True, "kind": "missing-entry", "said": "exports none of frame"}

WAYS: dict[str, Sequence[Candidate]] = {
    "script injection, by fetch, by browser and by a probe": [
        explored(
            fetched(f"{{face:docs}}?q={CANARY}"), fetched(f"{{face:docs}}?q={ATTACK}", canary_executable=True)
        ),
        explored(
            browsed(f"{{face:docs}}?q={CANARY}", ran=False), browsed(f"{{face:docs}}?q={ATTACK}", ran=True)
        ),
        probed(
            "reflected-script",
            "!result.canary_executable",
            fetched(f"{{face:claude}}?q={ATTACK}", canary_executable=True),
            surface="security",
        ),
    ],
    "a wide origin, on two pages, by its likeness and by a probe": [
        explored(from_origin("/a", "", ""), from_origin("/a", EVIL, EVIL)),
        explored(from_origin("/b", "", ""), from_origin("/b", "null", "null")),
        probed("foreign-origin", f'result.allow_origin != "{EVIL}"', from_origin("/c", EVIL, EVIL)),
    ],
    "a claimed sender, by an explorer and by a probe": [
        explored(said("hi", caller="0x" + "aa" * 20), claiming("hi", claim_fields=["from"])),
        probed(
            "claimed-sender",
            'result.caller != "0x' + "51" * 20 + '"',
            claiming("who am I", claim_from="0x" + "51" * 20),
        ),
    ],
    "a charge for a refusal, whatever was refused": [
        explored(said("", status=400, charged=7)),
        explored(said("x" * 900, status=413, charged=9)),
        probed("charged-for-refusal", "result.charged == 0", said("a", status=422, charged=1)),
    ],
    "an error leak, by the place of its trace": [
        explored(("qa_fetch", {"url": "{site}/a"}, {"status": 500, "text": TRACE})),
        explored(("qa_fetch", {"url": "{proxy}/b?x=1"}, {"status": 500, "text": TRACE})),
        probed(
            "error-leak",
            '!result.text.contains("Traceback")',
            ("qa_fetch", {"url": "{site}/c"}, {"status": 500, "text": TRACE}),
        ),
    ],
    "an error of the system for what is not there, at a page and at a face of one address": [
        explored(("qa_fetch", {"url": url}, {"status": 500, "text": "No such file (os error 2)"}))
        for url in ("{site}/face/claude/app.wasm", "{face:docs}app.wasm", "{site}/notes/9")
    ],
    "errors of the system, of other names": [
        explored(("qa_fetch", {"url": url}, {"status": 500, "text": text}))
        for url, text in (
            ("{site}/gone", "ENOENT: no such file or directory, open '/srv/gone'"),
            ("{site}/" + "a" * 300, "ENAMETOOLONG: name too long, open '/srv/a'"),
        )
    ],
    "errors of the database, on other routes": [
        explored(("qa_fetch", {"url": url}, {"status": 400, "text": "no such column: qa12"}))
        for url in ("{site}/pets/dogs?_sort=qa12", "{site}/pets/dogs.json?_facet=qa12")
    ],
    "a server error for a parameter, in whatever format": [
        explored(
            ("qa_fetch", {"url": f"{page}?_sort=name"}, {"status": 200}),
            ("qa_fetch", {"url": f"{page}?_sort=qa12"}, {"status": 500}),
        )
        for page in ("{site}/pets/dogs", "{site}/pets/dogs.csv", "{site}/pets/dogs.json")
    ],
    "a missing entry, of programs with other constructs": [
        explored(("qa_compile", {"source": source}, LOST))
        for source in ("const A: i32 = 1; fn frame() {}", "struct S {} fn frame() { let a = 1; }")
    ],
    "a page without a language, by browser and by fetch": [
        explored(viewed("{site}/a", "html-has-lang")),
        explored(viewed("{site}/b/7", "html-has-lang")),
        probed("accessibility", "size(result.a11y) == 0", fetched("{site}/c", a11y=["html-lang"])),
    ],
}


@pytest.mark.parametrize("way", WAYS)
def test_one_defect_has_one_fingerprint_however_it_is_met(way: str) -> None:
    assert len({one.fingerprint for one in WAYS[way]}) == 1, [one.sighting.where for one in WAYS[way]]


def test_a_sender_claimed_in_a_header_is_another_defect_than_one_in_a_field() -> None:
    plain = said("hi", caller="0x" + "aa" * 20)
    field, other, header = (
        explored(plain, claiming("hi", **place))
        for place in ({"claim_fields": ["from"]}, {"claim_fields": ["user"]}, {"claim_headers": ["x-user"]})
    )
    assert field.fingerprint == other.fingerprint != header.fingerprint
    assert [one.sighting.where["claim"] for one in (field, header)] == ["field", "header"]


def test_a_slow_page_is_one_defect_however_it_was_seen() -> None:
    found = [shown(one) for one in ORACLES if one.id in ("slow-regression", "slow-page", "slow-share")]
    assert len(found) == 3
    assert len({name(one) for one in found}) == 1


def test_several_rules_at_one_look_are_one_defect_that_covers_each_of_them() -> None:
    def row(one: Candidate) -> FindingRow:
        data = {"kind": one.sighting.kind, "where": one.sighting.where}
        return FindingRow(run_id="r", fingerprint=one.fingerprint, data=data)

    asked = fetched("{site}/c", a11y=["label", "image-alt"])
    whole = row(probed("accessibility", "size(result.a11y) == 0", asked))
    label, name = (row(explored(viewed("{site}/x", rule))) for rule in ("label", "button-name"))
    there = row(explored(viewed("{proxy}/x", "label")))
    assert whole.data["where"]["rule"] == "image-alt, label"
    assert covering(label, [whole]) is whole
    assert [covering(one, [whole, label, name]) for one in (name, there, whole)] == [None] * 3


def test_an_input_of_fewer_constructs_that_shows_the_same_covers_larger_ones() -> None:
    def row(source: str, said: str = "type mismatch") -> FindingRow:
        result = {"outcome": "accepted", "valid": False, "kind": "invalid-output", "said": said}
        one = explored(("qa_compile", {"source": source}, result))
        data = {"kind": one.sighting.kind, "where": one.sighting.where}
        return FindingRow(run_id="r", fingerprint=one.fingerprint, data=data)

    small, large = row("fn f() { if a {} }"), row("enum E {} fn f() { if a { let b = 1; } }")
    assert covering(large, [small]) is small
    assert covering(small, [large]) is None
    assert covering(row("enum E {} fn f() { if a { let b = 1; } }", "other words"), [small]) is None
    assert covering(row("fn f() { loop {} }"), [small]) is None


def test_a_probe_without_a_kind_is_named_after_what_was_observed() -> None:
    found = probed("", "size(result.a11y) == 0", fetched("{site}/c", a11y=["label", "image-alt"]))
    assert (found.sighting.kind, found.names) == ("", (found.fingerprint,))


def test_what_a_driver_claims_has_no_kind() -> None:
    """Only our oracles and a person's probes say what a defect is."""
    tool, args, result = fetched("{site}/c", a11y=["label"])
    step = Step(tool=tool, args=dict(args))
    probe = Probe(
        id="x-a",
        severity="low",
        expect="size(result.a11y) == 0",
        finding="a claim of a driver",
        steps=(step,),
        kind="accessibility",
    )
    seen = Attempt(state="finding", asked=({"tool": tool, "args": args},), results=(dict(result),))
    (found,) = candidates(probe, seen, "ux", FACTS, trusted=False)
    assert found.sighting.kind == ""


def test_a_page_of_one_route_is_one_whatever_its_value_looks_like() -> None:
    """A number, a marker of ours, a text in escapes: `/orders/{id}` fails for all of them."""

    def failing(path: str) -> str:
        answer = {"status": 500, "text": "", "content_type": "application/json"}
        (found,) = judge([Exchange("qa_fetch", {"url": f"{{site}}{path}"}, answer)], FACTS)
        assert found.oracle == "server-error"
        return name(found.sighting)

    orders = ("/orders/1", "/orders/qa4cb3b98507", "/orders/%3Cb%3E")
    assert len({failing(path) for path in orders}) == 1
    assert len({failing(path) for path in ("/orders", "/orders/1", "/orders/1/lines", "/export/1")}) == 4


def test_one_sentence_of_a_server_about_a_value_is_one_defect() -> None:
    """Two parameters, two tables, two formats: the code that says it is one; a number may be another one the
    next time, and words without the value may be about anything."""

    def failing(url: str, value: str, text: str, kind: str = "text/html") -> str:
        answer = {"status": 500, "text": text, "content_type": kind}
        asked = [Exchange("qa_fetch", {"url": f"{{site}}{url}{one}"}, answer) for one in ("a", value)]
        names = set()
        for calls in (asked, asked[1:]):
            found = next(one for one in judge(calls, FACTS) if one.oracle == "server-error")
            names.add(name(found.sighting))
        (one,) = names
        return one

    page, bare = (
        "<h1>Error 500</h1><div>Cannot sort table by {}</div>",
        '{{"error": "Cannot sort table by {}"}}',
    )
    one = {
        failing("/pets/dogs?_sort=", "qa12345678", page.format("qa12345678")),
        failing("/pets/owners.json?_sort_desc=", "qaffff", bare.format("qaffff"), "application/json"),
        failing("/pets/dogs.csv?_sort=", "qa99ab", page.format("qa99ab")),
    }
    assert len(one) == 1
    for said in ("Cannot sort this table", "Error {}", "Cannot sort table by {} (request 4711)"):
        others = {
            failing(
                f"/pets/{table}?_sort=",
                "qa99ab",
                page.replace("Cannot sort table by {}", said).format("qa99ab"),
            )
            for table in ("dogs", "owners")
        }
        assert len(others) == 2, said
        assert not others & one


@pytest.mark.parametrize(
    ("said", "defects"),
    [
        ("'custom_llm_provider' must be set. Either via:\n `Router(assistants_config={})`", 1),
        ("No database is connected: set DATABASE_URL to enable it", 1),
        ("The server met an unexpected condition", 2),  # may be anything
        ("No order has such an order_id in its rows", 2),  # what the caller sent
        ("No database at port 5432: set DATABASE_URL", 2),  # may be another number the next time
    ],
)
def test_what_a_server_lacks_is_one_defect_whatever_route_needs_it(said: str, defects: int) -> None:
    names = set()
    for route in ("/assistants?order_id=qa1234", "/threads/1?order_id=qa1234"):
        text = json.dumps({"error": {"message": said.replace("{}", "qa1234"), "code": "500"}})
        answer = {"status": 500, "text": text, "content_type": "application/json"}
        found = judge([Exchange("qa_fetch", {"url": f"{{site}}{route}"}, answer)], FACTS)
        names |= {name(one.sighting) for one in found if one.oracle == "server-error"}
    assert len(names) == defects


@pytest.mark.parametrize("path", ["/books/1", "/books/12", "/books/4?page=1"])
def test_a_number_in_the_path_of_a_form_is_no_other_defect(path: str) -> None:
    seen = _review(path)
    (found,) = [one.sighting for one in judge(seen, FACTS) if one.oracle == "form-script"]
    where = placed(found, "stored-script", seen[-1], FACTS).where
    assert where == {"route": "POST {site}/books/{n}", "field": "text"}


def _review(path: str) -> tuple[Exchange, ...]:
    sent = f"{path.partition('?')[0]}/reviews"
    return site_row(
        ("one", "POST", sent, {"text": "x"}, SENT),
        ("other", "VIEW", path, {}, SERVED),
        ("one", "POST", sent, {"text": "<script>{canary}(name)</script>"}, SENT),
        ("other", "VIEW", path, {}, SERVED | {"ran": True}),
    )
