"""Jails over a work tree: its commands, and our tools against its build.

The tree's content is hostile. A command works on a copy that a jail makes of a read-only mount, on its own
tmpfs of a fixed size: no jail writes to a disk of this machine, and files without a name count as well. What
is to be kept comes out as a bounded stream of changes (`tree_changes.py`).
"""

from __future__ import annotations

import base64
import json
import secrets
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from anyio.to_thread import run_sync

from fleet.config.platform import Platform
from fleet.errors import FixError, JailError
from fleet.files import disk_errors
from fleet.findings.repro import ReproCall
from fleet.fix.build_calls import PORT, SITE, applicable, resolved
from fleet.fix.jails.tree_changes import RECORD, apply_changes, full
from fleet.fix.model import CommandEnd, FixTask
from fleet.fix.ports import MakeJail, TreeCommand
from fleet.fix.repository.trees import take_over
from fleet.jail.model import Egress, End, Image, Layout, Limits, Outcome
from fleet.runs.call.guest_protocol import MAX_VALUES, bad_args, result_of
from fleet.text import line
from sandbox import strict_json
from sandbox.spec import Context, ToolSpec
from sandbox.trees.calls import EXIT_NO_SERVICE

LIMITS = Limits(
    data=4 << 30,
    file=1 << 30,
    files=4096,
    processes=256,
    cpu_s=3600,
    box=1 << 30,
    tmp=256 << 20,
    stdout=8 << 20,
    memory=3 << 30,
    inodes=200_000,
)
"""Of builds and tests, which need more than a tool. A repository's own time limit ends a command earlier."""
CALL_S = 30.0
"""Deadline of one tool call, in seconds."""
MARGIN_S = 15.0
"""Seconds that a jail has beyond its guest, for the copy and the start."""
_MOUNT = "qa_tree"
_WORDS = ("app", "web", "api", "site", "work")
_HOW = ("exited", "signaled", "timeout", "flood")


class TreeJails:
    """Implements TreeJailPort. `platform` is the profile whose items are fixed: what its compiler's answers
    mean, and where a name's public page is."""

    def __init__(self, make_jail: MakeJail, platform: Platform, limits: Limits = LIMITS) -> None:
        self._make, self._platform, self._limits = make_jail, platform, limits

    async def run(self, tree: Path, command: TreeCommand) -> CommandEnd:
        """Run a command; see `fleet.fix.ports`. Its mounts are in PYTHONPATH as well, and the guest's own
        packages serve what they do not bring. A jail that could not be made or broke is "lost", with the
        reason in `stderr`."""
        deadline_s, egress = command.deadline_s, command.egress
        request = {
            "v": 1,
            "argv": list(command.argv),
            "stdin": base64.b64encode(command.stdin).decode(),
            "environment": dict(command.environment),
            "keep": command.keep,
            "wall_s": deadline_s,
            "cpu_s": deadline_s * 4,
            "memory": self._limits.data,
        }
        image = self._image("sandbox.trees.command", command.mounts, tree)
        try:
            if command.keep:
                # run it, then make the tree what the command has left; a jail that breaks leaves it as it was
                limits = image.limits
                with disk_errors(tree.parent), tempfile.TemporaryFile(dir=tree.parent) as stream:
                    most = limits.stdout + limits.box + limits.inodes * RECORD
                    image = replace(image, output=stream.fileno(), limits=replace(limits, stdout=most))
                    outcome = await self._call(image, tree, request, deadline_s + 2 * MARGIN_S, egress)
                    stream.seek(0)
                    end = _ended(replace(outcome, stdout=stream.readline(limits.stdout)))
                    if outcome.end is End.FLOOD:
                        raise full(limits.box)
                    if end.how != "lost" and outcome.end is End.EXITED:
                        await run_sync(apply_changes, tree, stream, limits)
                return end
            return _ended(await self._call(image, tree, request, deadline_s + MARGIN_S, egress))
        except JailError as error:
            return CommandEnd(0, "lost", b"", str(error).encode(), 0.0)

    async def ask(
        self, tree: Path, task: FixTask, calls: Sequence[ReproCall], *, elsewhere: bool = False
    ) -> Sequence[Mapping[str, Any]]:
        """The results of these calls, up to the first that could not look; see the port.

        FixError for a call that no build answers; JailError when the jail broke.
        """
        layout = Layout()
        if elsewhere:  # places and names that no fixer knows: they are of this jail alone
            word = f"{secrets.choice(_WORDS)}-{secrets.token_hex(3)}"
            layout = Layout(box=f"/srv/{word}", opt=f"/var/{secrets.token_hex(4)}", host=word, user="app")
        specs = [applicable(task.repository, one) for one in calls]
        asked = [resolved(self._platform, one) for one in calls]
        for spec, one in zip(specs, asked, strict=True):
            if bad := bad_args(spec, one.args):
                raise FixError(f"its repro does not fit {spec.name}: {line(bad, 120)}")
        service = task.repository.service if any(spec.in_build == "service" for spec in specs) else None
        request = {
            "v": 1,
            "calls": [{"tool": one.tool, "args": dict(one.args)} for one in asked],
            "ctx": asdict(self._context(task, layout)),
            "service": None
            if service is None
            else {
                "command": list(service.command),
                "port": PORT,
                "ready": service.ready,
                "starts_s": service.starts_s,
            },
        }
        mounts = {name: Path(path) for name, path in task.repository.mounts.items()}
        image = self._image("sandbox.trees.calls", mounts, tree, layout)
        deadline_s = CALL_S * len(asked) + (service.starts_s if service else 0.0) + MARGIN_S
        outcome = await self._call(image, tree, request, deadline_s, None)
        return _results(outcome, specs)

    def _context(self, task: FixTask, layout: Layout) -> Context:
        compiler, program = task.repository.compiler, self._platform.compiler.program
        if compiler is not None:
            program = replace(
                program,
                command=_placed(compiler.command, layout),
                loader=_placed(compiler.loader, layout),
                environment={"PYTHONPATH": layout.inside("/opt/site"), "PYTHONDONTWRITEBYTECODE": "1"},
                folder="",
                other=(),
                printer=(),
            )
        return Context(
            run=task.run,
            prefix=f"qa-{task.run}-",
            site=SITE,
            proxy=SITE,
            program=program,
            publish_cap=self._platform.compiler.publish_cap,
            deadline_s=CALL_S,
        )

    async def _call(
        self,
        image: Image,
        tree: Path,
        request: Mapping[str, Any],
        deadline_s: float,
        egress: Egress | None,
    ) -> Outcome:
        take_over(tree)
        jail = self._make(image)
        try:
            text = json.dumps(request, ensure_ascii=True).encode() + b"\n"
            return await jail.call(text, deadline_s=deadline_s, egress=egress)
        finally:
            await jail.aclose()

    def _image(
        self, guest: str, mounts: Mapping[str, Path], tree: Path, layout: Layout | None = None
    ) -> Image:
        named = ((path, name) for name, path in sorted(mounts.items()))
        return Image(
            mounts=(*named, (tree, _MOUNT)),
            limits=self._limits,
            layout=layout or Layout(),
            guest=guest,
        )


