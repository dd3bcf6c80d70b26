"""A fixer that is a program: any agent that edits the work tree it is started in, in a jail.

It sees the tree at `/box`, the folders that its operator names, the task, and one way out: to its model. No
repository, no token, no key. Its exit status and its words are noted; the gate judges the tree alone.
"""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from fleet.config.propose import ProposeSection
from fleet.errors import ConfigError, JailError
from fleet.findings.redact import Redactor
from fleet.fix.fixers.brief import write_brief
from fleet.fix.fixers.endpoint import INSIDE, ModelEgress
from fleet.fix.model import CommandEnd, FixAttempt, FixTask, StepResult
from fleet.fix.ports import FixBudget, TreeCommand, TreeJailPort, TreePort
from fleet.jail.locate import find_interpreter
from fleet.text import clean

TASK = "/opt/qa_task/task.md"
"""The task in the jail; the name of its mount cannot be that of an operator's."""
ENVIRONMENT: Mapping[str, str] = {"HOME": "/tmp", "TMPDIR": "/tmp", "PYTEST_ADDOPTS": "-p no:cacheprovider"}
"""A program's own files go outside of the tree: in it, they would be part of its patch."""
_TRANSCRIPT = 16_000


class CommandFixer:
    """Implements `Fixer`. `key` is the endpoint's; `rung` the dial's word, read at each of its requests."""

    name = "command"

    def __init__(
        self,
        section: ProposeSection,
        budget: FixBudget,
        *,
        key: str = "",
        rung: Callable[[], str] | None = None,
    ) -> None:
        """ConfigError for a section that cannot work."""
        if not section.command:
            raise ConfigError("propose.command: empty", remedy="name the program, or set fixer = 'none'")
        wants = any("{endpoint}" in value for value in section.environment.values())
        if wants and not section.endpoint:
            raise ConfigError("propose.environment names {endpoint}", remedy="set propose.endpoint")
        home = section.environment.get("HOME", "")
        if home == "/box" or home.startswith("/box/"):
            raise ConfigError("propose.environment: HOME is in the work tree", remedy="leave it out: /tmp")
        self._section, self._budget, self._key, self._rung = section, budget, key, rung
        self._egress()

    def __repr__(self) -> str:
        return "CommandFixer()"

    async def fix(
        self, task: FixTask, tree: TreePort, jails: TreeJailPort, failed: Sequence[StepResult]
    ) -> FixAttempt:
        """Run the program once on the tree. JailError: its jail broke. PatchRefused: it filled the disk."""
        seconds = min(task.repository.timeout_s, self._budget.seconds())
        way = self._egress()
        python = find_interpreter().inside
        brief = write_brief(task, failed, python=python, seconds=seconds, model=way is not None)
        text = brief.text(secrets.token_hex(8))
        with _task_folder(text) as folder:
            section = self._section
            mounts = task.repository.mounts | section.mounts
            own = {name: value.replace("{endpoint}", INSIDE) for name, value in section.environment.items()}
            command = TreeCommand(
                [word.replace("{task}", TASK) for word in section.command],
                seconds,
                keep=True,
                stdin=text.encode(),
                environment={**ENVIRONMENT, **own},
                mounts={name: Path(path) for name, path in mounts.items()} | {"qa_task": folder},
                egress=way.egress if way else None,
            )
            end = await jails.run(tree.path, command)
        if end.how == "lost":
            why = clean(end.stderr.decode("utf-8", "replace"), 300)
            raise JailError(f"the fixer's jail broke: {why}")
        records = way.records if way else ()
        how = f"exit status {end.code}" if end.how == "exited" else end.how
        said = f"the program ended after {end.seconds:.1f} s: {how}"
        if records:
            refused = sum(bool(one.rule) for one in records)
            sent, received = sum(one.sent for one in records), sum(one.received for one in records)
            said += f"; {len(records)} requests to its model ({refused} refused or cut), {sent} bytes sent, "
            said += f"{received} received"
        return FixAttempt(said, self._transcript(end))

    def _egress(self) -> ModelEgress | None:
        section = self._section
        if not section.endpoint:
            return None
        return ModelEgress(section.endpoint, key=self._key, header=section.endpoint_header, rung=self._rung)

    def _transcript(self, end: CommandEnd) -> str:
        said = b"\n".join(part for part in (end.stdout, end.stderr) if part).decode("utf-8", "replace")
        masked = Redactor([self._key] if self._key else ()).text(said)
        return clean(masked[-_TRANSCRIPT:], _TRANSCRIPT, newlines=True)


@contextmanager
def _task_folder(text: str) -> Iterator[Path]:
    """A folder with the task, readable for the user of a root daemon's jails."""
    with tempfile.TemporaryDirectory(prefix="qa-task-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "task.md").write_text(text, "utf-8")
        (folder / "task.md").chmod(0o644)
        yield folder
