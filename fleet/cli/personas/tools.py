"""`fleet personas tools`: what a probe may call, and what it answers."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from fleet.app.tool_reference import markdown, reference, words
from fleet.cli.console import Json, make_app, put, table
from fleet.errors import UsageError
from fleet.text import counted, suggestion
from sandbox.tools import TOOLS

app = make_app()


@app.command()
def tools(
    name: Annotated[str | None, typer.Argument(help="One tool by its name; default: all.")] = None,
    as_markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the whole reference, as docs/reference/tools.md has it.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show the tools: arguments, result fields, effect, cost and rung; placeholders and CEL functions.

    Examples: fleet personas tools · fleet personas tools NAME · fleet personas tools --json
    """
    if as_markdown:
        print(markdown(), end="")
        return
    if name is None:
        data: dict[str, Any] = {"tools": [reference(spec) for spec in TOOLS.values()], **words()}
        put(data, as_json=as_json, text=lambda: _all(data))
        return
    if name not in TOOLS:
        raise UsageError(
            f"no tool {name!r}{suggestion(name, TOOLS)}", remedy=f"choose one of {', '.join(TOOLS)}"
        )
    one = reference(TOOLS[name])
    put(one, as_json=as_json, text=lambda: _one(one))


def _all(data: dict[str, Any]) -> None:
    rows = (
        (one["name"], one["effect"], one["rung"], one["cost"]["calls"], one["cost"]["writes"], one["summary"])
        for one in data["tools"]
    )
    table(("tool", "effect", "rung", "calls", "writes", "what it does"), rows)
    for title in words():
        print(f"\n{title}")
        for form, text in data[title].items():
            print(f"  {'{' + form + '}' if title == 'placeholders' else form}  {text}")


def _one(one: dict[str, Any]) -> None:
    print(f"{one['name']}: {one['summary']}")
    cost = f"{counted(one['cost']['calls'], 'call')}, {counted(one['cost']['writes'], 'write')}"
    print(f"effect {one['effect']}, rung {one['rung']}, cost {cost}")
    if one["effect_varies"]:
        print("a call may be an act by its arguments: then it needs the rung exercise")
    if one["needs"]:
        print(f"needs  {', '.join(one['needs'])}")
    print(f"\n{one['example']}\n")
    for part in ("args", "result"):
        print("arguments" if part == "args" else "\nresult")
        rows = []
        for row in one[part]:
            must = "required: " if row["required"] else ""
            rows.append((row["name"], row["type"], row["unit"], must + row["says"]))
            rows += [
                (f"{row['name']}[].{inner['name']}", inner["type"], inner["unit"], inner["says"])
                for inner in row.get("fields", ())
            ]
        table(("name", "type", "unit", "what it is"), rows, longest=2_000)
