"""Files that change, on a real disk: settled changes fire, once, and also those nobody was there to see."""

from __future__ import annotations

import hashlib
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.errors import TryAgain, UsageError
from fleet.triggers.files import GONE, KEY, NO_FILE, Change, FileWatch, Settling, Stat, watch_personas
from tests.doubles.triggers import FiringRecorder, MemoryFacts
from tests.triggers.conftest import Refusing, running, until

STATS: st.SearchStrategy[Stat] = st.tuples(st.integers(1, 2), st.integers(0, 1), st.just(1), st.just(1))
LOOKS = st.lists(st.dictionaries(st.sampled_from("abc"), STATS), max_size=12)


@given(LOOKS)
def test_what_is_named_adds_up_to_what_is_there(looks: list[dict[str, Stat]]) -> None:
    settling, model = Settling(), dict[str, Stat]()
    for before, now in zip([{}, *looks], looks, strict=False):
        for name in settling.look(now):
            assert before.get(name) == now.get(name) != model.get(name)
            model.pop(name, None)
            if name in now:
                model[name] = now[name]
    last = looks[-1] if looks else {}
    for name in settling.look(last):
        model.pop(name, None)
        if name in last:
            model[name] = last[name]
    assert model == last
    assert settling.look(last) == []


class Folder:
    """A folder with a watch on two files in it; `looks` looks as often as a change needs."""

    def __init__(self, path: Path, sink: FiringRecorder | None = None) -> None:
        self.path, self.facts, self.sink = path, MemoryFacts(), sink or FiringRecorder()
        self.watched: Mapping[str, tuple[str, ...]] = {"a.txt": ("qa-a", "qa-b"), "b.txt": ("qa-a",)}
        self.watch = self.again()

    def again(self) -> FileWatch:
        self.watch = FileWatch(self.path, self.facts, self.sink, lambda: self.watched, every_s=0.01)
        return self.watch

    def write(self, text: str, name: str = "a.txt") -> None:
        """As a careful program does: another file, renamed."""
        draft = self.path / "draft"
        draft.write_text(text)
        draft.rename(self.path / name)

    async def fires(self, looks: int = 3) -> list[str]:
        before = len(self.sink.fired)
        for _ in range(looks):
            await self.watch.turn()
        return [f"{firing.persona} {firing.key[-1]}" for firing in self.sink.fired[before:]]


@pytest.fixture
async def folder(tmp_path: Path, anyio_backend: str) -> Folder:
    found = Folder(tmp_path)
    found.write("one")
    assert await found.fires() == []
    return found


@pytest.mark.anyio
async def test_each_change_of_content_fires_once(folder: Folder) -> None:
    folder.write("two")
    assert await folder.fires() == ["qa-a 1", "qa-b 1"]
    folder.write("two")
    os.utime(folder.path / "a.txt")
    assert await folder.fires() == []
    folder.write("one")
    assert await folder.fires() == ["qa-a 2", "qa-b 2"]
    (folder.path / "a.txt").unlink()
    assert await folder.fires() == ["qa-a 3", "qa-b 3"]
    folder.write("one", "b.txt")
    assert await folder.fires() == ["qa-a 1"]
    assert (folder.sink.fired[0].why, folder.sink.repeats) == ("file a.txt", [])


@pytest.mark.anyio
async def test_a_file_that_still_changes_is_left_alone(folder: Folder) -> None:
    for number in range(5):
        (folder.path / "a.txt").write_text("x" * number)
        assert await folder.fires(looks=1) == []
    assert len(await folder.fires(looks=2)) == 2


@pytest.mark.anyio
async def test_content_that_keeps_size_and_mtime_is_noticed(folder: Folder) -> None:
    path = folder.path / "a.txt"
    before = path.stat()
    path.write_text("two")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert len(await folder.fires()) == 2


@pytest.mark.anyio
async def test_a_change_while_nothing_ran_fires_at_the_next_start(folder: Folder) -> None:
    folder.again()
    assert await folder.fires() == []
    folder.write("two")
    folder.again()
    assert await folder.fires() == ["qa-a 1", "qa-b 1"]


class Forgetful(MemoryFacts):
    """Loses its next write, as a crash between the hand-over and the memory of it does."""

    lose = False

    async def put(self, key: str, value: str) -> None:
        if self.lose:
            raise TryAgain("the disk is full")
        await super().put(key, value)


