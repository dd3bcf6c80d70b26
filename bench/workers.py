"""Items of a plan an hour, by how many conversations with a model there are at a time; and such runs killed.

    make bench-workers [ARGS="--items 12 --latency 3 --rounds 3 --kills 6"]

A scripted model answers each request after a known time; platform, chain, jails and the run's process are
real. Each item takes two answers: its probe, then the end. Items, rounds and kills are of each number of
workers; a killed run is settled by the next one. What must hold is checked in every round: each probe is
looked at once, the run is charged what the model's answers cost and no more, its finding is one entry of the
log. docs/bench/workers.md.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import statistics
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio

from fleet.app.wiring import open_world
from fleet.gate.model import Rung
from fleet.runs.run import fire, recover
from tests.acceptance.conftest import House, open_house, persona, probe, step
from tests.doubles.model import Answer, Held, ModelPrompt, Say, ScriptedCall, ScriptedModel, serve_model
from tests.e2e.modelled import KEY, LEAK

WORKERS = (1, 2, 4)
FRONT = """tools = ["qa_fetch", "qa_report"]
budget = { calls = 400, writes = 12, reports = 4, tokens = 4_000_000, wall = "20m" }
driver = "model"
policy = { max_turns_per_run = 200, turn_timeout = "60s" }"""


@dataclass(slots=True)
class Thinking:
    """A model that takes its time: asks for the probe it was told of, then finishes."""

    latency_s: float
    items: int
    tasks: anyio.abc.TaskGroup
    charged: int = 0
    thinking: int = 0
    most: int = 0
    asked: Counter[str] = field(default_factory=Counter)
    kill_at: int = 0
    """The request at which `kill` is called; 0 for never."""
    process: asyncio.subprocess.Process | None = None

    def __call__(self, prompt: ModelPrompt) -> Answer:
        told = json.dumps(prompt.messages[1])
        (mine,) = [name for name in names(self.items) if f"] {name}:" in told]
        say = Say(calls=[ScriptedCall("finish", {"detail": "seen"})])
        if not prompt.answers():
            self.asked[mine] += 1
            say = Say(text="I look.", calls=[ScriptedCall("run_probe", {"probe": mine})])
        assert say.usage is not None
        self.charged += say.usage["prompt_tokens"] + say.usage["completion_tokens"]
        there = anyio.Event()
        self.tasks.start_soon(self._after, there)
        return Held(there, say)

    async def _after(self, there: anyio.Event) -> None:
        self.thinking += 1
        self.most = max(self.most, self.thinking)
        await anyio.sleep(self.latency_s)
        self.thinking -= 1
        there.set()
        self.kill_at -= 1
        if not self.kill_at and self.process is not None:
            await anyio.sleep(self.latency_s / 3)  # its turn is taken, or the next answer is on its way
            self.process.send_signal(signal.SIGKILL)


def names(items: int) -> list[str]:
    return [f"item-{number:02}" for number in range(items)]


async def run_once(root: Path, items: int) -> None:
    """In a process of its own: settle what was left, fire the persona, say how it went."""
    probes = [
        probe(name, step("qa_fetch", url="{site}/?" + name), expect="result.status == 200")
        for name in names(items)
    ]
    probes[-1] = LEAK.replace("os-error-leak", names(items)[-1])
    one = persona(root, FRONT, *probes, name="qa-workers")
    async with open_world(root / "state", personas={"qa-workers": one}, platform="devnet") as world:
        old = await recover(world)
        report = await fire(world, one)
        runs = [row.run_id for row in await world.journal.runs()]
        posted = [row for run in runs for row in await world.journal.findings(run, ["posted"])]
        spent = await world.journal.spent(report.run)
        tries = json.loads((world.folder(report.run) / "state.json").read_text())["items"]
    print(
        json.dumps(
            {
                "outcome": report.outcome,
                "detail": report.detail,
                "seconds": report.seconds,
                "settled": [report.settled, *(row.settled for row in old)],
                "recovered": [row.outcome for row in old],
                "tokens": spent.get("tokens", 0),
                "tries": sorted({item["tries"] for item in tries}),
                "looked": len(report.coverage["looked"]),
                "posted": len(posted),
            }
        )
    )


async def one_run(
    model: ScriptedModel, thinking: Thinking, root: Path, workers: int
) -> dict[str, Any] | None:
    """A run by a process of its own; None when it was killed."""
    where = f'name = "openai:scripted", base_url = "{model.url}", max_tokens = 64, workers = {workers}'
    environment = {**os.environ, "QA_FLEET_MODEL": f"{{ {where} }}"}
    command = [sys.executable, "-m", "bench.workers", "--child", str(root), "--items", str(thinking.items)]
    process = await asyncio.create_subprocess_exec(*command, env=environment, stdout=asyncio.subprocess.PIPE)
    thinking.process = process
    out, _ = await process.communicate()
    return json.loads(out.splitlines()[-1]) if process.returncode == 0 else None


async def state_of(house: House, root: Path) -> Path:
    root.mkdir()
    state = await house.state(root, rung=Rung.EXERCISE)
    key = state / "keys" / "model"
    key.touch(mode=0o600)
    key.write_text(KEY)
    return root


def faults(found: dict[str, Any], thinking: Thinking) -> list[str]:
    """What does not hold of a finished run, in words."""
    wrong = []
    if found["outcome"] != "done" or not all(found["settled"]):
        wrong.append(f"ended {found['outcome']} ({found['detail']}), settled {found['settled']}")
    if found["tries"] != [1] or found["looked"] != thinking.items:
        wrong.append(f"tries {found['tries']}, looked at {found['looked']}")
    if found["tokens"] != thinking.charged:
        wrong.append(f"charged {found['tokens']} tokens, the answers were {thinking.charged}")
    if found["posted"] != 1:
        wrong.append(f"the finding was posted {found['posted']} times")
    return wrong


async def measure(options: argparse.Namespace) -> int:
    rates: dict[int, list[float]] = {workers: [] for workers in WORKERS}
    most: dict[int, int] = {}
    wrong: list[str] = []
    killed = Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        async with open_house(Path(folder)) as house, anyio.create_task_group() as tasks:
            thinking = Thinking(options.latency, options.items, tasks)
            async with serve_model(thinking) as model:

                async def again(root: Path, workers: int, kill_at: int = 0) -> dict[str, Any] | None:
                    thinking.charged, thinking.most, thinking.kill_at = 0, 0, kill_at
                    thinking.asked.clear()
                    return await one_run(model, thinking, root, workers)

                for number in range(options.rounds):
                    for workers in WORKERS:  # by turns: what else the machine does falls on all of them
                        root = await state_of(house, Path(folder) / f"rate-{workers}-{number}")
                        found = await again(root, workers)
                        assert found is not None
                        wrong += faults(found, thinking)
                        rates[workers].append(options.items / found["seconds"] * 3600)
                        most[workers] = thinking.most
                        print(f"{workers}: {rates[workers][-1]:.0f} items an hour", file=sys.stderr)
                for number in range(options.kills):
                    root = await state_of(house, Path(folder) / f"kill-{number}")
                    at = 1 + number * 2 * options.items // options.kills
                    if await again(root, 4, at) is not None:
                        killed["ended before"] += 1
                        continue
                    found = await again(root, 4)
                    assert found is not None
                    killed.update(found["recovered"])
                    wrong += [f"after a kill at answer {at}: {one}" for one in faults(found, thinking)]
            tasks.cancel_scope.cancel()
    print("| workers | items an hour | of one worker | answers at a time |\n|---|---|---|---|")
    base = statistics.median(rates[1])
    for workers, runs in rates.items():
        rate = statistics.median(runs)
        print(f"| {workers} | {rate:.0f} | {rate / base:.2f} | {most[workers]} |")
    shown = ", ".join(f"{word} {count}" for word, count in killed.items())
    print(f"\n{options.kills} runs with four workers killed, and run again. The killed ones ended: {shown}.")
    held = "Each probe was looked at once, each run charged what the answers cost, each finding is one entry."
    print("\n".join(wrong) or held)
    return bool(wrong)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--items", type=int, default=12)
    parser.add_argument("--latency", type=float, default=3.0, help="seconds of each answer")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--kills", type=int, default=6)
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        asyncio.run(run_once(options.child, options.items))
        return 0
    return asyncio.run(measure(options))


if __name__ == "__main__":
    raise SystemExit(main())
