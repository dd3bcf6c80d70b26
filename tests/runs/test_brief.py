"""The brief: the operator's words only, the same for the same persona, and looked at again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fleet.chain.signing.never import NEVER
from fleet.config.authorisation import AuthorisationSection
from fleet.config.scope import HostSection
from fleet.drivers.session import RunOver
from fleet.gate.budget import Budget
from fleet.gate.scope import Scope
from fleet.personas.model import PolicySection
from fleet.runs.desk.brief import FILES, RUNGS, check, compose, digests, system, write
from sandbox.chain.contract import VIEWS
from tests.runs.table import PLATFORM, look, persona

POLICY = PolicySection(mode="bounded_batch", max_features_per_run=3, max_turns_per_run=9, retry_budget=2)


def texts(*never: str) -> dict[str, str]:
    one = persona(look("a"), tools=("qa_fetch", "qa_create"), policy=POLICY)
    scope = Scope.of(PLATFORM, VIEWS)
    return compose(one, PLATFORM, scope, Budget.of(one.persona.budget), never)


def test_the_three_texts_say_what_a_driver_needs() -> None:
    found = texts("qa_dangerous")
    assert tuple(found) == FILES
    assert found["MISSION.md"] == "# Mission of qa-paper\n\na test\n\nYou test.\n"
    charter, guardrails = found["CHARTER.md"], found["GUARDRAILS.md"]
    assert "- qa_create: mint one disposable name; from the rung exercise\n" in charter
    assert "- qa_fetch: GET a public page of the platform; from the rung observe\n" in charter
    assert "- calls: 500\n" in charter
    assert "- turns: at most 9\n- probes: at most 3\n- retries: 2 in all\n" in charter
    assert all(f"- {rung}: {text}\n" in charter for rung, text in RUNGS.items())
    assert all(f"- {name} ({selector})\n" in guardrails for name, selector in NEVER.items())
    assert "- qa_dangerous\n" in guardrails
    assert "- http://site:80\n" in guardrails
    assert "- http://NAME.face:80, the face of one name\n" in guardrails
    assert "- agent claude\n" in guardrails
    assert "is data" in guardrails


def test_who_answers_for_it_and_what_is_never_asked_stand_in_it() -> None:
    told: dict[str, Any] = {"authorisation": AuthorisationSection(contact="qa@x.test", reference="QA-7")}
    told |= {"hosts": {"api.site": HostSection(criticality="production")}}
    platform = PLATFORM.model_copy(
        update={**told, "web": PLATFORM.web.model_copy(update={"never": ("/logout",)})}
    )
    one = persona(look("a"))
    found = compose(one, platform, Scope.of(platform, VIEWS), Budget.of(one.persona.budget), ())
    assert "\nAnswers for it: qa@x.test\nPermitted by: QA-7\n" in found["CHARTER.md"]
    assert "\n- /logout\n- any change at api.site\n" in found["GUARDRAILS.md"]


def test_it_is_the_same_for_the_same_persona() -> None:
    assert texts("b", "a") == texts("a", "b")
    assert digests(texts()) == digests(texts())
    assert set(digests(texts())) == {"MISSION", "CHARTER", "GUARDRAILS"}
    assert digests(texts())["GUARDRAILS"] != digests(texts("x"))["GUARDRAILS"]


def test_a_driver_gets_all_three() -> None:
    found = texts()
    assert all(text.strip() in system(found) for text in found.values())


def test_it_is_written_once_and_nobody_may_write_it(tmp_path: Path) -> None:
    write(tmp_path, texts())
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o400}
    write(tmp_path, texts("another"))
    check(tmp_path, digests(texts()))


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("how", ["append", "gone", "link", "folder"])
def test_a_brief_that_changed_ends_the_run(tmp_path: Path, name: str, how: str) -> None:
    write(tmp_path, texts())
    path = tmp_path / name
    text = path.read_text()
    path.unlink()
    if how == "append":
        path.write_text(text + "- except on Sundays\n")
    elif how == "link":
        (tmp_path / "same").write_text(text)
        path.symlink_to(tmp_path / "same")
    elif how == "folder":
        path.mkdir()
    with pytest.raises(RunOver) as over:
        check(tmp_path, digests(texts()))
    assert over.value.outcome == "state_invalid"
    assert over.value.detail.startswith(f"{name}: ")
