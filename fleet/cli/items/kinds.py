"""`fleet items kinds`: what the fleet can find, and what each kind means."""

from __future__ import annotations

from typing import Annotated

import typer

from fleet.cli.console import Json, put, table
from fleet.errors import UsageError
from fleet.findings.kinds import Kind, link, markdown
from fleet.findings.kinds import kinds as all_kinds
from fleet.text import suggestion


def kinds(
    name: Annotated[str | None, typer.Argument(help="One kind by its id; default: all.")] = None,
    as_markdown: Annotated[
        bool,
        typer.Option("--markdown", help="Print the whole reference, as docs/reference/findings.md has it."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Show the kinds of findings: what is wrong, why it matters, what is healthy, how it is fixed.

    Examples: fleet items kinds · fleet items kinds open-redirect · fleet items kinds --json
    """
    if as_markdown:
        print(markdown(), end="")
        return
    known = all_kinds()
    if name is None:
        rows = [(one.id, one.severity, one.subject, one.name) for one in known.values()]
        put(
            [one.model_dump(mode="json") for one in known.values()],
            as_json=as_json,
            text=lambda: table(("kind", "severity", "subject", "what it is"), rows),
        )
        return
    if name not in known:
        raise UsageError(
            f"no kind {name!r}{suggestion(name, known)}", remedy="`fleet items kinds` lists them"
        )
    kind = known[name]
    put(kind.model_dump(mode="json"), as_json=as_json, text=lambda: _one(kind))


def _one(kind: Kind) -> None:
    print(f"{kind.name} ({kind.id})\n{kind.severity}: {kind.reason}\n\n{kind.wrong}")
    print(f"\nwhy it matters  {kind.why}\nhealthy         {kind.healthy}\nusual fix       {kind.fix}")
    print(f"one defect for each  {', '.join(kind.place)}\nshown by        {', '.join(kind.oracles)}")
    for reference in kind.references:
        print(f"reference       {reference}  {link(reference)}".rstrip())
