"""A target of `fleet fuzz`: one program to search, without a platform around it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import StringConstraints

from fleet.config.compiler import CompilerSection
from fleet.config.files import config_dirs, own_config
from fleet.config.load import load_platform, parse, read_text
from fleet.config.platform import Platform
from fleet.config.section import Section
from fleet.errors import ConfigError, UsageError

Package = Annotated[str, StringConstraints(pattern=r"^@?[A-Za-z0-9._/-]{1,100}(==|@)[A-Za-z0-9.+-]{1,40}$")]


class InstallSection(Section):
    """What `make targets` fetches for it, with a pinned version each, into `{targets}/<name>`."""

    pip: tuple[Package, ...] = ()
    """Packages of PyPI, e.g. `vyper==0.4.3`; their modules are at the top of the folder."""
    npm: tuple[Package, ...] = ()
    """Packages of npm, e.g. `solc@0.8.37`, in `node_modules` of the folder."""


class FuzzTarget(Section):
    """One target: `config/targets/<name>.toml`, or any file of this shape."""

    name: Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9.-]{0,47}$")]
    """Name in reports; by convention the name of the file."""
    summary: Annotated[str, StringConstraints(max_length=200)] = ""
    """What it is, in a line."""
    install: InstallSection = InstallSection()
    """What must be installed first."""
    needs: tuple[Annotated[str, StringConstraints(pattern=r"^/usr/[A-Za-z0-9._/-]{1,100}$")], ...] = ()
    """Programs of this machine that it needs: jails see /usr."""
    mounts: dict[Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]{0,31}$")], str] = {}
    """More folders that its jails see, read-only: name below /opt to path, relative to this file's folder."""
    compiler: CompilerSection
    """The program itself, as in a platform's profile; its paths are relative to this file's folder."""


def target_names(state: Path) -> list[str]:
    """Everything that `fleet fuzz` knows by name: targets, and platforms."""
    folders = (*_folders(), state / "devnet", *(folder / "platforms" for folder in config_dirs()))
    return sorted({path.stem for folder in folders for path in folder.glob("*.toml")})


def load_target(name: str, state: Path) -> tuple[FuzzTarget, Path]:
    """A target by name or file, or a platform's compiler by the platform's name or file; and that file.

    A target wins over a platform of its name. UsageError names what is known.
    """
    if name.endswith(".toml"):
        path = Path(name).absolute()
        text = read_text(path)
        try:
            return parse(FuzzTarget, text, file=name), path
        except ConfigError:
            if "[chain]" not in text:
                raise
            return _of_platform(parse(Platform, text, file=name)), path
    for path in (folder / f"{name}.toml" for folder in _folders()):
        if path.is_file():
            return parse(FuzzTarget, read_text(path), file=str(path)), path
    try:
        platform, path = load_platform(name, state)
    except UsageError:
        raise UsageError(
            f"no target named {name!r}; known: {', '.join(target_names(state))}",
            remedy=f"name a file, or add {own_config()}/targets/<name>.toml (docs/fuzz-a-compiler.md)",
        ) from None
    return _of_platform(platform), path


def _folders() -> tuple[Path, ...]:
    return tuple(folder / "targets" for folder in config_dirs())


def _of_platform(platform: Platform) -> FuzzTarget:
    return FuzzTarget(name=platform.name.lower(), summary="", compiler=platform.compiler)
