"""State directories over one remote, processes that propose in them, and what must hold after every death."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import anyio
from anyio import to_thread

from fleet.clock import SystemClock
from fleet.gate.dial import write_dial
from fleet.gate.model import Rung
from fleet.jail.process import proc_stat
from fleet.store.journal import Journal
from tests.crash.farm import Zygotes
from tests.fix.github_server import GitHubServer
from tests.fix.kill_zygote import CALLS, CANARY, Life
from tests.fix.repositories import Remote, git, make_remote
from tests.fix.tasks import FP

BRANCH = f"qa-fleet/{FP}"
LEFT = ("trees/*", "runs/*/fix", "proposals/**/index-*", "proposals/**/patches")
"""What may lie in a state directory only while a process is at work."""


@dataclass
class KillTrial:
    """One fleet of several machines: a remote, a log, a journal. `kills` counts. `url` is the remote's, where
    it is not a path."""

    folder: Path
    zygotes: Zygotes
    place: str = ""
    server: GitHubServer | None = None
    kills: int = 0
    url: str = ""

    def __post_init__(self) -> None:
        self.folder.mkdir()
        self.remote: Remote = make_remote(self.folder)
        if self.server is not None:
            self.server.bare = self.remote.bare
            self.server.pulls.clear()
        allow = self.folder / "allow"
        allow.mkdir(mode=0o755)
        for path, text, mode in ((allow / FP, "allow\n", 0o644), (self.folder / "github", CANARY, 0o600)):
            path.write_text(text)
            path.chmod(mode)

    def home(self, me: str) -> Path:
        """The state directory of one machine, at the rung `propose`."""
        state = self.folder / me
        if not state.exists():
            state.mkdir(mode=0o700)
            write_dial(state, Rung.PROPOSE, "a test", "t", SystemClock())
            place = self.place or str(state / "fleet.db")
            api = self.server.url if self.server else ""
            life = Life(place, self.url or self.remote.url, str(self.folder), me, api)
            (state / "life.json").write_text(json.dumps(asdict(life)))
        return state

    async def live(
        self, me: str = "one", crash_at: str = "", *, way: str = "propose", **stop: str
    ) -> list[str]:
        """One process; the steps that it took. It must end well, or by the SIGKILL that it was promised."""
        state = await to_thread.run_sync(self.home, me)
        async with self.zygotes.idle() as zygote:
            life = {"state": str(state), "way": way, "crash_at": crash_at} | stop
            code, steps = await to_thread.run_sync(zygote.live, life)
        self.kills += code == -signal.SIGKILL
        assert code in (0, -signal.SIGKILL if crash_at else 0), (me, crash_at, self.log(me))
        return steps

    async def stopped(self, me: str) -> int:
        """The pid of a machine's process, once it is stopped."""
        path = self.folder / me / "pid"
        with anyio.fail_after(60):
            while True:
                pid = int(path.read_text() or 0) if path.exists() else 0
                stat = proc_stat(pid) if pid else None
                if stat is not None and stat.state == "T":
                    return pid
                await anyio.sleep(0.02)

    def log(self, me: str) -> str:
        return (self.folder / me / "child.log").read_text()

    async def states(self) -> list[str]:
        """Of its proposals, the oldest first."""
        async with await Journal.open(self._place) as journal:
            return [row.state for row in await journal.proposals("p")]

    async def spent(self) -> dict[str, int]:
        """Calls by run."""
        async with await Journal.open(self._place) as journal:
            runs = await journal.runs()
            return {row.run_id: (await journal.spent(row.run_id)).get("calls", 0) for row in runs}

    async def check(self, where: str, machines: Sequence[str] = ("one",)) -> None:
        """One branch, one request, one record; nothing left over; no token; no budget begun anew."""
        async with await Journal.open(self._place) as journal:
            rows = await journal.proposals("p")
            runs = await journal.runs()
            assert [row.state for row in runs] == ["ended"] * len(runs), where
        states = [row.state for row in rows]
        assert states.count("open") == 1, (where, states, [self.log(one) for one in machines])
        assert set(states) <= {"open", "withdrawn"}, (where, states)
        (opened,) = (row for row in rows if row.state == "open")
        await to_thread.run_sync(self._look, opened.proposal_id, opened.head, where, machines)
        assert all(calls <= CALLS for calls in (await self.spent()).values()), where

    def _look(self, run: str, head: str, where: str, machines: Sequence[str]) -> None:
        branches = git(self.remote.bare, "for-each-ref", "--format=%(refname) %(objectname)").splitlines()
        assert [one for one in branches if "main" not in one] == [f"refs/heads/{BRANCH} {head}"], where
        made = git(self.remote.bare, "log", "--format=%B", f"main..{BRANCH}")
        assert f"QA-Fleet-Run: {run}" in made, (where, made)
        if self.server is None:
            requests = {path.read_text() for path in self.folder.glob("*/proposals/**/request.txt")}
            assert len(requests) == 1, (where, requests)
        else:
            assert [pull["state"] for pull in self.server.pulls.values()] == ["open"], where
        posted = [json.loads(line) for line in (self.folder / "log.jsonl").read_text().splitlines()]
        assert len(posted) == 1, (where, posted)
        for me in machines:
            left = [path for pattern in LEFT for path in (self.folder / me).glob(pattern)]
            assert left == [], (where, left)
        assert tokens(self.folder) == [], where

    @property
    def _place(self) -> str | Path:
        return self.place or self.folder / "one" / "fleet.db"


def tokens(folder: Path) -> list[Path]:
    """Files of ours in which the token is, its own apart; and processes at work there that have it."""
    needle = CANARY.encode()
    files = [path for path in folder.rglob("*") if path.is_file() and path != folder / "github"]
    found = [path for path in files if needle in path.read_bytes()]
    for process in Path("/proc").glob("[0-9]*/environ"):
        try:
            environment = process.read_bytes()
            if needle in environment and os.fsencode(folder) + b"/" in environment:
                found.append(process)
        except OSError:
            continue
    return found
