"""What a file's TOML may cost is bounded before it is parsed."""

from __future__ import annotations

from typing import Any

import pytest

from fleet.errors import PersonaError
from fleet.personas.frontmatter import DOTS, split

DEEP = "a" + " . a" * 15_000


@pytest.mark.parametrize(
    "line",
    [
        f"{DEEP} = 1",
        f"[{DEEP}]",
        f"[[{DEEP}]]",
        f"x = {{ {DEEP} = 1 }}",
        'x = """"\\"""", ' + DEEP + " = 1",
        '"a"' + '."a"' * (DOTS + 1) + " = 1",
        f"[{'.'.join('a' * 32_000)}]",
    ],
)
def test_a_key_of_many_parts_is_refused_with_its_line(line: str) -> None:
    front = split(f'+++\nname = "qa-x"\n{line}\n+++\n', "x.md")
    with pytest.raises(PersonaError, match=f"x.md:3: more than {DOTS} dots on a line") as caught:
        front.data("x.md")
    assert caught.value.remedy == "break the line: a text may span lines between three quotes"


def test_dots_are_counted_by_the_line() -> None:
    text = '+++\nx = """\n' + ("." * DOTS + "\n") * 100 + '"""\n' + "a." * DOTS + "a = 1\n+++\n"
    data: Any = split(text, "x.md").data("x.md")
    assert data["x"] == ("." * DOTS + "\n") * 100
    for _ in range(DOTS + 1):
        data = data["a"]
    assert data == 1
