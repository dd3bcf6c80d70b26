"""Where the journal is, and that a password is nowhere but in a private file."""

from __future__ import annotations

from pathlib import Path

import pytest

from fleet.config import StoreSection, load_fleet
from fleet.errors import ConfigError
from fleet.store.location import store_place

URL = "postgresql://qa:s3cret@db:5432/fleet"


@pytest.fixture(autouse=True)
def without_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CREDENTIALS_DIRECTORY", raising=False)


def test_a_file_of_the_state_directory_unless_a_server_is_named(tmp_path: Path) -> None:
    assert store_place(StoreSection(), tmp_path) == tmp_path / "fleet.db"
    assert store_place(StoreSection(url="postgresql://qa@db/fleet"), tmp_path) == "postgresql://qa@db/fleet"
    assert (
        store_place(StoreSection(url="postgres:///fleet?host=/run"), tmp_path)
        == "postgres:///fleet?host=/run"
    )


def test_a_password_comes_from_a_private_file(tmp_path: Path) -> None:
    path = tmp_path / "store-url"
    path.write_text(URL + "\n")
    path.chmod(0o600)
    assert store_place(StoreSection(url_file="store-url"), tmp_path) == URL
    path.chmod(0o640)
    with pytest.raises(ConfigError, match="readable by others"):
        store_place(StoreSection(url_file="store-url"), tmp_path)


def test_systemd_s_credential_is_used_while_nothing_else_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    assert store_place(StoreSection(), tmp_path) == tmp_path / "fleet.db"
    (tmp_path / "store-url").write_text(URL)
    assert store_place(StoreSection(), tmp_path) == URL
    assert store_place(StoreSection(url="postgresql://x/y"), tmp_path) == "postgresql://x/y"


@pytest.mark.parametrize(
    "url", [URL, "postgresql:///fleet?password=s3cret", "postgresql://db/x?a=1&password=s3cret"]
)
def test_a_password_in_the_open_is_refused_and_not_repeated(tmp_path: Path, url: str) -> None:
    with pytest.raises(ConfigError, match="contains a password") as refused:
        store_place(StoreSection(url=url), tmp_path)
    assert "s3cret" not in f"{refused.value}{refused.value.remedy}"


def test_one_of_the_two_at_most(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="both url and url_file"):
        store_place(StoreSection(url="postgresql://db/x", url_file="f"), tmp_path)


@pytest.mark.parametrize("text", ["", "mysql://qa:s3cret@db/x", "s3cret"])
def test_a_file_without_a_url_is_told_and_not_shown(tmp_path: Path, text: str) -> None:
    (tmp_path / "f").write_text(text)
    (tmp_path / "f").chmod(0o600)
    with pytest.raises(ConfigError, match="not a database URL") as refused:
        store_place(StoreSection(url_file="f"), tmp_path)
    assert "s3cret" not in str(refused.value)


def test_another_scheme_is_an_error_of_the_key(tmp_path: Path) -> None:
    (tmp_path / "fleet.toml").write_text('[store]\nurl = "mysql://qa@db/x"\n')
    with pytest.raises(ConfigError, match=r"fleet\.toml: store\.url: String should match pattern"):
        load_fleet(tmp_path / "fleet.toml", {})
    assert (
        load_fleet(environ={"QA_FLEET_STORE": '{url = "postgresql://db/x"}'}).store.url == "postgresql://db/x"
    )
