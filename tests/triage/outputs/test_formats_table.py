"""A format of the worklist is one file and one line."""

from __future__ import annotations

from pathlib import Path

from tests.house_copy import HouseCopy
from tests.triage.outputs.test_formats import HEADER, ITEMS

TABLE, ADDED = "fleet/triage/outputs/formats.py", "fleet/triage/outputs/names_file.py"
SOURCE = """
def to_names(items, header):
    return "".join(f"{header.platform} {one.fingerprint}\\n" for one in items).encode()
"""
WRITE = """
import sys
from pathlib import Path
from fleet.triage.outputs.files import save
from tests.triage.outputs.test_formats import HEADER, ITEMS
save(Path(sys.argv[1]), ITEMS, HEADER)
"""


def test_a_new_format_is_one_file_and_one_line(tmp_path: Path) -> None:
    house, state = HouseCopy(tmp_path), tmp_path / "state"
    (house.root / ADDED).write_text(SOURCE, "utf-8")
    line = '        "names": OutputFormat("Print names.", "names_file:to_names"),\n'
    house.replace(TABLE, '        "csv": OutputFormat(', f'{line}        "csv": OutputFormat(')
    assert house.changed() == [TABLE, ADDED]
    house.run("-c", WRITE, str(state))
    called = ("-m", "fleet.cli", "items", "--offline", "--names")
    opened = [one.fingerprint for one in ITEMS if one.rank]
    assert house.run(*called, "--limit", "2", state=state).splitlines() == [
        f"{HEADER.platform} {name}" for name in opened[:2]
    ]
    assert "--names" in house.run("-m", "fleet.cli", "items", "list", "--help")
