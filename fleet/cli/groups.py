"""Groups of commands: loaded when they are called, listed under headings, each summary whole."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup

LINE = 76
"""Characters of a summary in a completion: typer breaks a longer one, and fish reads the rest as a word."""
LONGEST = 400
"""Characters of a first sentence; click's own limit is the rest of the line, and cuts with an ellipsis."""


@contextmanager
def at_once() -> Iterator[None]:
    """Pause the collector during a burst of imports: it takes a third of their time and frees nothing."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


class LazyCommand(TyperCommand):
    """A command whose module below `fleet.cli` is imported when it is called: `--help` stays fast."""

    def __init__(
        self,
        name: str,
        module: str,
        summary: str,
        *,
        heading: str | None = None,
        hidden: bool = False,
        examples: Sequence[str] = (),
    ) -> None:
        super().__init__(name=name, help=summary, rich_help_panel=heading, hidden=hidden)
        self.module = module
        self.examples = examples

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:  # noqa: ANN401  click's own signature
        return self.loaded().make_context(info_name, args, parent=parent, **extra)

    def loaded(self) -> Any:  # noqa: ANN401  click's own signature
        """The command itself, with its examples."""
        with at_once():
            module = import_module(f"fleet.cli.{self.module}")
        command = typer.main.get_command(module.app)
        if self.examples:
            command.epilog = "\b\nExamples:\n" + "\n".join(f"  {one}" for one in self.examples)
        return command


class SummaryGroup(TyperGroup):
    """As typer's, with parts that are loaded late, a default command, and summaries that are not cut."""

    lazy: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """By name, of the parts that are loaded when they are called: module, summary, and a heading if any."""
    default: ClassVar[str] = ""
    """The command that nothing, or options alone, are for."""
    default_takes: ClassVar[bool] = False
    """Whether instead any word that is not a command, and options, are for the default."""

    def __init__(self, **attributes: Any) -> None:  # noqa: ANN401  click's own signature
        super().__init__(**attributes)
        for name, one in self.lazy.items():
            self.commands[name] = LazyCommand(name, one[0], one[1], heading=one[2] if len(one) > 2 else None)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401  click's own signature
        if args:
            known = args[0] in self.commands or args[0] in ctx.help_option_names
            meant = not known and (self.default_takes or args[0].startswith("-"))
        else:
            meant = not self.default_takes and not ctx.resilient_parsing  # a completion of nothing is of all
        if self.default and meant:
            args = [self.default, *args]
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:  # noqa: ANN401  click's own signature
        found: list[Any] = super().shell_complete(ctx, incomplete)
        for one in found:
            if command := self.get_command(ctx, one.value):
                one.help = command.get_short_help_str(LINE)
        if self.default and incomplete.startswith("-"):  # options alone are for the default command
            command = self.commands[self.default]
            inner = command.make_context(self.default, [], parent=ctx, resilient_parsing=True)
            found += inner.command.shell_complete(inner, incomplete)
        return found

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401  click's own signature
        headings: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            one = self.get_command(ctx, name)
            if one and not one.hidden:
                heading = getattr(one, "rich_help_panel", None) or "Commands"
                headings.setdefault(heading, []).append((name, one.get_short_help_str(LONGEST)))
        for heading, rows in headings.items():
            with formatter.section(heading):
                formatter.write_dl(rows)
