"""A group of commands whose help shows each summary whole, over several lines where it is long."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup

LINE = 76
"""Characters of a summary in a completion: typer breaks a longer one, and fish reads the rest as a word."""
LONGEST = 400
"""Characters of a first sentence; click's own limit is the rest of the line, and cuts with an ellipsis."""


class SummaryGroup(TyperGroup):
    """As typer's, but for the cut, in help and in a shell's completion."""

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:  # noqa: ANN401  click's own signature
        found: list[Any] = super().shell_complete(ctx, incomplete)
        for one in found:
            if command := self.get_command(ctx, one.value):
                one.help = command.get_short_help_str(LINE)
        return found

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401  click's own signature
        found = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [(name, one.get_short_help_str(LONGEST)) for name, one in found if one and not one.hidden]
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)
