"""What is asked next of a thing that was made by a form."""

from __future__ import annotations

from fleet.drivers.explore.account.follow_up import MadeThing, follow
from fleet.drivers.explore.account.site_rows import SiteForm, SiteKnowledge


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
