"""What a jail can take of a disk: its own, of a fixed size, whatever it does and with either backend."""

from __future__ import annotations

import io
import json
import os
from base64 import b64encode
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fleet.errors import JailError, PatchRefused
from fleet.fix.jails.tree_changes import apply_changes
from fleet.fix.jails.tree_jail import LIMITS, TreeJails
from fleet.fix.ports import TreeCommand
from fleet.jail.bwrap.jail import BwrapJail
from fleet.jail.docker.engine_choice import EngineChoice
from fleet.jail.docker.jail import DockerJail
from fleet.jail.model import Image, Jail
from tests.dockerd import DockerEngine, dockerd
from tests.fix.bench import PLATFORM

__all__ = ["dockerd"]

pytestmark = [pytest.mark.anyio, pytest.mark.jail]
HOSTILE = Path(__file__).parent / "hostile"
SMALL = replace(LIMITS, box=16 << 20, inodes=20_000)


@pytest.fixture(params=["bubblewrap", "docker"])
def jails(request: pytest.FixtureRequest, tmp_path: Path) -> TreeJails:
    spool = tmp_path / "spool"
    spool.mkdir()
    if request.param == "bubblewrap":
        return TreeJails(lambda image: BwrapJail(image, pool=0, spool=spool), PLATFORM, SMALL)
    engine: DockerEngine = request.getfixturevalue("dockerd")

    def contained(image: Image) -> Jail:
        return DockerJail(image, pool=0, spool=spool, engine=EngineChoice(socket=engine.socket))

    return TreeJails(contained, PLATFORM, SMALL)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "tree"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "kept").write_text("as it was\n")
    (folder / "gone").write_text("x")
    return folder


def size(folder: Path) -> int:
    return sum(path.lstat().st_blocks for path in folder.rglob("*")) * 512


ENDS = {"unlinked": "full", "fallocate": "15 MiB", "keep-size": "15 MiB", "mapped": "full", "names": "lost"}
"""What has filled it is refused, what was refused room goes on, and too many names end the jail."""


@pytest.mark.parametrize("kind", ENDS)
async def test_a_disk_is_not_filled_beyond_its_size(jails: TreeJails, tree: Path, kind: str) -> None:
    """It wants 256 MiB, or as many names, of a disk of 16 MiB."""
    before = size(tree)
    script = ("{python}", "-B", "/opt/hostile/holds_the_disk.py", kind)
    try:
        end = await jails.run(tree, TreeCommand(script, 30, keep=True, mounts={"hostile": HOSTILE}))
        taken = end.stdout.decode().rpartition("taken: ")[2].strip()
        seen = f"{taken} MiB" if end.how == "exited" else end.how
    except PatchRefused as refused:
        seen = {"disk": "full"}[refused.rule]
    assert seen == ENDS[kind]
    assert size(tree) <= before + (SMALL.box if kind == "fallocate" else 0) + (64 << 10)
    assert sorted(path.name for path in tree.parent.iterdir()) == ["spool", "tree"]


CHANGES = """
import os
os.unlink("gone"); os.makedirs("new/deep"); open("new/deep/file", "w").write("made")
os.symlink("/etc/passwd", "link"); os.chmod("src/kept", 0o755)
os.makedirs("shut"); open("shut/in", "w").write("seen"); os.chmod("shut/in", 0); os.chmod("shut", 0)
"""


async def test_changes_come_out_as_they_were_made(jails: TreeJails, tree: Path) -> None:
    end = await jails.run(tree, TreeCommand(("{python}", "-c", CHANGES), 30, keep=True))
    assert (end.passed, end.stderr) == (True, b"")
    found = {str(path.relative_to(tree)) for path in tree.rglob("*")}
    assert found == {"src", "src/kept", "new", "new/deep", "new/deep/file", "link", "shut", "shut/in"}
    assert (tree / "new/deep/file").read_text() == "made"
    assert (tree / "shut/in").read_text() == "seen"
    assert os.readlink(tree / "link") == "/etc/passwd"
    assert (tree / "src/kept").stat().st_mode & 0o777 == 0o755
    last = (tree / "new/deep/file").stat().st_mtime_ns
    again = await jails.run(tree, TreeCommand(("cp", "-a", "new/deep/file", "src/copy"), 30, keep=True))
    assert again.passed
    assert (tree / "src/copy").stat().st_mtime_ns == last, "a build goes by times"


def record(path: bytes, kind: str = "file", data: bytes = b"", **more: Any) -> bytes:
    said = {"path": b64encode(path).decode(), "kind": kind, "size": len(data)} | more
    return json.dumps(said).encode() + b"\n" + data


END = b'{"end": true, "full": false}\n'
TEXT = b64encode(b"/tmp").decode()
HOSTILE_STREAMS = {
    "leaves the tree": record(b"../out", data=b"x") + END,
    "absolute": record(b"/tmp/out", data=b"x") + END,
    "NUL": record(b"a\0b", data=b"x") + END,
    "through a link": record(b"l", "link", target=TEXT) + record(b"l/out", data=b"x") + END,
    "a kind of its own": record(b"a", "device") + END,
    "a negative size": record(b"a", size=-1) + END,
    "no end": record(b"a", data=b"x"),
    "less than it says": record(b"a", size=9) + END,
    "more after its end": record(b"a", data=b"x") + END + b"more",
    "a time beyond time": record(b"a", data=b"x", mtime=1 << 70) + END,
    "no JSON": b"\xff\n" + END,
}


@pytest.mark.parametrize("what", HOSTILE_STREAMS)
def test_a_stream_that_is_not_one_of_ours_changes_nothing_else(tree: Path, what: str) -> None:
    with pytest.raises(JailError):
        apply_changes(tree, io.BytesIO(HOSTILE_STREAMS[what]), SMALL)
    assert not (tree.parent / "out").exists()
    assert not Path("/tmp/out").exists()


@pytest.mark.parametrize(
    "stream",
    [
        record(b"a", data=bytes(SMALL.box + 1)) + END,
        b"".join(record(b"%d" % number, "folder") for number in range(SMALL.inodes + 1)) + END,
        b'{"end": true, "full": true}\n',
    ],
    ids=["bytes", "names", "it says so"],
)
def test_a_stream_of_too_much_changes_nothing(tree: Path, stream: bytes) -> None:
    with pytest.raises(PatchRefused, match="filled its disk"):
        apply_changes(tree, io.BytesIO(stream), SMALL)
    assert sorted(path.name for path in tree.iterdir()) == ["gone", "src"]
