"""A scope that its authority signed: complete, exactly as signed, by each of the signers."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fleet.app.bootstrap import fenced
from fleet.app.persona_sets import roster
from fleet.chain.keys import Secret, address_of, create_key, fresh, personal_sign, personal_signer
from fleet.cli.check import scope as command
from fleet.clock import SystemClock, iso
from fleet.config import FleetConfig, ModelSection, Platform, load_fleet, parse
from fleet.config.authorisation import BOUNDARIES
from fleet.config.fleet import AuthoritySection
from fleet.config.notify import ROLES
from fleet.errors import ConfigError, PersonaError
from fleet.personas.load import LoadedPersona
from fleet.runs.signed_scope import (
    current,
    missing,
    read_signatures,
    require_persona,
    require_signed,
    sign,
    signature_file,
)
from tests.notices.stand import private

RECIPIENT = "age1ful947633am8v54v875mp59m57xyfk6j77z4xpluq5wa8zdpyv8qnt72ca"
"""A public key of age; nobody has the other half."""
PERSONA = """+++
name = "qa-own"
surface = "ux"
tools = ["qa_fetch"]
triggers = [{ every = "1h" }]
budget = { calls = 5, wall = "1m" }
+++
Look.
"""
LEVEL = (
    '{ by = "Ada, head", legal = "Leo, counsel", on = DAY, hours = 240, engagements = 6,'
    ' risks = "the shop may be slow: limits" }'
).replace("DAY", iso(SystemClock().now())[:10])
COMPLETE = """name = "shop"
[web]
site = "https://shop.example"
never = ["{site}/logout"]
[authorisation]
by = "Ada, security"
reference = "contract 7"
contact = "qa@shop.example"
level = LEVEL
why.network = "the shop alone, no partner"
why.techniques = "nothing that changes what others made"
why.data = "no customer's data: the accounts are ours"
why.impact = "the shop sells while it is tested"
why.escalation = "two people are on call"
[schedule]
not_before = 2026-11-01
not_after = 2026-12-24
engagement = "recurring"
[escalation]
impact = "high"
pauses = ["scope"]
stops = ["sensitive-data", "break-in"]
[hosts."shop.example"]
criticality = "production"
""".replace("LEVEL", LEVEL)
LINES = {
    "by =": "authorisation.by",
    "reference =": "authorisation.reference",
    "contact =": "authorisation.contact",
    "level =": "authorisation.level",
    "not_before =": "schedule.not_before",
    "not_after =": "schedule.not_after",
    "engagement =": "schedule.engagement",
    "never =": "web.never",
    "impact =": "escalation.impact",
    "pauses =": "escalation.pauses",
    "stops =": "escalation.stops",
    **{f"why.{one} =": f"authorisation.why.{one}" for one in BOUNDARIES},
    "[hosts": 'hosts."shop.example"',
}


def platform(path: Path) -> Platform:
    return parse(Platform, path.read_text(), file=str(path))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    path = tmp_path / "shop.toml"
    path.write_text(COMPLETE)
    (tmp_path / "qa-own.md").write_text(PERSONA)
    return path


def own(place: Path) -> dict[str, LoadedPersona]:
    found, errors = roster(place.with_name("qa-own.md"))
    assert not errors
    return found


def signed(place: Path, *keys: Secret, at: str = "") -> FleetConfig:
    at = at or iso(SystemClock().now())
    for key in keys:
        sign(platform(place), place, current(place, own(place)), key, "Ada, security", at)
    return FleetConfig(authority=AuthoritySection(signers=tuple(map(address_of, keys))))


def fault(config: FleetConfig, place: Path, personas: Mapping[str, LoadedPersona] | None = None) -> str:
    try:
        require_signed(config, platform(place), place, own(place) if personas is None else personas)
    except ConfigError as error:
        return str(error)
    return ""


def test_what_each_signer_signed_runs_and_nothing_is_required_without_signers(place: Path) -> None:
    assert fault(FleetConfig(), place) == ""
    one, other = fresh(), fresh()
    config = signed(place, one, other)
    assert fault(config, place) == ""
    found = read_signatures(place)
    assert found is not None
    assert [item.signer for item in found.signatures] == [address_of(one), address_of(other)]
    config = FleetConfig(authority=AuthoritySection(signers=(address_of(one), address_of(fresh()))))
    assert "no valid signature by" in fault(config, place)


@pytest.mark.parametrize(("days", "counts"), [(-1, False), (29, True), (31, False)])
def test_a_signature_counts_for_as_long_as_the_scope_says(place: Path, days: int, counts: bool) -> None:
    place.write_text(COMPLETE.replace("engagement =", "renewed_days = 30\nengagement ="))
    at = iso(SystemClock().now() - timedelta(days=days))
    said = fault(signed(place, fresh(), at=at), place)
    assert ("" if counts else f"is of {at}, not of the last 30 days") in said
    assert counts == (not said)


@pytest.mark.parametrize(
    ("said", "other", "why"),
    [
        ("hours = 240", "hours = 199", "greater than or equal to 200"),
        ("engagements = 6", "engagements = 4", "greater than or equal to 5"),
        ("risks =", "incidents = 1, risks =", "Input should be 0"),
        ('legal = "Leo, counsel", ', "", "legal"),
    ],
)
def test_a_level_without_what_comes_before_it_is_not_promoted(
    place: Path, said: str, other: str, why: str
) -> None:
    assert platform(place).authorisation.level is not None
    place.write_text(COMPLETE.replace(said, other))
    with pytest.raises(ConfigError, match=re.escape(why)):
        platform(place)


@pytest.mark.parametrize(("days", "counts"), [(-1, False), (366, True), (367, False)])
def test_the_authorisation_of_a_level_counts_for_a_year(place: Path, days: int, counts: bool) -> None:
    day = iso(SystemClock().now() - timedelta(days=days))[:10]
    place.write_text(re.sub(r" on = [0-9-]{10}", f" on = {day}", COMPLETE))
    said = fault(signed(place, fresh()), place)
    assert said == "" if counts else f"authorisation.level is of {day}, not of the last year" in said


def test_another_version_runs_nothing_until_it_was_signed_for(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who signs defers a version by not signing: the one that was signed for goes on."""
    key = fresh()
    config = signed(place, key)
    monkeypatch.setattr("fleet.runs.signed_scope.__version__", "9.9.9")
    why = "it was signed for 0.1.0, and this is 9.9.9: CHANGELOG.md says what differs"
    assert why in fault(config, place)
    signed(place, key)
    assert fault(config, place) == ""
    monkeypatch.undo()
    assert "it was signed for 9.9.9, and this is 0.1.0" in fault(config, place)


