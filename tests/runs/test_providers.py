"""Who gets something of the fleet's: vetted by somebody, or nothing runs where the scope is signed."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import ValidationError

from fleet.chain.keys import address_of, fresh
from fleet.config import FleetConfig
from fleet.config.provider import Factor, ModelFactor, ProviderSection
from fleet.errors import ConfigError
from fleet.runs.providers import outside, unready, unvetted, uses
from fleet.runs.signed_scope import current, require_signed, sign
from tests.notices.stand import private
from tests.runs.test_signed_scope import COMPLETE, RECIPIENT, platform

MODEL = "openai:gpt-5-2026-01-15"
TODAY = date(2026, 11, 28)
VETTED: dict[str, Any] = {
    "hosts": ["api.openai.com"],
    "sends": ["internal", "confidential"],
    "regions": ["the EU"],
    "found": dict.fromkeys((*get_args(Factor), *get_args(ModelFactor)), "looked at"),
    "model": MODEL,
    "decision": "approved",
    "by": "Ada, security",
    "on": date(2026, 11, 1),
    "reason": "looked at with their report of 2026",
    "again": date(2027, 10, 31),
    "key_since": date(2026, 11, 1),
    "without": "the playbooks go on",
}
REPOSITORY = {
    "surfaces": ["compiler"],
    "compiler": {"command": ["cc"]},
    "test": ["make", "test"],
    "paths": ["src/**"],
    "regression": {"path": "tests/test_{item}.py", "template": "pytest-service", "command": ["make", "one"]},
}
URLS = """# who is told
mailto://user:secret@mail.example?to=ops
client tgram://123456:token/42

