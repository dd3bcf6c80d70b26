"""The unit as text: what systemd makes of it offline, and how it is written and removed."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from fleet.app.bootstrap import GRACE_S, Options
from fleet.cli.operate.service import (
    HIDDEN,
    MARK,
    TEMPLATE,
    Installation,
    app,
    installation,
    may_replace,
    render,
)
from fleet.errors import ConfigError, Refused, UsageError
from fleet.service.daemon import LEAVE_S

THRESHOLD = 27
"""Tenths: what security.md measured for a unit under which bubblewrap still makes jails."""
BREAKS_JAILS = (
    "DynamicUser",
    "ProtectKernelTunables",
    "ProtectKernelLogs",
    "ProtectHostname",
    "ProcSubset",
    "RestrictSUIDSGID",
    "MemoryDenyWriteExecute",
    "PrivateNetwork",
)
analyze = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed"
)


def system_unit() -> str:
    chosen = installation(user=False)
    return chosen.files[chosen.unit]


def settings(unit: str) -> list[str]:
    return [line for line in unit.splitlines() if re.match(r"[A-Z]\w+=", line)]


def analyzed(folder: Path, text: str, *words: str) -> subprocess.CompletedProcess[str]:
    path = folder / "qa-fleet.service"
    path.write_text(text)
    environment = {"PATH": "/usr/bin:/bin", "XDG_RUNTIME_DIR": str(folder)}
    return subprocess.run(
        ["systemd-analyze", *words, str(path)], capture_output=True, text=True, timeout=60, env=environment
    )


def open_doors(folder: Path, text: str) -> float:
    """The sum of what systemd holds against it, in tenths; finer than the figure that it shows."""
    rows = json.loads(analyzed(folder, text, "security", "--offline=true", "--json=short").stdout)
    return sum(float(row["exposure"] or 0) for row in rows)


@analyze
class TestAnalyze:
    def test_systemd_finds_nothing_wrong_with_it(self, tmp_path: Path) -> None:
        done = analyzed(tmp_path, system_unit(), "verify")
        assert (done.returncode, done.stderr) == (0, "")

    def test_nor_with_the_one_of_a_user(self, tmp_path: Path) -> None:
        chosen = installation(user=True)
        done = analyzed(tmp_path, chosen.files[chosen.unit], "--user", "verify")
        assert (done.returncode, done.stderr) == (0, "")

    def test_it_is_as_closed_as_jails_allow(self, tmp_path: Path) -> None:
        words = ("security", "--offline=true", "--no-pager", f"--threshold={THRESHOLD}")
        done = analyzed(tmp_path, system_unit(), *words)
        assert (done.returncode, "exposure level" in done.stdout) == (0, True), done.stdout + done.stderr

    @pytest.mark.parametrize(
        "guard",
        [
            "User",
            "CapabilityBoundingSet",
            "NoNewPrivileges",
            "ProtectSystem",
            "ProtectHome",
            "PrivateTmp",
            "PrivateDevices",
            "PrivateUsers",
            "ProtectClock",
            "ProtectKernelModules",
            "ProtectControlGroups",
            "ProtectProc",
            "LockPersonality",
            "RestrictRealtime",
            "RestrictAddressFamilies",
            "SystemCallArchitectures",
            "SystemCallFilter",
            "UMask",
            "RemoveIPC",
        ],
    )
    def test_without_one_of_its_fences_it_is_not(self, tmp_path: Path, guard: str) -> None:
        weaker = re.sub(rf"^{guard}=.*\n", "", system_unit(), flags=re.MULTILINE)
        assert weaker != system_unit()
        assert open_doors(tmp_path, weaker) > open_doors(tmp_path, system_unit())


class TestRender:
    def render(self, **paths: str) -> str:
        given = {"root": "/opt/qa-fleet", "prefix": "/opt/qa-fleet/.venv", "base": "/usr"} | paths
        places: dict[str, Any] = {name: Path(path) for name, path in given.items()}
        return render(TEMPLATE.read_text("utf-8"), user=False, **places)

    def test_it_names_this_checkout(self) -> None:
        got = settings(self.render())
        assert "WorkingDirectory=/opt/qa-fleet" in got
        assert "ExecStartPre=/opt/qa-fleet/.venv/bin/fleet check config" in got
        assert "ExecStart=/opt/qa-fleet/.venv/bin/fleet up" in got
        assert "ProtectHome=yes" in got
        assert "@" not in "".join(line for line in got if not line.startswith("SystemCallFilter="))

    def test_it_waits_for_the_slowest_end_that_the_daemon_allows_itself(self) -> None:
        (line,) = [line for line in settings(self.render()) if line.startswith("TimeoutStopSec=")]
        assert int(line.partition("=")[2]) >= GRACE_S + LEAVE_S
        assert Options(Path(), ()).grace_s == GRACE_S

    @pytest.mark.parametrize("folder", HIDDEN)
    def test_a_checkout_below_a_hidden_folder_is_bound_back(self, folder: str) -> None:
        got = settings(
            self.render(root=f"{folder}/fleet", prefix=f"{folder}/fleet/.venv", base=f"{folder}/py")
        )
        assert "ProtectHome=tmpfs" in got
        assert f"BindReadOnlyPaths={folder}/fleet {folder}/py" in got

    def test_a_look_alike_of_a_hidden_folder_is_not(self) -> None:
        assert "ProtectHome=yes" in settings(
            self.render(root="/homework/fleet", prefix="/homework/fleet/.venv")
        )

    @pytest.mark.parametrize(
        "path", ["/opt/my fleet", "/opt/%h", "/opt/a\nUser=root", "/opt/$X", "/opt/a:b", "opt"]
    )
    def test_a_path_that_systemd_would_misread_is_refused(self, path: str) -> None:
        for name in ("root", "prefix", "base"):
            with pytest.raises(ConfigError, match="misread"):
                self.render(**{name: path})

    def test_a_path_is_not_a_template(self) -> None:
        with pytest.raises(ConfigError, match="misread"):
            self.render(root="/opt/@fleet@")

    def test_it_sets_nothing_under_which_no_jail_can_be_made(self) -> None:
        names = {line.partition("=")[0] for line in settings(self.render())}
        assert names.isdisjoint(BREAKS_JAILS)
        assert {"Type=notify", "NotifyAccess=main", "KillMode=mixed", "Restart=on-failure"} <= set(
            settings(self.render())
        )

    def test_a_users_unit_asks_for_nothing_that_only_the_machine_can_give(self) -> None:
        chosen = installation(user=True)
        names = {line.partition("=")[0] for line in settings(chosen.files[chosen.unit])}
        assert names.isdisjoint(
            {"User", "Group", "LoadCredential", "ProtectHome", "PrivateUsers", "ProtectSystem"}
        )
        assert {"NoNewPrivileges", "SystemCallFilter", "RestrictNamespaces", "WatchdogSec"} <= names
        assert "WantedBy=default.target" in chosen.files[chosen.unit]


class TestCommand:
    """Everything below a folder of the test; a `systemctl` that anyone calls would leave a mark."""

    @pytest.fixture(autouse=True)
    def trap(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        (tmp_path / "bin").mkdir()
        for name in ("systemctl", "systemd-sysusers", "useradd"):
            (tmp_path / "bin" / name).write_text(f"#!/bin/sh\necho {name} $* >>{tmp_path}/called\n")
            (tmp_path / "bin" / name).chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path / "bin"))
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
        return tmp_path / "called"

    def fleet(self, *words: str) -> Result:
        return CliRunner().invoke(app, [*words])

    def test_install_and_uninstall(self, tmp_path: Path, trap: Path) -> None:
        root = tmp_path / "root"
        said = self.fleet("install", "--system", "--root", str(root))
        assert said.exit_code == 0
        unit, users = root / "etc/systemd/system/qa-fleet.service", root / "etc/sysusers.d/qa-fleet.conf"
        assert unit.read_text() == system_unit()
        assert "u qa-fleet - " in users.read_text()
        assert (unit.stat().st_mode & 0o777, [p.name for p in unit.parent.iterdir()]) == (0o644, [unit.name])
        for command in ("systemctl daemon-reload", "systemctl enable --now qa-fleet", "systemd-sysusers"):
            assert command in said.stderr
        assert self.fleet("install", "--root", str(root)).exit_code == 0
        gone = self.fleet("uninstall", "--root", str(root))
        assert (gone.exit_code, unit.exists(), users.exists()) == (0, False, False)
        assert "systemctl disable --now qa-fleet" in gone.stderr
        assert "nothing is installed" in self.fleet("uninstall", "--root", str(root)).stderr
        assert not trap.exists()

    def test_a_dry_run_prints_and_writes_nothing(self, tmp_path: Path) -> None:
        said = self.fleet("install", "--dry-run", "--root", str(tmp_path / "root"))
        assert system_unit() in said.stdout
        data = json.loads(self.fleet("install", "--dry-run", "--json").stdout)
        assert (data["written"], data["files"]["/etc/systemd/system/qa-fleet.service"]) == (
            False,
            system_unit(),
        )
        self.fleet("install", "--root", str(tmp_path / "root"))
        assert "would remove" in self.fleet("uninstall", "--dry-run", "--root", str(tmp_path / "root")).stdout
        assert (tmp_path / "root/etc/systemd/system/qa-fleet.service").exists()

    def test_a_user_needs_no_root(self, tmp_path: Path) -> None:
        assert self.fleet("install", "--user").exit_code == 0
        unit = tmp_path / "config/systemd/user/qa-fleet.service"
        assert unit.read_text().startswith(MARK)
        assert self.fleet("uninstall", "--user").exit_code == 0
        assert not unit.exists()

    def test_show_tells_what_is_there(self, tmp_path: Path) -> None:
        def states() -> list[str]:
            rows = json.loads(self.fleet("show", "--root", str(tmp_path), "--json").stdout)
            return [row["state"] for row in rows]

        assert states() == ["absent", "absent"]
        self.fleet("install", "--root", str(tmp_path))
        self.fleet("install", "--user")
        assert states() == ["current", "current"]
        unit = tmp_path / "etc/systemd/system/qa-fleet.service"
        unit.write_text(unit.read_text() + "# edited\n")
        assert states() == ["differs", "current"]

    @pytest.mark.parametrize("kind", ["file", "link", "folder"])
    def test_what_is_not_ours_is_left_alone(self, tmp_path: Path, kind: str) -> None:
        unit = tmp_path / "etc/systemd/system/qa-fleet.service"
        unit.parent.mkdir(parents=True)
        if kind == "file":
            unit.write_text("[Service]\n")
        elif kind == "link":
            unit.symlink_to(tmp_path / "elsewhere")
        else:
            unit.mkdir()
        for command in ("install", "uninstall"):
            error = self.fleet(command, "--root", str(tmp_path)).exception
            assert isinstance(error, Refused)
            assert (error.rule, error.exit_code) == ("foreign-file", 5)
        assert not (tmp_path / "etc/sysusers.d").exists()
        assert not (tmp_path / "elsewhere").exists()

    def test_without_the_right_to_write_it_is_refused_with_what_to_do(self, tmp_path: Path) -> None:
        chosen: Installation = installation(user=False, root=tmp_path)
        with pytest.raises(Refused, match="you may not write to") as caught:
            may_replace(chosen, writable=lambda folder: False)
        assert caught.value.remedy.startswith("sudo /")
        assert "--user" in caught.value.remedy

    def test_both_scopes_at_once_are_refused(self) -> None:
        assert isinstance(self.fleet("install", "--user", "--system").exception, UsageError)