def test_no_model_drives_but_the_one_that_the_authority_signed(place: Path) -> None:
    model = ModelSection(name="openai:gpt-5-2026-01-15")
    config = signed(place, fresh()).model_copy(update={"model": model})
    assert "the model openai:gpt-5-2026-01-15 is not authorisation.model" in fault(config, place)
    for named, why in (("openai:gpt-5", "is not authorisation.model"), (model.name, "")):
        place.write_text(COMPLETE.replace("by =", f'model = "{named}"\nby =', 1))
        config = signed(place, fresh()).model_copy(update={"model": model})
        said = fault(config, place)
        assert (why in said) if why else (said == "")
    assert fault(FleetConfig(model=model), place) == ""


@pytest.mark.parametrize("line", LINES)
def test_rules_of_engagement_that_lack_something_are_neither_signed_nor_run(place: Path, line: str) -> None:
    config = signed(place, fresh())
    text = "".join(row for row in COMPLETE.splitlines(keepends=True) if not row.startswith(line))
    place.write_text(text.replace('criticality = "production"\n', "") if line == "[hosts" else text)
    assert [one.partition(":")[0] for one in missing(platform(place))] == [LINES[line]]
    with pytest.raises(ConfigError, match=f"not signed, it lacks {LINES[line]}"):
        sign(platform(place), place, current(place, {}), fresh(), "Ada", "now")
    assert LINES[line] in fault(config, place)


def test_whatever_is_changed_after_the_signature_is_named_and_does_not_run(place: Path) -> None:
    config, personas = signed(place, fresh()), own(place)
    place.write_text(COMPLETE.replace("{site}/logout", "{site}/log-out"))
    assert "the profile was changed" in fault(config, place)
    place.write_text(COMPLETE)
    assert fault(config, place) == ""
    changed = {"qa-own": replace(personas["qa-own"], sha256="0" * 64)}
    assert "persona qa-own was changed" in fault(config, place, changed)
    assert "persona qa-new was added" in fault(config, place, {"qa-new": personas["qa-own"]})
    with pytest.raises(PersonaError, match="persona qa-own was changed"):
        require_persona(config, platform(place), place, changed["qa-own"])
    assert require_persona(config, platform(place), place, personas["qa-own"]) is personas["qa-own"]
    shipped, _ = roster()
    assert fault(config, place, {"qa-smoke": shipped["qa-smoke"]}) == ""  # the wheel's sums vouch for it


