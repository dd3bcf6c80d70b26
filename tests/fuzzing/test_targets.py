"""Targets: the shipped ones are valid and work where installed; a wrong one is refused with why."""

from __future__ import annotations

import re
import subprocess
from functools import partial
from pathlib import Path

import pytest

from fleet.config import parse, read_text
from fleet.config.target import FuzzTarget, load_target, target_names
from fleet.errors import ConfigError, Unreachable, UsageError
from fleet.files import ROOT
from fleet.jail.bwrap.jail import BwrapJail
from fleet.runs.fuzz_start import read_corpus, target_image, works

FOLDER = ROOT / "config" / "targets"
SHIPPED = sorted(FOLDER.glob("*.toml"))
OWN = """name = "own"
[compiler]
command = ["/bin/cat"]
output = "text"
sample = "hello"
"""


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_a_target_is_valid_and_named_after_its_file(path: Path, tmp_path: Path) -> None:
    target, file = load_target(path.stem, tmp_path)
    assert (target.name, file) == (path.stem, path)
    assert target.compiler.sample
    for package in (*target.install.pip, *target.install.npm):
        assert target.compiler.root == f"{{targets}}/{target.name}", package


@pytest.mark.anyio
@pytest.mark.jail
@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
async def test_its_sample_compiles_in_a_jail(path: Path, tmp_path: Path) -> None:
    target, file = load_target(path.stem, tmp_path)
    try:
        image = target_image(target, file)
    except Unreachable as missing:
        pytest.skip(f"{missing}; {missing.remedy}")
    await works(target, image, partial(BwrapJail, pool=0, spool=tmp_path))


def test_a_target_is_found_by_name_by_file_and_by_a_platforms_name(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text(OWN)
    assert load_target(str(own), tmp_path)[0].name == "own"
    platform, path = load_target("localharness", tmp_path)
    assert (platform.name, path.name) == ("localharness", "localharness.toml")
    assert load_target(str(path), tmp_path)[0].compiler == platform.compiler
    assert {"devnet", "devnet-clean", "vyper", "localharness"} <= set(target_names(tmp_path))
    with pytest.raises(UsageError, match="no target named 'nope'; known: asc, "):
        load_target("nope", tmp_path)
    own.write_text(OWN + "speed = 3\n")
    with pytest.raises(ConfigError, match=r"own.toml: compiler.speed: unknown key; valid keys here: "):
        load_target(str(own), tmp_path)


def test_a_program_that_is_not_there_is_refused_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "old.toml").write_text(
        'name = "old"\ninstall = { npm = ["solc@0.5.0"] }\n'
        '[compiler]\nroot = "nowhere"\ncommand = ["/opt/tc/x"]\n'
    )
    (tmp_path / "bare.toml").write_text(OWN.replace("[comp", 'needs = ["/usr/bin/no-such"]\n[comp'))
    for name, said, remedy in (
        ("old", r"old: .*/nowhere \(/opt/tc\) is not there", "make targets"),
        ("bare", "own: /usr/bin/no-such is not installed", "install /usr/bin/no-such"),
    ):
        target, file = load_target(str(tmp_path / f"{name}.toml"), tmp_path)
        with pytest.raises(Unreachable, match=said) as refused:
            target_image(target, file)
        assert refused.value.remedy == remedy


@pytest.mark.anyio
@pytest.mark.jail
@pytest.mark.parametrize(
    ("command", "error", "said"),
    [
        ('["/bin/false"]', ConfigError, r"own: its compiler does not work: .* expected to be accepted"),
        ('["/usr/bin/no-such"]', Unreachable, "own: could not try its compiler: .*cannot be started"),
        ("[]", ConfigError, "own: it names no compiler"),
    ],
)
async def test_a_target_that_does_not_accept_its_sample_is_refused(
    command: str, error: type[Exception], said: str, tmp_path: Path
) -> None:
    target = parse(FuzzTarget, OWN.replace('["/bin/cat"]', command), file="own.toml")
    with pytest.raises(error, match=said):
        await works(
            target,
            target_image(target, tmp_path / "own.toml"),
            partial(BwrapJail, pool=0, spool=tmp_path),
        )


def test_the_corpus_is_text_of_a_bounded_size(tmp_path: Path) -> None:
    folder = tmp_path / "corpus"
    folder.mkdir()
    (folder / "a").write_text("one")
    (folder / "b").write_bytes(b"\xff\xfe")
    (folder / "c").write_text("x" * 20_000)
    target = parse(FuzzTarget, OWN + 'corpus = "corpus"\n', file="own.toml")
    assert read_corpus(target.compiler, tmp_path / "own.toml") == ("one",)
    folder.rename(tmp_path / "gone")
    with pytest.raises(ConfigError, match=r"corpus .* is not a folder"):
        read_corpus(target.compiler, tmp_path / "own.toml")


def test_a_search_begins_with_programs_of_the_grammar(tmp_path: Path) -> None:
    (tmp_path / "sums.lark").write_text('start: term ("+" term)*\nterm: "a" | "(" start ")"\n')
    target = parse(FuzzTarget, OWN + 'grammar = "sums.lark"\n', file="own.toml")
    made = read_corpus(target.compiler, tmp_path / "own.toml")
    assert len(made) == len(set(made)) > 20
    assert all(set(one) <= set("a+()") and one.count("(") == one.count(")") for one in made)
    assert made == read_corpus(target.compiler, tmp_path / "own.toml")


def test_every_key_of_a_target_is_in_its_guide() -> None:
    guide = read_text(ROOT / "docs" / "fuzz-a-compiler.md")
    for model in (FuzzTarget, FuzzTarget.model_fields["install"].annotation):
        for key in model.model_fields:  # type: ignore[union-attr]
            assert f"`{key}`" in guide, key
    from fleet.config.compiler import CompilerSection

    for key in CompilerSection.model_fields:
        assert f"`{key}`" in guide, key


def test_make_targets_is_there() -> None:
    done = subprocess.run(["make", "-n", "targets"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0
    assert "config/targets/install.py" in done.stdout


@pytest.mark.parametrize(
    ("name", "said", "clean"),
    [
        ("vyper-0.3.8", "FileNotFoundError:  Cannot locate interface '../a{.vy,.json}'", True),
        (
            "vyper-0.3.8",
            "FileNotFoundError: source.vy - Cannot perform relative import outside of base folder",
            True,
        ),
        ("vyper-0.3.8", "Error: invalid syntax: line 1", False),
        ("vyper-0.3.8", "FileNotFoundError: [Errno 2] No such file or directory: 'a'", False),
        ("vyper-0.3.8", "IndexError: list index out of range", False),
        ("wat2wasm", "-:3:7: error: unexpected token", True),
        ("wat2wasm", "0:0: error: type mismatch at elem expression. got funcref, expected externref", True),
        ("wat2wasm", "error: 0:0", False),
    ],
)
def test_what_a_compiler_tells_its_user_in_an_odd_form_is_a_clean_error(
    name: str, said: str, clean: bool, tmp_path: Path
) -> None:
    target, _ = load_target(name, tmp_path)
    assert bool(re.search(target.compiler.clean_error, said)) == clean
