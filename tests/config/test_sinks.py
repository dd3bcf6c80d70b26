"""`[sinks.<name>]`: where to, signed with what, and every mistake named with what to do about it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from fleet.cli.check import config as config_command
from fleet.cli.operate import hook
from fleet.config import FleetConfig, SinkSection, load_fleet, parse, sink_file
from fleet.errors import ConfigError
from fleet.files import ROOT
from fleet.triggers.hooks.secret import sink_secret

ALL = ("text", "reasoning", "tool_request", "tool_response", "finding")


def configured(text: str) -> FleetConfig:
    return parse(FleetConfig, text, file="fleet.toml")


def one(**keys: str) -> FleetConfig:
    return FleetConfig(sinks={"ci": SinkSection(url="https://ci.example/", **keys)})


def test_a_sink_needs_no_more_than_its_address() -> None:
    sink = configured('[sinks.ci]\nurl = "https://ci.example/fleet"\n').sinks["ci"]
    assert (sink.url, sink.secret_file, sink.kinds) == ("https://ci.example/fleet", "", ALL)


def test_the_example_of_the_shipped_file_is_right() -> None:
    shipped = (ROOT / "config" / "fleet.toml").read_text("utf-8")
    example = shipped[shipped.index("# [sinks.ci]") :].split("\n\n")[0].replace("# ", "")
    sink = configured(example).sinks["ci"]
    assert (sink.secret_file, sink.kinds) == ("keys/sink.ci", ALL)


def test_the_environment_can_name_sinks_too() -> None:
    environ = {"QA_FLEET_SINKS": '{ ci = { url = "http://127.0.0.1:8/x", kinds = [] } }'}
    assert load_fleet(environ=environ).sinks["ci"].kinds == ()


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:9000", "127.8.8.8", "[::1]:9000"])
def test_plain_http_stays_on_this_machine(host: str) -> None:
    assert configured(f'[sinks.ci]\nurl = "http://{host}/x"\n').sinks["ci"].url == f"http://{host}/x"


@pytest.mark.parametrize(
    ("name", "keys", "complaint"),
    [
        ("ci", 'url = "http://ci.example/"', r"sinks\.ci\.url: .*plain http to another machine: use https"),
        ("ci", 'url = "http://127.0.0.1.evil.example/"', r"sinks\.ci\.url: .*use https"),
        ("ci", 'url = "http://192.168.1.2/"', r"sinks\.ci\.url: .*use https"),
        ("ci", 'url = "ftp://ci.example/"', r"sinks\.ci\.url: "),
        ("ci", 'url = "https://user@ci.example/"', r"sinks\.ci\.url: "),
        ("ci", "", r"sinks\.ci\.url: Field required"),
        (
            "ci",
            'url = "https://x/"\nsecret = "s"',
            r"sinks\.ci\.secret: unknown key; valid keys here: certificate_file, kinds, secret_file, url",
        ),
        ("ci", 'url = "https://x/"\nkinds = ["texts"]', r"sinks\.ci\.kinds\.0: "),
        ("../x", 'url = "https://x/"', "sinks"),
    ],
)
def test_a_mistake_names_its_key(name: str, keys: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=rf"fleet\.toml: {complaint}"):
        configured(f'[sinks."{name}"]\n{keys}\n')


class TestSecret:
    @pytest.fixture(autouse=True)
    def _no_credentials(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("CREDENTIALS_DIRECTORY", raising=False)

    def write(self, path: Path, text: str = "s" * 32 + "\n", mode: int = 0o600) -> None:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(mode)

    def test_it_is_read_anew_each_time(self, tmp_path: Path) -> None:
        path = tmp_path / "keys" / "sink.ci"
        self.write(path)
        assert sink_secret(one(), "ci", tmp_path) == b"s" * 32
        self.write(path, "t" * 32)
        assert sink_secret(one(), "ci", tmp_path) == b"t" * 32

    def test_a_credential_wins_over_the_default_alone(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path / "c"))
        assert sink_file(one(), "ci", tmp_path) == tmp_path / "keys" / "sink.ci"
        self.write(tmp_path / "c" / "sink.ci", mode=0o440)
        assert sink_secret(one(), "ci", tmp_path) == b"s" * 32
        assert sink_file(one(secret_file="own"), "ci", tmp_path) == tmp_path / "own"

    def test_a_missing_one_says_which_key_which_file_and_how_it_is_made(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError) as caught:
            sink_secret(one(), "ci", tmp_path)
        path = tmp_path / "keys" / "sink.ci"
        assert str(caught.value) == f"sinks.ci.secret_file: key file {path}: No such file or directory"
        assert caught.value.remedy == "fleet service hook new ci --sink"

    @pytest.mark.parametrize(
        ("mode", "text", "why", "remedy"),
        [
            (0o640, "s" * 32, "lets others in", "chmod 0600"),
            (0o600, "s" * 15 + "\n", "at least 16 bytes", "openssl rand -hex 32 > "),
        ],
    )
    def test_a_bad_one_is_good_for_nothing(
        self, tmp_path: Path, mode: int, text: str, why: str, remedy: str
    ) -> None:
        self.write(tmp_path / "own", text, mode)
        with pytest.raises(ConfigError, match=rf"^sinks\.ci\.secret_file: .*{why}") as caught:
            sink_secret(one(secret_file="own"), "ci", tmp_path)
        assert caught.value.remedy.startswith(remedy)
        assert "sss" not in str(caught.value)


class TestCommands:
    @pytest.fixture(autouse=True)
    def state(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """A state directory with one sink configured, beside which there is no daemon."""
        state, folder = tmp_path / "state", tmp_path / "config"
        state.mkdir(mode=0o700)
        folder.mkdir()
        toml = 'platform = "example"\n[sinks.ci]\nurl = "https://ci.example/"\n'
        (folder / "fleet.toml").write_text(toml)
        monkeypatch.setenv("STATE_DIRECTORY", str(state))
        monkeypatch.setenv("CONFIGURATION_DIRECTORY", str(folder))
        monkeypatch.delenv("CREDENTIALS_DIRECTORY", raising=False)
        return state

    def test_a_check_is_red_until_the_secret_is_made(self, state: Path) -> None:
        assert str(say(config_command.app).exception).startswith("sinks.ci.secret_file: ")
        planned = data(hook.app, "new", "ci", "--sink", "--dry-run")
        path = state / "keys" / "sink.ci"
        assert planned == {"sink": "ci", "secret_file": str(path), "written": False}
        assert not path.exists()
        assert data(hook.app, "new", "ci", "--sink")["written"] is True
        assert (path.stat().st_mode & 0o777, len(path.read_text().strip())) == (0o600, 64)
        assert isinstance(say(hook.app, "new", "ci", "--sink").exception, ConfigError)
        assert data(config_command.app)["ok"] is True
        assert not (state / "keys" / "hook.ci").exists()

    def test_one_that_is_not_configured_is_told_what_to_write(self) -> None:
        said = say(hook.app, "new", "other", "--sink")
        assert (said.exit_code, "add to fleet.toml: [sinks.other]" in said.stderr) == (0, True)
        assert isinstance(say(hook.app, "new", "../x", "--sink").exception, ConfigError)


def say(app: typer.Typer, *words: str) -> Result:
    return CliRunner().invoke(app, [*words, "--json"])


def data(app: typer.Typer, *words: str) -> Any:
    said = say(app, *words)
    assert said.exit_code == 0, said.output or said.exception
    return json.loads(said.stdout)