@pytest.mark.anyio
async def test_after_a_crash_the_key_is_the_same(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.facts = facts = Forgetful()
    folder.again()
    folder.write("one")
    await folder.fires()
    folder.write("two")
    facts.lose = True
    assert len(await folder.fires()) == 2
    assert [skip.reason for skip in folder.sink.skips] == ["could not look: TryAgain: the disk is full"]
    facts.lose = False
    folder.again()
    assert await folder.fires() == []
    assert [firing.key for firing in folder.sink.repeats] == folder.sink.keys


@pytest.mark.anyio
async def test_a_sink_that_takes_nothing_gets_it_later(tmp_path: Path) -> None:
    sink = Refusing("qa-a", "qa-b")
    folder = Folder(tmp_path, sink)
    folder.write("one")
    await folder.fires()
    folder.write("two")
    await folder.fires()
    assert {skip.persona for skip in sink.skips} == {"qa-a", "qa-b"}
    sink.refused.clear()
    assert await folder.fires() == ["qa-a 1", "qa-b 1"]


@pytest.mark.anyio
async def test_odd_things_in_place_of_a_file_hang_nothing(folder: Folder) -> None:
    path = folder.path / "a.txt"
    for make in (os.mkfifo, os.mkdir):
        path.unlink()
        make(path)
        with anyio.fail_after(20):
            await folder.fires()
        if path.is_dir():
            path.rmdir()
            folder.write("one")
    folder.watched = {"\0": ("qa-a",), "a.txt": ()}
    assert await folder.fires() == []
    assert folder.sink.skips == []


@pytest.mark.anyio
async def test_a_damaged_memory_starts_over_visibly(folder: Folder) -> None:
    for text in ("{", "[]", '{"a.txt": 7}'):
        folder.facts[KEY] = text
        folder.again()
        assert await folder.fires() == []
    assert all(skip.reason.startswith("starting over: ") for skip in folder.sink.skips)
    assert len(folder.sink.skips) == 3


@pytest.mark.anyio
async def test_it_runs_once_and_until_cancelled(folder: Folder) -> None:
    async with running(folder.watch.run):
        with pytest.raises(UsageError, match="already being watched"):
            await folder.watch.run()
        folder.write("two")
        await until(lambda: len(folder.sink.fired) == 2)


class Told:
    """What a watch on a persona folder told so far."""

    def __init__(self) -> None:
        self.changes: list[tuple[str, str]] = []

    async def next(self, count: int = 1) -> list[tuple[str, str]]:
        await until(lambda: len(self.changes) >= count)
        await anyio.sleep(0.05)
        found, self.changes = self.changes, []
        return sorted(found)

    def add(self, change: Change) -> None:
        self.changes.append((change.kind, change.path.name))
        assert (change.digest == GONE) == (change.kind == "removed")


@asynccontextmanager
async def told(folder: Path, known: Mapping[Path, str] | None = None) -> AsyncIterator[Told]:
    found = Told()

    async def listen() -> None:
        async with aclosing(watch_personas(folder, known=known, every_s=0.01)) as changes:
            async for change in changes:
                found.add(change)

    async with running(listen):
        yield found


@pytest.mark.anyio
async def test_personas_that_come_change_and_go_are_told(tmp_path: Path) -> None:
    async with told(tmp_path) as heard:
        (tmp_path / "qa-a.md").write_text("one")
        (tmp_path / "README.md").write_text("about")
        (tmp_path / ".qa-b.md.swp").write_text("draft")
        (tmp_path / ".hidden.md").write_text("draft")
        assert await heard.next() == [("added", "qa-a.md")]
        (tmp_path / "qa-a.md").write_text("two")
        assert await heard.next() == [("changed", "qa-a.md")]
        (tmp_path / "qa-a.md").rename(tmp_path / "qa-b.md")
        assert await heard.next(2) == [("added", "qa-b.md"), ("removed", "qa-a.md")]
        os.utime(tmp_path / "qa-b.md")
        (tmp_path / "qa-c.md").symlink_to("qa-b.md")
        assert await heard.next() == [("added", "qa-c.md")]


@pytest.mark.anyio
async def test_only_what_differs_from_what_was_loaded_is_told(tmp_path: Path) -> None:
    files = {name: tmp_path / f"qa-{name}.md" for name in ("same", "changed", "new", "gone")}
    for name in ("same", "changed", "new"):
        files[name].write_text(name)
    known = {files[name]: hashlib.sha256(name.encode()).hexdigest() for name in ("same", "gone")}
    known[files["changed"]] = "0" * 64
    async with told(tmp_path, known) as heard:
        assert await heard.next(3) == [
            ("added", "qa-new.md"),
            ("changed", "qa-changed.md"),
            ("removed", "qa-gone.md"),
        ]


@pytest.mark.anyio
async def test_a_folder_that_is_away_removes_nobody(tmp_path: Path) -> None:
    home, away = tmp_path / "personas", tmp_path / "away"
    home.mkdir()
    (home / "qa-a.md").write_text("one")
    async with told(home) as heard:
        assert await heard.next() == [("added", "qa-a.md")]
        home.rename(away)
        await anyio.sleep(0.1)
        away.rename(home)
        (home / "qa-b.md").write_text("two")
        assert await heard.next() == [("added", "qa-b.md")]


@pytest.mark.anyio
async def test_what_is_no_file_has_a_digest_of_its_own(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "qa-a.md")
    async with aclosing(watch_personas(tmp_path, every_s=0.01)) as changes:
        with anyio.fail_after(20):
            assert await anext(changes) == Change("added", tmp_path / "qa-a.md", NO_FILE)
