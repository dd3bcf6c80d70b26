"""`[model]` in fleet.toml, the key's file, and the maker of drivers."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fleet.cli.check.config import app
from fleet.config import FleetConfig, model_key_file, parse
from fleet.drivers.model.factory import model_driver, model_key
from fleet.errors import ConfigError

KEY = "sk-not-a-real-key-0123456789"
OWN = '[model]\nname = "openai:own"\nbase_url = "http://127.0.0.1:8000/v1"\n'
HOSTED = '[model]\nname = "anthropic:claude"\n'


def config(text: str) -> FleetConfig:
    return parse(FleetConfig, text, file="fleet.toml")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('name = "gpt"', "model.name"),
        ('name = "openai:"', "model.name"),
        ('name = "openai:x"\nmodel = "x"', "valid keys here: base_url"),
        ('name = "openai:x"\nbase_url = "http://10.0.0.1/v1"', "plain http to another machine"),
        ('name = "openai:x"\nbase_url = "http://localhost.evil.test/v1"', "plain http to another machine"),
        ('name = "openai:x"\nbase_url = "ftp://127.0.0.1/"', "model.base_url"),
        ('name = "openai:x"\nmax_tokens = "4096"', "model.max_tokens"),
        ('name = "openai:x"\ntimeout = "forever"', "model.timeout"),
        ('name = "openai:x"\nprices = { input = 3.0, output = "15" }', "decimal number in quotes"),
        ('name = "openai:x"\nprices = { input = "3", output = "-1" }', "decimal number in quotes"),
        ('name = "openai:x"\nprices = { input = "3", output = "NaN" }', "decimal number in quotes"),
        ('name = "openai:x"\nprices = { input = "3" }', "model.prices.output"),
        ('name = "openai:x"\nprices = { input = "3", output = "1", usd = "1" }', "valid keys here: cached"),
    ],
)
def test_a_wrong_table_is_refused_by_name(line: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        config(f"[model]\n{line}\n")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "localhost", "[::1]"])
def test_plain_http_is_for_loopback(host: str) -> None:
    found = config(f'[model]\nname = "openai:x"\nbase_url = "http://{host}:8000/v1"\n').model
    assert found is not None


def test_without_a_table_there_is_no_driver(tmp_path: Path) -> None:
    assert model_driver(FleetConfig(), tmp_path) is None
    assert model_key(FleetConfig(), tmp_path) == ""


def test_an_endpoint_of_ones_own_may_do_without_a_key(tmp_path: Path) -> None:
    assert model_key_file(config(OWN), tmp_path) is None
    assert model_driver(config(OWN), tmp_path) is not None
    with pytest.raises(ConfigError, match="keys/model"):
        model_driver(config(HOSTED), tmp_path)
    with pytest.raises(ConfigError, match="keys/mine"):
        model_driver(config(OWN + 'key_file = "keys/mine"'), tmp_path)


def write(path: Path, content: bytes, mode: int = 0o600) -> None:
    path.parent.mkdir(mode=0o700, exist_ok=True)
    path.write_bytes(content)
    path.chmod(mode)


def test_a_key_is_one_private_line(tmp_path: Path) -> None:
    path = tmp_path / "keys" / "model"
    write(path, f"{KEY}\n".encode())
    assert model_key(config(HOSTED), tmp_path) == KEY
    for content, mode in ((KEY.encode(), 0o644), (b"short", 0o600), (b"two\nlines-of-key", 0o600)):
        write(path, content, mode)
        with pytest.raises(ConfigError) as error:
            model_key(config(HOSTED), tmp_path)
        assert content.decode() not in str(error.value)


def test_a_credential_of_systemd_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "credentials" / "model", KEY.encode())
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path / "credentials"))
    assert model_key(config(HOSTED), tmp_path / "state") == KEY


def test_making_a_driver_imports_no_sdk() -> None:
    code = (
        "import sys; from pathlib import Path; from fleet.config import *; "
        "from fleet.drivers.model.factory import model_driver; "
        f"assert model_driver(parse(FleetConfig, {OWN!r}, file='f'), Path('/nonexistent')); "
        "print([name for name in ('pydantic_ai', 'openai', 'httpx2') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(("table", "name"), [("", ""), (OWN, "openai:own")])
def test_config_check_says_who_drives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: str, name: str
) -> None:
    (tmp_path / "fleet.toml").write_text('platform = "example"\n' + table)
    monkeypatch.setenv("CONFIGURATION_DIRECTORY", str(tmp_path))
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))
    said = CliRunner().invoke(app, ["--json"])
    assert said.exit_code == 0, said.output
    assert json.loads(said.stdout)["model"] == name


def test_config_check_finds_a_key_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "fleet.toml").write_text('platform = "example"\n' + HOSTED)
    monkeypatch.setenv("CONFIGURATION_DIRECTORY", str(tmp_path))
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))
    said = CliRunner().invoke(app, [])
    assert isinstance(said.exception, ConfigError)
    assert "keys/model" in str(said.exception)