def _placed(command: Sequence[str], layout: Layout) -> tuple[str, ...]:
    return tuple(word.replace("{tree}", layout.box) for word in command)


def _ended(outcome: Outcome) -> CommandEnd:
    """From the process's end: only a guest that ended well has told of the command."""
    if outcome.end is End.TIMEOUT or outcome.end is End.FLOOD:
        how = "timeout" if outcome.end is End.TIMEOUT else "flood"
        return CommandEnd(0, "timeout" if how == "timeout" else "flood", b"", b"", outcome.seconds)
    if outcome.end is not End.EXITED or outcome.code != 0:
        return CommandEnd(0, "lost", b"", _last_words(outcome), outcome.seconds)
    try:
        said = strict_json.loads(outcome.stdout)
        how, code, seconds = said["how"], said["code"], said["seconds"]
        if said["v"] != 1 or how not in _HOW or type(code) is not int or type(seconds) not in (int, float):
            raise ValueError("not a result")
        output = [base64.b64decode(said[name], validate=True) for name in ("stdout", "stderr")]
    except (ValueError, KeyError, TypeError):
        return CommandEnd(0, "lost", b"", b"the guest returned garbage", outcome.seconds)
    return CommandEnd(code, how, output[0], output[1], float(seconds))


def _results(outcome: Outcome, specs: Sequence[ToolSpec]) -> list[dict[str, Any]]:
    if outcome.end is End.EXITED and outcome.code == EXIT_NO_SERVICE:
        why = _last_words(outcome, 600).decode("utf-8", "replace")
        return [{"ok": False, "latency_ms": 0.0, "error": why, "error_class": "cannot_start", "hint": ""}]
    if outcome.end is not End.EXITED or outcome.code != 0:
        words = _last_words(outcome).decode("utf-8", "replace")
        raise JailError(f"the jail of the build ended badly ({outcome.end} {outcome.code}): {words}")
    found: list[dict[str, Any]] = []
    try:
        for number, text in enumerate(outcome.stdout.split(b"\n")[:-1]):
            said = strict_json.loads(text, values=MAX_VALUES)
            if said["call"] != number or number >= len(specs):
                raise ValueError("out of order")
            found.append(result_of(specs[number], said))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise JailError(f"the jail of the build returned garbage: {type(error).__name__}") from None
    if not found:
        raise JailError("the jail of the build returned nothing")
    return found


def _last_words(outcome: Outcome, most: int = 300) -> bytes:
    words = f"{outcome.end} {outcome.code} ".encode() if outcome.end is not End.EXITED else b""
    return words + outcome.stderr.strip()[-most:]
