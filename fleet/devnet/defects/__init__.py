"""The seeded defects: switches of the bundled platform, one file each, that the personas must find.

Each is modelled on a real finding. A file says what is wrong and how to tell; the code of the switch is
in the platform (`"<id>" in site.defects`) or in the compiler (`--defects`). A defect counts as found when a
posted item's evidence shows one of its effects, whatever asked the question.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from fleet.config import Section, parse, read_text
from fleet.devnet.defects.effects import ShownEffect
from fleet.errors import ConfigError
from fleet.personas.model import Surface
from fleet.severity import Severity

FOLDER = Path(__file__).parent


class Defect(Section):
    """One switch, as its file describes it."""

    id: Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9-]{0,47}$")]
    """Also the file's name and the id of the probe that finds it."""
    part: Literal["platform", "compiler"]
    """Which of the two programs has the switch."""
    surface: Surface
    severity: Severity
    title: str = Field(min_length=8, max_length=300)
    """The fault, and the expected behaviour."""
    rung: Literal["observe", "exercise"]
    """Lowest rung at which it can be found."""
    probe: Annotated[str, StringConstraints(pattern=r"^qa-[a-z0-9-]+/[a-z0-9-]+$")]
    """A persona and a probe that find it; the count of found defects does not look at it."""
    modelled_on: str = Field(min_length=8)
    """The real finding behind it: section and row of the platform facts."""
    tell: str = Field(min_length=8)
    """How to tell, in one sentence."""
    effect: tuple[ShownEffect, ...] = Field(min_length=1)
    """The same for a program: each alone suffices."""

    def shown_by(self, steps: Sequence[Mapping[str, Any]]) -> bool:
        """Whether the steps of an evidence bundle show one of its effects."""
        return any(effect.shown_by(steps) for effect in self.effect)


def load(paths: Iterable[Path]) -> tuple[Defect, ...]:
    """The defects in these files, by id; ConfigError for a bad file, a wrong name or an id used twice."""
    found: dict[str, Defect] = {}
    for path in sorted(paths):
        defect = parse(Defect, read_text(path), file=str(path))
        if defect.id in found:
            raise ConfigError(
                f"{path}: id: {defect.id!r} is used twice", remedy="give each defect its own id"
            )
        if path.stem != defect.id:
            raise ConfigError(
                f"{path}: id: {defect.id!r} is not the file's name", remedy="rename one of them"
            )
        found[defect.id] = defect
    return tuple(found.values())


def chosen(text: str) -> frozenset[str]:
    """Ids from a comma-separated list, `all` or `none`; ConfigError names the ids that exist."""
    if text in ("all", "none"):
        return ALL_IDS if text == "all" else frozenset()
    wanted = frozenset(part.strip() for part in text.split(",") if part.strip())
    if unknown := sorted(wanted - ALL_IDS):
        raise ConfigError(
            f"no such defect: {', '.join(unknown)}", remedy=f"choose from {', '.join(sorted(ALL_IDS))}"
        )
    return wanted


DEFECTS = load(FOLDER.glob("*.toml"))
ALL_IDS = frozenset(defect.id for defect in DEFECTS)
PLATFORM_IDS = frozenset(defect.id for defect in DEFECTS if defect.part == "platform")
COMPILER_IDS = frozenset(defect.id for defect in DEFECTS if defect.part == "compiler")
