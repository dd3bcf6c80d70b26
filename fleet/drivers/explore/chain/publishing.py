"""Publishes of the profile's own sample, in two sizes, for what they are quoted at. Pure."""

from __future__ import annotations

import re

from fleet.drivers.desk import Question
from fleet.drivers.explore.port import ExplorerContext
from fleet.personas.model import Step

COPIES = 24
CREATE = "qa_create"
PUBLISH = "qa_publish"
_DEFINED = re.compile(r"\b(?:fn|func|function|def)\s+([A-Za-z_]\w*)")


def sizes(context: ExplorerContext) -> list[Question]:
    """Each under a fresh name, so that it writes for the first time; none where the run may not act."""
    sample = context.platform.compiler.sample
    if not sample or not context.acts or CREATE not in context.tools or PUBLISH not in context.tools:
        return []
    sources = dict.fromkeys((sample, grown(sample)))
    return [
        Question(
            (
                Step(tool=CREATE, args={"name": "{name}"}),
                Step(tool=PUBLISH, args={"name": "{name}", "source": source}),
            )
        )
        for source in sources
    ]


def grown(sample: str) -> str:
    """The sample with copies of itself under other names; itself where no definition is recognised."""
    names = set(_DEFINED.findall(sample))
    if not names:
        return sample
    parts = [sample]
    for copy in range(COPIES):
        pattern = re.compile(rf"\b({'|'.join(map(re.escape, sorted(names)))})\b(?=\s*\()")
        parts.append(pattern.sub(lambda found, copy=copy: f"{found[1]}_{copy}", sample))  # type: ignore[misc]
    return "\n".join(parts)
