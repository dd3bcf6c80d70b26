"""The container's files as text: each agrees with what it speaks of. The images themselves: test_image.py."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from fleet.config import load_fleet
from fleet.files import ROOT
from fleet.jail.bwrap.spawn import DATA
from fleet.jail.docker.engine import root_archive
from fleet.service.http_server import application

RECIPES = ("Dockerfile", "sandbox/Dockerfile")
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())


def steps(name: str) -> list[tuple[str, str]]:
    """The instructions of a Dockerfile in order, continued lines joined, with their arguments."""
    lines = [line for line in (ROOT / name).read_text().splitlines() if not line.startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in joined.splitlines() if line)]


def last_stage(name: str) -> list[tuple[str, str]]:
    found = steps(name)
    return found[max(at for at, (word, _) in enumerate(found) if word == "FROM") :]


def compose() -> dict[str, Any]:
    data: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())
    return data


def manifest() -> dict[str, Any]:
    data: dict[str, Any] = yaml.safe_load((ROOT / "config/kubernetes.yaml").read_text())
    return data


def pod() -> dict[str, Any]:
    found: dict[str, Any] = manifest()["spec"]["template"]["spec"]
    return found


@pytest.mark.parametrize("name", RECIPES)
def test_every_file_that_is_copied_is_there_and_not_ignored(name: str) -> None:
    ignored = (ROOT / ".dockerignore").read_text()
    copied = [rest.split()[:-1] for word, rest in steps(name) if word == "COPY" and "--from" not in rest]
    for source in (source for sources in copied for source in sources if source != "."):
        assert (ROOT / source).exists(), source
        assert f"!{source}" in ignored.split(), source


@pytest.mark.parametrize("name", RECIPES)
def test_the_last_stage_runs_as_no_root_and_has_no_build_tools(name: str) -> None:
    stage = last_stage(name)
    users = [rest for word, rest in stage if word == "USER"]
    assert users
    assert int(users[-1].partition(":")[0]) > 0
    words = {word for step, rest in stage if step == "RUN" for word in rest.split()}
    assert words.isdisjoint({"gcc", "build-essential", "make", "pip", "npm", "python3-venv"})


def test_what_is_taken_out_of_the_image_is_for_developers_alone() -> None:
    removed = next(rest for _, rest in steps("Dockerfile") if "pip uninstall --yes grimp" in rest)
    words = removed.partition("uninstall --yes ")[2].split()
    extras = PROJECT["project"]["optional-dependencies"]
    wanted = [line for extra, lines in extras.items() if extra != "dev" for line in lines]
    needed = {re.split(r"[^\w-]", line)[0] for line in [*PROJECT["project"]["dependencies"], *wanted]}
    assert needed.isdisjoint(words)


def test_every_file_carries_the_version_of_the_package() -> None:
    version = PROJECT["project"]["version"]
    for name in (*RECIPES, "compose.yaml", "config/kubernetes.yaml", "docs/containers.md"):
        tags = re.findall(r"\bqa-fleet(?:-jail)?:(\d[\w.]*\w)", (ROOT / name).read_text())
        assert tags, name
        assert set(tags) == {version}, name


def test_health_checks_ask_for_pages_that_the_service_has() -> None:
    pages = {route.path for route in application(None).routes if hasattr(route, "path")}  # type: ignore[arg-type]
    image = next(rest for word, rest in steps("Dockerfile") if word == "HEALTHCHECK")
    asked = [json.loads(image.partition("CMD ")[2])]
    asked += [one["healthcheck"]["test"][1:] for one in compose()["services"].values()]
    probes = ("startupProbe", "livenessProbe", "readinessProbe")
    asked += [pod()["containers"][0][probe]["exec"]["command"] for probe in probes]
    assert {words[2] for words in asked} == {"/healthz", "/readyz"} <= pages
    assert {tuple(words[:2]) for words in asked} == {("/usr/bin/python3", "/opt/qa-fleet/config/probe.py")}


def test_the_drain_has_the_time_that_the_unit_gives() -> None:
    unit = (ROOT / "config/qa-fleet.service").read_text()
    seconds = re.findall(r"^TimeoutStopSec=(\d+)$", unit, re.M)[0]
    assert {one["stop_grace_period"] for one in compose()["services"].values()} == {f"{seconds}s"}
    assert pod()["terminationGracePeriodSeconds"] == int(seconds)
    assert f"--time {seconds}" in (ROOT / "Dockerfile").read_text()


def test_a_service_is_never_privileged_and_only_the_named_one_has_the_socket() -> None:
    services = compose()["services"]
    for name, one in services.items():
        assert one["cap_drop"] == ["ALL"]
        assert one["read_only"]
        assert "no-new-privileges:true" in one["security_opt"]
        assert not {"privileged", "cap_add", "network_mode", "pid"} & one.keys()
        assert any("docker.sock" in volume for volume in one["volumes"]) == (name == "engine-fleet")
    assert services["engine-fleet"]["profiles"] == ["engine"]


def test_the_filter_names_the_calls_that_bubblewrap_needs_and_none_that_the_unit_denies() -> None:
    rules = json.loads((ROOT / "config/seccomp.json").read_text())
    assert rules["defaultAction"] == "SCMP_ACT_ERRNO"
    named = {
        name for rule in rules["syscalls"] if rule["action"] == "SCMP_ACT_ALLOW" for name in rule["names"]
    }
    unit = (ROOT / "config/qa-fleet.service").read_text()
    needed = re.findall(r"^SystemCallFilter=(mount .*)$", unit, re.M)[0].split()
    assert named >= {*needed, "clone", "unshare"}
    denied = (
        "bpf chroot init_module io_uring_setup kexec_load keyctl open_by_handle_at perf_event_open ptrace"
    )
    assert named.isdisjoint({*denied.split(), "reboot", "setns", "setuid", "swapon", "userfaultfd", "clone3"})


def test_the_image_of_a_jail_has_the_etc_of_every_jail() -> None:
    recipe = (ROOT / "sandbox/Dockerfile").read_text()
    written = dict(re.findall(r"printf '([^']*)' > (etc/[\w.]+)", recipe))
    made = {place: text.replace("\\n", "\n").encode() for text, place in written.items()}
    assert set(made) == {path.lstrip("/") for path, _ in DATA}
    assert all(content in root_archive() for content in made.values())


def test_two_replicas_share_a_journal_and_have_a_volume_each() -> None:
    spec = manifest()["spec"]
    assert spec["replicas"] == 2
    assert [claim["metadata"]["name"] for claim in spec["volumeClaimTemplates"]] == ["state"]
    context = pod()["containers"][0]["securityContext"]
    assert context["readOnlyRootFilesystem"]
    assert not context["allowPrivilegeEscalation"]
    assert context["capabilities"] == {"drop": ["ALL"]}
    assert pod()["securityContext"]["runAsNonRoot"]


def test_the_manifest_fits_the_schemas_of_kubernetes() -> None:
    validator = pytest.importorskip("kubernetes_validate", reason="kubernetes-validate is not installed")
    validator.validate(manifest(), "1.30", strict=True)
    broken = manifest() | {"spec": manifest()["spec"] | {"replica": 2}}
    with pytest.raises(validator.ValidationError):
        validator.validate(broken, "1.30", strict=True)


def test_commands_of_the_page_name_files_that_exist() -> None:
    page = (ROOT / "docs/containers.md").read_text()
    blocks = re.findall(r"^```sh\n(.*?)^```", page, re.M | re.S)
    words = {word for block in blocks for word in shlex.split(block, comments=True)}
    named = {part for word in words for part in re.findall(r"(?:config|sandbox)/[\w./-]+", word)}
    assert "config/seccomp.json" in named
    assert [name for name in sorted(named) if not Path(ROOT, name).exists()] == []


def test_the_settings_in_the_environment_are_the_fleets() -> None:
    engine = compose()["services"]["engine-fleet"]["environment"]
    jail = load_fleet(environ=engine).jail
    assert (jail.backend, jail.image) == ("docker", f"qa-fleet-jail:{PROJECT['project']['version']}")
    config = load_fleet(environ={one["name"]: one["value"] for one in pod()["containers"][0]["env"]})
    copied = pod()["initContainers"][0]["command"][2].split()[-1]
    assert (config.store.url_file, config.identity) == (f"{copied}store-url", "keys/identity")
