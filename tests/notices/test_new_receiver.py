"""A new kind of receiver is a key of `[notify]` and a function: two files, and every command knows it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
CHANGES = {
    "config/notify.py": {
        "    quiet: Annotated[": '    pager_file: str = ""\n    """A token."""\n    quiet: Annotated[',
        '"secret_file": "notify-webhook"}': '"secret_file": "notify-webhook", "pager_file": "notify-pager"}',
    },
    "service/notify/receivers.py": {
        "_KINDS = (_webhook, _listed)": """
def _pager(section: NotifySection, files: Mapping[str, Path]) -> Receivers:
    async def send(message: NoticeMessage) -> str:
        with (files["pager_file"].parent / "paged").open("a") as file:
            file.write(message.title + "\\n")
        return ""

    return Receivers({"pager": send} if files["pager_file"].exists() else {})


_KINDS = (_webhook, _listed, _pager)"""
    },
}
"""By file of the copy: the texts that are replaced."""
SEND = """
import json, sys
from pathlib import Path
import anyio
from typer.testing import CliRunner
from fleet.cli.operate.notify import app
from fleet.config import FleetConfig, notify_files
from fleet.store.journal import Journal
from tests.notices.stand import Bench, private

async def main(state):
    async with await Journal.open(state / "fleet.db") as journal:
        here = Bench(journal, state, FleetConfig())
        watch = here.watch()
        await here.items()
        await watch.round()
        await here.items("confirmed")
        await here.later(watch)
        await here.later(watch)

state = Path(sys.argv[1])
private(state / "keys" / "notify-pager", b"token")
anyio.run(main, state)
said = json.loads(CliRunner().invoke(app, ["test", "--json"]).stdout)
paged = (state / "keys" / "paged").read_text().splitlines()
print(json.dumps([paged, said, str(notify_files(FleetConfig(), state)["pager_file"])]))
"""


def test_a_new_kind_of_receiver_is_two_files(tmp_path: Path) -> None:
    fleet = tmp_path / "house" / "fleet"
    shutil.copytree(ROOT / "fleet", fleet, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in ("config", "sandbox"):
        (fleet.parent / folder).symlink_to(ROOT / folder)
    assert len(CHANGES) <= 2
    for name, texts in CHANGES.items():
        text = (fleet / name).read_text("utf-8")
        for old, new in texts.items():
            assert text.count(old) == 1, (name, old)
            text = text.replace(old, new)
        (fleet / name).write_text(text, "utf-8")
    state = tmp_path / "state"
    state.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", SEND, str(state)],
        cwd=fleet.parent,
        capture_output=True,
        text=True,
        timeout=100,
        stdin=subprocess.DEVNULL,
        env=dict(os.environ)
        | {"PYTHONPATH": f"{fleet.parent}{os.pathsep}{ROOT}", "STATE_DIRECTORY": str(state)},
    )
    assert done.returncode == 0, done.stderr
    paged, tried, file = json.loads(done.stdout)
    assert paged == [
        "[HIGH] QA fleet, acme: 1 finding (decide what becomes of it)",
        "QA fleet, devnet: a test",
    ]
    assert tried == [{"receiver": "pager", "result": "delivered"}]
    assert file == str(state / "keys" / "notify-pager")