def test_a_host_that_is_somebody_elses_needs_a_persons_word(place: Path) -> None:
    place.write_text(COMPLETE.replace("shop.example", "shop.vercel.app"))
    (lacks,) = missing(platform(place))
    assert lacks.endswith("third_party: who permitted it, since it is a platform of many")
    place.write_text(f'{place.read_text()}third_party = "ada, by contract 7"\n')
    assert missing(platform(place)) == []


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("by", "Mallory"),
        ("at", "2026-11-28T08:00:01Z"),
        ("signature", "0x" + "ab" * 65),
        ("signature", "0x" + "00" * 65),
        ("signer", "0x" + "11" * 20),
    ],
)
def test_a_signature_vouches_for_nothing_else(place: Path, key: str, value: str) -> None:
    config = signed(place, fresh())
    file = signature_file(place)
    text = json.loads(file.read_text())
    text["signatures"][0][key] = value
    file.write_text(json.dumps(text))
    assert "no valid signature by" in fault(config, place)
    file.write_text("{")
    assert f"{file}:" in fault(config, place)
    file.unlink()
    assert "there is no shop.sig" in fault(config, place)


def test_who_signed_is_read_from_the_signature() -> None:
    key = fresh()
    text = personal_sign(key, "a text")
    assert personal_signer("a text", text) == address_of(key)
    assert personal_signer("another", text) != address_of(key)
    for bad in ("0x", "0x12", "0x" + "ff" * 65, "0x" + "zz" * 65):
        assert personal_signer("a text", bad) == ""


def test_a_person_signs_and_sees_what_is_missing(
    place: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    key, runner = tmp_path / "authority", CliRunner()
    address = create_key(key)
    home = tmp_path / "config"
    (home / "platforms").mkdir(parents=True)
    profile = home / "platforms" / "shop.toml"
    profile.write_text(COMPLETE.replace('reference = "contract 7"\n', ""))
    keep = f'[keep]\nsealed_for = "{RECIPIENT}"\n'
    (home / "fleet.toml").write_text(f'platform = "shop"\n[authority]\nsigners = ["{address}"]\n{keep}')
    roles = "".join(f"{role} json://localhost/{role}\n" for role in ROLES)
    private(tmp_path / "keys" / "notify", roles.encode())
    monkeypatch.setenv("CONFIGURATION_DIRECTORY", str(home))
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path))
    shown = runner.invoke(command.app, [])
    assert (shown.exit_code, "missing   authorisation.reference" in shown.stdout) == (3, True)
    profile.write_text(COMPLETE)
    done = runner.invoke(command.app, ["--sign", str(key), "--by", "Ada, security"])
    assert (done.exit_code, done.stdout.splitlines()[-1]) == (0, "the scope is as it must be")
    require_signed(load_fleet(), platform(profile), profile, roster()[0])
    assert "Ada, security signs the scope of shop" in (tmp_path / "DECISIONS.md").read_text()
    profile.write_text(COMPLETE + "# a word\n")
    assert runner.invoke(command.app, []).exit_code == 3


@pytest.mark.anyio
async def test_a_refused_scope_stands_in_the_decisions_and_nothing_starts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    home, state = tmp_path / "config", tmp_path / "state"
    (home / "platforms").mkdir(parents=True)
    state.mkdir()
    (home / "fleet.toml").write_text('platform = "shop"\n')
    (home / "platforms" / "shop.toml").write_text(
        COMPLETE.replace("https://shop.example", "https://x.okta.com")
    )
    monkeypatch.setenv("CONFIGURATION_DIRECTORY", str(home))
    monkeypatch.setenv("STATE_DIRECTORY", str(state))
    with pytest.raises(ConfigError, match="where other people log in or pay"):
        async with fenced(state):
            pass
    assert [path.name for path in state.iterdir() if path.suffix not in (".head",)] == ["DECISIONS.md"]
    text = (state / "DECISIONS.md").read_text()
    assert re.search(r"## D1 - the scope shop is refused, of \S+@\S+ \(turn 0, 20\S+Z\)", text)
    assert "shop.toml: web: Value error, x.okta.com is where other people log in or pay" in text
