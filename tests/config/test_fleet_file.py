"""Where a setting comes from: defaults, then the file, then the environment. The unknown is an error."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.config import FleetConfig, config_dirs, key_file, load_fleet, load_platform, overrides
from fleet.errors import ConfigError
from fleet.files import ROOT

FILE = 'platform = "mine"\nconcurrency = 3\n'
ADDRESS = "0x" + "ab" * 20


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "fleet.toml"
    path.write_text(FILE)
    return path


def test_defaults_then_file_then_environment(file: Path) -> None:
    got = load_fleet(file, {"QA_FLEET_CONCURRENCY": "7", "PATH": "/bin"})
    assert (got.platform, got.concurrency, got.identity) == ("mine", 7, "keys/identity")


def test_the_shipped_file_states_the_defaults() -> None:
    shipped = tomllib.loads((ROOT / "config" / "fleet.toml").read_text("utf-8"))
    assert FleetConfig.model_validate(shipped) == FleetConfig()
    assert load_fleet(environ={}) == FleetConfig()


def test_a_text_is_taken_as_it_is_and_the_rest_as_toml() -> None:
    environ = {"QA_FLEET_PLATFORM": 'a "quoted" # name', "QA_FLEET_TRUSTED": f'["{ADDRESS}"]'}
    got = load_fleet(environ=environ)
    assert (got.platform, got.trusted) == ('a "quoted" # name', (ADDRESS,))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("concurrency = " + "9" * 5_000, "a number is too long"),
        ("never = " + "[" * 5_000, "nested too deeply"),
    ],
)
def test_a_file_that_no_parser_takes_is_named(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "fleet.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=rf"fleet\.toml: {complaint}") as caught:
        load_fleet(path, {})
    assert caught.value.remedy


@pytest.mark.parametrize("name", ["QA_FLEET_CONCURENCY", "QA_FLEET_", "QA_FLEET_concurrency"])
def test_an_unknown_variable_names_the_valid_ones(name: str) -> None:
    with pytest.raises(ConfigError, match=rf"{name}: unknown variable; valid ones: .*QA_FLEET_CONCURRENCY"):
        load_fleet(environ={name: "1"})


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        ("33", "less than or equal to 32"),
        ("many", "not TOML"),
        ("", "not TOML"),
        ("4\nnever = []", "more than one value"),
        ("9" * 5_000, "a number is too long"),
        ("[" * 5_000, "nested too deeply"),
        ("[4]", "valid integer"),
    ],
)
def test_a_bad_value_names_its_variable(file: Path, value: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=rf"(?s)environment: QA_FLEET_CONCURRENCY.*{complaint}"):
        load_fleet(file, {"QA_FLEET_CONCURRENCY": value})


def test_a_bad_key_of_the_file_names_the_file(file: Path) -> None:
    file.write_text("concurency = 3\n")
    with pytest.raises(
        ConfigError, match=r"fleet\.toml: concurency: unknown key; valid keys here: .*concurrency"
    ):
        load_fleet(file, {"QA_FLEET_PLATFORM": "x"})


@pytest.mark.parametrize("word", ["clearFeedback", "0xac8063f", "0xac8063ffa", "ac8063ff", "", "0xac8063f\n"])
def test_a_never_selector_that_is_none_names_file_key_and_remedy(file: Path, word: str) -> None:
    file.write_text(f"never = ['0xac8063ff', {json.dumps(word)}]\n")
    with pytest.raises(ConfigError, match=r"fleet\.toml: never\.1: .*not a selector.*such as 0x") as caught:
        load_fleet(file, {})
    assert caught.value.remedy == f"correct it in {file}"


def test_a_webhook_is_a_table_with_a_plain_name(file: Path) -> None:
    file.write_text('[hooks.deploy]\n[hooks.on-tag]\nsecret_file = "/etc/tag"\n')
    got = load_fleet(file, {}).hooks
    assert {name: hook.secret_file for name, hook in got.items()} == {"deploy": "", "on-tag": "/etc/tag"}
    file.write_text('[hooks.deploy]\nsecret = "x"\n')
    complaint = (
        r"hooks\.deploy\.secret: unknown key; valid keys here: monitors, old_secret_file, secret_file, stop,"
    )
    with pytest.raises(ConfigError, match=complaint):
        load_fleet(file, {})
    for name in ("Deploy", "../x", "", "x" * 49):
        file.write_text(f'[hooks."{name}"]\n')
        with pytest.raises(ConfigError, match="hooks"):
            load_fleet(file, {})


def test_a_named_file_must_be_there_and_a_default_one_need_not(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="missing"):
        load_fleet(tmp_path / "missing.toml", {})


@given(st.dictionaries(st.text(), st.text()))
def test_what_is_not_ours_is_ignored(environ: dict[str, str]) -> None:
    others = {name: text for name, text in environ.items() if not name.startswith("QA_FLEET_")}
    assert overrides(others) == {}


def test_the_configuration_directory_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONFIGURATION_DIRECTORY", str(tmp_path))
    assert config_dirs() == (tmp_path, ROOT / "config")
    assert load_fleet(environ={}) == FleetConfig()
    (tmp_path / "fleet.toml").write_text(FILE)
    assert load_fleet(environ={}).platform == "mine"
    (tmp_path / "platforms").mkdir()
    shipped = (ROOT / "config" / "platforms" / "example.toml").read_text("utf-8")
    (tmp_path / "platforms" / "example.toml").write_text(shipped.replace("424242", "7"))
    assert load_platform("example", tmp_path)[0].chain.id == 7
    assert load_platform("localharness", tmp_path)[0].chain.id == 4217


class TestKeyFile:
    def test_the_state_directory_without_credentials(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("CREDENTIALS_DIRECTORY", raising=False)
        assert key_file(FleetConfig(), "sponsor", tmp_path) == tmp_path / "keys" / "sponsor"

    def test_a_credential_where_there_is_one(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path / "credentials"))
        (tmp_path / "credentials").mkdir()
        (tmp_path / "credentials" / "identity").touch()
        assert key_file(FleetConfig(), "identity", tmp_path) == tmp_path / "credentials" / "identity"
        assert key_file(FleetConfig(), "sponsor", tmp_path) == tmp_path / "keys" / "sponsor"

    def test_what_is_configured_wins(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
        (tmp_path / "identity").touch()
        config = FleetConfig(identity="/etc/elsewhere")
        assert key_file(config, "identity", tmp_path) == Path("/etc/elsewhere")
