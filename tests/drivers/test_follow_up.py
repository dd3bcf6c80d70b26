"""What is asked next of a thing that was made by a form."""

from __future__ import annotations

from fleet.drivers.explore.account.follow_up import MadeThing, follow
from fleet.drivers.explore.account.site_rows import SiteForm, SiteKnowledge, apart


def test_a_file_that_was_sent_is_read_by_its_id_as_everybody() -> None:
    form = SiteForm("/papers", "/papers", {"paper": "file"})
    rows = (form.marked(), ["one", "GET", "/papers", {}, ""])
    listed = {"status": 200, "one": True, "links": ["/", "/papers/{id}/download"]}
    known = SiteKnowledge("/enter")
    asked = list(follow(known, MadeThing(form, rows), [{"status": 303}, listed], lambda _path: True))
    (read,) = [one for one in asked if isinstance(one, list) and ["other", "GET", "/papers", {}, ""] in one]
    made = ["one", "POST", "/papers", {"paper": ["{mark}.txt", "text/plain", "{mark}"]}, "/papers"]
    whom = ("one", "other", "anonymous")
    assert made in read
    assert [one for one in read if "{id}" in one[2]] == [
        [who, "GET", "/papers/{id}/download", {}, ""] for who in whom
    ]


def get(who: str, path: str) -> list[object]:
    return [who, "GET", path, {}, ""]


def test_a_proof_may_leave_out_what_nothing_rests_on() -> None:
    form = SiteForm("/notes", "/notes", {"text": "textarea"})
    inputs = [get("one", f"/find?q={value}") for value in ("a", "b", "c")]
    assert apart([*inputs, get("one", "/list?page=1")]) == ((0, 1, 2), (3,), (1,), (2,))
    assert apart([form.post("one", {"text": word}) for word in ("a", "b")]) == ((0, 1), (1,))
    made = [get("one", "/notes"), form.marked(), get("other", "/notes"), get("other", "/notes/{id}")]
    assert apart(made) == ((2,), (3,))  # what was read before it was made says which is new
    assert apart([made[0], form.marked(), form.marked("foreign"), made[0]]) == ((0,), (3,))
    changed = [*made, form.marked("other"), get("one", "/notes/{id}")]
    assert apart(changed) == ((2,), (5,))  # that the other is refused it lets it send the form
