"""A compiler's part of a profile, and the whole of a target of `fleet fuzz` (config/targets/)."""

from __future__ import annotations

from dataclasses import fields
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from fleet.config.section import REGEX, Section
from sandbox.programs.program import OutputKind, Program, SourceBy, WarmStart


class CompilerSection(Section):
    root: str = ""
    """Folder bound read-only into the jail as /opt/tc; relative to the profile's own folder, or below
    `{targets}`, what `make targets` fetched, or `{package}`, the folder of `fleet`."""
    command: tuple[str, ...] = ()
    """argv inside the jail; source on stdin or in a file, output on stdout or in a file. `{python}` is the
    jail's interpreter, `{source}` the source's path, `{output}` that of the output."""
    loader: tuple[str, ...] = ()
    """argv inside the jail that takes a module on stdin and prints its entry point."""
    language: str = ""
    """What it compiles, e.g. `rustlite`: probes with programs in another language are not applicable."""
    family: Annotated[str, StringConstraints(pattern=r"^[a-z0-9-]{0,24}$")] = ""
    """The family of its language, for lists of suspicious programs: `rust`, `solidity`, `vyper`,
    `typescript`, `c`, `wat`, `json` …; "" for none."""
    tool_chain: Literal["", "rust", "python", "javascript", "c", "go"] = ""
    """What it is written in, for the words of its internal errors; "" tries all of them."""
    sample: str = ""
    """A source that must compile to a module with an entry: tried in a jail by `fleet check` and
    before each run. Without it the check only starts the programs."""
    source_by: SourceBy = SourceBy.STDIN
    """`stdin`, or `file`: then `{source}` in the command is the path of a file named `file_name`."""
    file_name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]{1,60}$")] = "source"
    """Name of that file: many compilers go by its ending."""
    output: OutputKind = OutputKind.WASM
    """What an accepted source becomes: `wasm`, `evm` (deployment bytecode in hex), `abi` (JSON), `text`, or
    `none`. It decides what can be wrong with it."""
    output_file: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]{0,60}$")] = ""
    """The file that holds the output, `{output}` in the command; "": standard output."""
    entries: tuple[Annotated[str, StringConstraints(pattern=r"^[!-~]{1,60}$")], ...] = ()
    """Exports of which an accepted source that defines one of them must have one, e.g. `frame`; none: no such
    rule."""
    clean_exits: tuple[Annotated[int, Field(ge=1, le=255)], ...] = (1,)
    """Exit statuses of a clean error."""
    clean_error: Annotated[str, StringConstraints(max_length=500), REGEX] = ""
    """Regular expression that the diagnostic of every clean error matches; "": any diagnostic is clean unless
    it is known for an internal error."""
    environment: dict[Annotated[str, StringConstraints(pattern=r"^[A-Z_][A-Z0-9_]{0,40}$")], str] = {}
    """Variables of its environment, besides PATH, HOME and LANG."""
    folder: Annotated[str, StringConstraints(pattern=r"^(/[A-Za-z0-9_.-]+)*$")] = ""
    """Its working directory inside the jail; "": one of its own, empty."""
    memory_mb: int = Field(default=512, ge=16, le=4096)
    """Memory that it may have; one that needs more for a small source is a finding."""
    warm: WarmStart = WarmStart.SPAWN
    """How a campaign's executions share its start: `spawn` (not at all), `fork-server` (native programs),
    `python` (forked after the import), `node` (one process for many inputs)."""
    warm_entry: Annotated[str, StringConstraints(pattern=r"^[!-~]{0,200}$")] = ""
    """For `python`, `module:function` that takes the command's arguments; for `node`, the path in the jail of
    a script that exports `compile(source)`."""
    other: tuple[str, ...] = ()
    """argv of another version or compiler of the same language, to compare with."""
    printer: tuple[str, ...] = ()
    """argv that takes an output on standard input and prints a source of the same: what it prints is
    compiled again, for a round trip."""
    corpus: str = ""
    """Folder with sources that a search starts from; relative to the profile's own folder."""
    grammar: str = ""
    """Grammar of the language, a file in Lark's notation, relative likewise; without one, what the programs
    of the corpus have in common serves."""
    publish_cap: int = Field(default=16_384, gt=0)
    """Largest module the platform publishes, in bytes."""
    no_entry_code: str = Field(default="", max_length=40)
    """The platform's word for a module that has no entry point."""
    too_large_code: str = Field(default="", max_length=40)
    """The platform's word for a module over the cap."""

    @property
    def program(self) -> Program:
        """What a jail receives of it."""
        found: dict[str, Any] = {one.name: getattr(self, one.name) for one in fields(Program)}
        found |= {key: str(one) for key, one in found.items() if isinstance(one, StrEnum)}
        return Program(**found)
