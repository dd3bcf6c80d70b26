"""The shipped personas without the probes that remember the devnet's seeded defects."""

from __future__ import annotations

import re
from pathlib import Path

from fleet.devnet.defects import ALL_IDS
from fleet.files import SHIPPED

_PROBE = re.compile(r"^\[\[probe\]\]$", re.MULTILINE)
_ID = re.compile(r'^id = "([^"]+)"$', re.MULTILINE)


def without_own_probes(folder: Path) -> Path:
    """Write them into `folder`, and return it."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in (SHIPPED / "personas").glob("*.md"):
        text = path.read_text("utf-8")
        head, fence, body = text.rpartition("\n+++\n")
        start, *probes = _PROBE.split(head)
        kept = [one for one in probes if (found := _ID.search(one)) and found[1] not in ALL_IDS]
        (folder / path.name).write_text("[[probe]]".join([start, *kept]) + fence + body, "utf-8")
    return folder