ping https://hc.example/uuid
ntfy://10.0.0.7/topic
json://localhost:9/x
"""


def config(**keys: Any) -> FleetConfig:
    return FleetConfig.model_validate({"model": {"name": MODEL}} | keys)


def profile(tmp_path: Path, **keys: Any) -> Any:
    path = tmp_path / "shop.toml"
    path.write_text(COMPLETE)
    one = ProviderSection.model_validate(VETTED | keys)
    return platform(path).model_copy(update={"providers": {"maker": one}})


def test_whoever_gets_something_is_known_by_its_host_and_no_secret_is_shown(tmp_path: Path) -> None:
    private(tmp_path / "keys" / "notify", URLS.encode())
    keys = {
        "notify": {"webhook": "https://hooks.example/x"},
        "otel": {"endpoint": "https://otel.example"},
        "sinks": {"far": {"url": "https://sink.example/in"}, "near": {"url": "http://127.0.0.1:9/"}},
        "store": {"url": "postgresql://qa@db.example/qa"},
        "repositories": {
            "far": REPOSITORY | {"url": "https://git.example/a.git", "github": {"repository": "a/b"}},
            "near": REPOSITORY | {"url": "file:///srv/a.git"},
        },
    }
    assert outside(config(**keys), tmp_path) == {
        "model": "api.openai.com",
        "notify.webhook": "hooks.example",
        "otel.endpoint": "otel.example",
        "store": "db.example",
        "sinks.far": "sink.example",
        "repositories.far": "git.example",
        "repositories.far.github.api": "api.github.com",
        "notify:2": "mail.example",
        "notify:3": "tgram",
        "notify:5": "hc.example",
    }
    assert outside(config(model={"name": MODEL, "base_url": "http://127.0.0.1:8/v1"}), tmp_path / "no") == {}


def test_a_provider_as_vetted_gets_what_it_gets(tmp_path: Path) -> None:
    said = profile(tmp_path)
    assert list(unvetted(config(), said, tmp_path, TODAY)) == []
    assert uses(config(), said, tmp_path) == {"maker": ["model"]}


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ({"hosts": ["elsewhere.example"]}, "model sends to api.openai.com: no [providers] names it"),
        ({"decision": "denied"}, "it is denied: looked at with their report of 2026"),
        (
            {"decision": "compromised", "reason": "they wrote on Friday"},
            "it is compromised: they wrote on Fri",
        ),
        ({"again": date(2026, 11, 27)}, "it was to be looked at again by 2026-11-27"),
        ({"key_days": 26}, "its key of 2026-11-01 was to be changed after 26 days"),
        ({"model": "openai:gpt-4"}, f"{MODEL} was not vetted, but openai:gpt-4"),
        ({"found": dict.fromkeys(get_args(Factor), "looked at")}, "found lacks customer-data, fine-tuning"),
    ],
)
def test_nothing_goes_to_one_that_was_not_vetted_so(tmp_path: Path, keys: dict[str, Any], why: str) -> None:
    [said] = unvetted(config(), profile(tmp_path, **keys), tmp_path, TODAY)
    assert why in said
    assert said.startswith("model sends to api.openai.com")


@pytest.mark.parametrize("one", get_args(Factor))
def test_each_factor_has_to_be_looked_at(one: str) -> None:
    found = {key: words for key, words in VETTED["found"].items() if key != one}
    with pytest.raises(ValidationError, match=f"found lacks {one}"):
        ProviderSection.model_validate(VETTED | {"found": found})


@pytest.mark.parametrize(
    "bad", [{"again": date(2027, 11, 3)}, {"again": date(2026, 10, 1)}, {"sends": ["restricted"]}]
)
def test_a_year_is_the_longest_until_it_is_looked_at_again_and_nobody_says_that_restricted_data_is_sent(
    bad: dict[str, Any],
) -> None:
    with pytest.raises(ValidationError):
        ProviderSection.model_validate(VETTED | bad)


def test_with_signers_nothing_runs_while_somebody_unvetted_gets_something(tmp_path: Path) -> None:
    path, key = tmp_path / "shop.toml", fresh()
    path.write_text(COMPLETE)
    sign(platform(path), path, current(path, {}), key, "Ada", "2026-11-28T08:00:00Z")
    keys = {"authority": {"signers": [address_of(key)]}, "notify": {"webhook": "https://hooks.example/x"}}
    require_signed(FleetConfig.model_validate(keys), platform(path), path)
    with pytest.raises(
        ConfigError, match=r"notify\.webhook sends to hooks\.example: no \[providers\] names it"
    ):
        require_signed(FleetConfig.model_validate(keys), platform(path), path, state=tmp_path)
    whole = FleetConfig.model_validate({"authority": keys["authority"], "keep": {"sealed_for": RECIPIENT}})
    roles = "second json://localhost/a\nclient json://localhost/b\ncounsel json://localhost/c\n"
    private(tmp_path / "keys" / "notify", roles.encode())
    require_signed(whole, platform(path), path, state=tmp_path)
    for role in ("second", "client", "counsel"):
        (tmp_path / "keys" / "notify").write_text(roles.replace(f"{role} ", ""))
        with pytest.raises(ConfigError, match=f"notify: no line `{role} URL`, so nobody is told as {role}"):
            require_signed(whole, platform(path), path, state=tmp_path)
    (tmp_path / "keys" / "notify").write_text(roles)
    with pytest.raises(ConfigError, match=r"keep\.sealed_for: no key"):
        require_signed(
            FleetConfig.model_validate({"authority": keys["authority"]}), platform(path), path, state=tmp_path
        )
    loose = FleetConfig.model_validate(keys | {"authority": {}})
    require_signed(loose, platform(path), path, state=tmp_path)


def test_a_receiver_without_tls_is_no_receiver_of_a_signed_scope(tmp_path: Path) -> None:
    lines = (
        "second json://hooks.example/a",
        "client mailto://ann@mail.example",
        "counsel jsons://hooks.example/c",
    )
    private(tmp_path / "keys" / "notify", "\n".join((*lines, "json://localhost/b")).encode())
    config = FleetConfig.model_validate({"keep": {"sealed_for": RECIPIENT}})
    assert list(unready(config, tmp_path)) == [
        "notify:1 sends without TLS (json): write jsons",
        "notify:2 sends without TLS (mailto): write mailtos",
    ]
