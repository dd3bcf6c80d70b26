"""`fleet …` with the personas of another folder: `python -m bench.findings.command FOLDER run qa-ux`."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from fleet.app import persona_sets
from fleet.cli import main
from fleet.devnet.defects import ALL_IDS

_PROBE = re.compile(r"^\[\[probe\]\]$", re.MULTILINE)
_ID = re.compile(r'^id = "([^"]+)"$', re.MULTILINE)


def without_own_probes(folder: Path) -> Path:
    """The shipped personas in `folder`, without the probes that remember the devnet's seeded defects."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in persona_sets.FOLDER.glob("*.md"):
        text = path.read_text("utf-8")
        head, fence, body = text.rpartition("\n+++\n")
        start, *probes = _PROBE.split(head)
        kept = [one for one in probes if (found := _ID.search(one)) and found[1] not in ALL_IDS]
        (folder / path.name).write_text("[[probe]]".join([start, *kept]) + fence + body, "utf-8")
    return folder


if __name__ == "__main__":
    persona_sets.roster.__defaults__ = (Path(sys.argv[1]),)
    sys.argv = ["fleet", *sys.argv[2:]]
    main()
