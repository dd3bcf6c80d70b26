"""A process that is killed beside each step of a finding that is held, committed, released and posted; and
what the log and the journal have once another one has gone on. Prints a line of JSON for each kill.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import anyio

from fleet.chain.log.file_log import FileLog
from fleet.chain.ports import SignerPort
from fleet.config.platform import PostSection
from fleet.findings.redact import Redactor
from fleet.runs.context import RunContext
from fleet.runs.settlement.outbox import report_released
from fleet.store.journal import Journal
from fleet.store.rows import NewRun
from tests.runs.test_hold import decide
from tests.runs.test_outbox import FP, HEADER, NOTHING, US, Rig

STEPS = ("set_finding", "claim_posting", "claim", "finish", "add_decision", "trigger")


class Kills:
    """Kills this process before its n-th step, or after it; counts them all for 0."""

    def __init__(self, at: int) -> None:
        self.at, self.seen = at, 0

    def tick(self) -> None:
        self.seen += 1
        if self.seen == self.at:
            os.kill(os.getpid(), signal.SIGKILL)

    def beside(self, owner: Any, name: str) -> None:
        done: Callable[..., Awaitable[Any]] = getattr(owner, name)

        async def step(*args: Any, **keys: Any) -> Any:
            self.tick()
            found = await done(*args, **keys)
            self.tick()
            return found

        object.__setattr__(owner, name, step)


async def admit(text: str, **_: object) -> str:
    return US


async def course(root: Path, kills: Kills) -> None:
    """Everything from the proof to the post, going on from wherever another process was killed."""
    async with await Journal.open(root / "fleet.db") as journal:
        log = FileLog(root / "log.jsonl", cast(SignerPort, SimpleNamespace(admit_entry=admit)))
        rig = Rig(journal, hold=("critical",))
        rig.world.platform.post = PostSection(hold=("critical",), commit=True)  # type: ignore[misc]
        rig.world.redactor = Redactor()  # type: ignore[misc]
        rig.world.chain.log = log  # type: ignore[misc]
        for name in STEPS:
            kills.beside(journal, name)
        kills.beside(log, "post")
        rows = {row.run_id: row for row in await journal.runs()}
        if rows["old"].state != "ended":
            await rig.report_all("old")
            if rows["old"].state == "queued":
                await journal.claim("old", pid=1, pid_start=1)
            await journal.finish("old", "done", "")
        if not await journal.decisions("devnet"):
            await decide(rig, 1)
        if "new" not in rows:
            await journal.trigger(
                NewRun(
                    run_id="new", persona="q", key="new", platform="devnet", trigger="", rung="", budget={}
                )
            )
        await report_released(cast(RunContext, SimpleNamespace(fleet=rig.world, run="new", stream=NOTHING)))


async def begin(root: Path) -> None:
    async with await Journal.open(root / "fleet.db") as journal:
        rig = Rig(journal)
        await rig.confirmed("old")
        text = HEADER.replace("low", "critical")
        await journal.set_finding("old", FP, severity="critical", envelope=text)


async def found(root: Path) -> dict[str, Any]:
    async with await Journal.open(root / "fleet.db") as journal:
        (row,) = await journal.findings("old")
        texts = [entry.text for entry in await FileLog(root / "log.jsonl").range(0, 100)]
        return {"texts": texts, "state": row.state, "data": row.data}


def apart(work: Callable[[], Any]) -> int:
    """The wait status of a child that does some work."""
    child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException as error:
            print(repr(error), file=sys.stderr)
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1]


def main(root: Path) -> None:
    at, killed = 0, True
    while killed:
        at += 1
        place, kills = root / str(at), Kills(at)
        place.mkdir()
        seen = place / "seen.json"
        apart(partial(anyio.run, begin, place))
        status = apart(partial(anyio.run, course, place, kills))
        killed = os.WIFSIGNALED(status)
        again = apart(partial(anyio.run, course, place, Kills(0)))
        apart(partial(_tell, place, seen))
        print(
            json.dumps({"at": at, "status": status, "again": again} | json.loads(seen.read_text())),
            flush=True,
        )


def _tell(place: Path, seen: Path) -> None:
    seen.write_text(json.dumps(anyio.run(found, place)))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
