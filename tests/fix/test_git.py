"""git as the fleet runs it: nothing inherited, nothing asked, nothing kept."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from fleet.errors import FixError
from fleet.fix.repository.git import Git, GitPlace, GitToken, remote_url
from tests.fix.git_http import serve_git
from tests.fix.repositories import git, make_remote

pytestmark = pytest.mark.anyio
TOKEN = "github_pat_" + "Zq7" * 12


def script(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


async def test_nothing_of_this_machine_reaches_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / ".gitconfig").write_text("[user]\n\tname = Somebody\n[alias]\n\tbad = !touch seen\n")
    for name, value in (("HOME", str(tmp_path / "home")), ("GIT_DIR", "/nowhere"), ("GIT_TRACE", "1")):
        monkeypatch.setenv(name, value)
    said = script(tmp_path / "git", "env")
    lines = (await Git(said).run("version")).decode().splitlines()
    names = {row.partition("=")[0] for row in lines}
    assert "HOME=/nonexistent" in lines
    assert not names & {"GIT_TRACE", "GIT_DIR", "USER", "LOGNAME", "SSH_AUTH_SOCK", "HTTPS_PROXY"}
    settings = (await Git().run("config", "--list", "--show-scope")).decode().splitlines()
    assert {row.partition("\t")[0] for row in settings} == {"command"}


@pytest.mark.parametrize(
    "url",
    [
        "ext::sh -c 'touch seen'",
        "ssh://host/x",
        "git@host:x/y",
        "git://127.0.0.1/x",
        "http://10.0.0.1/x.git",
        "http://example.org/x.git",
        "https://user:secret-word@example.org/x.git",
        "relative/path",
        "--upload-pack=touch seen",
        "file::/x",
        "https://example.org/\nx",
    ],
)
async def test_a_remote_that_is_not_allowed_is_refused_before_git_is_asked(tmp_path: Path, url: str) -> None:
    with pytest.raises(FixError) as refused:
        remote_url(url)
    assert "secret-word" not in str(refused.value)


async def test_git_itself_refuses_the_other_protocols(tmp_path: Path) -> None:
    """Also where a configuration names one behind an allowed URL."""
    remote = make_remote(tmp_path)
    mirror = GitPlace(repository=remote.bare)
    git(remote.bare, "config", "url.ext::touch seen .insteadOf", "file:///rewritten")
    with pytest.raises(FixError, match="transport 'ext' not allowed"):
        await Git().run("ls-remote", "file:///rewritten", place=mirror)
    git(remote.bare, "config", "url.http://127.0.0.1:9/.insteadOf", "file:///plain/")
    with pytest.raises(FixError, match="transport 'http' not allowed"):
        await Git().run("ls-remote", "file:///plain/x", place=mirror)


async def test_no_hook_helper_filter_or_prompt_of_a_repository_runs(tmp_path: Path) -> None:
    remote = make_remote(tmp_path, {".gitattributes": "* filter=evil diff=evil\n", "a.txt": "one\n"})
    seen = tmp_path / "seen"
    act = script(tmp_path / "act", f"touch {seen}; cat")
    hooks = remote.clone / ".git" / "hooks"
    for name in ("pre-commit", "post-checkout", "reference-transaction", "post-index-change"):
        script(hooks / name, f"touch {seen}")
    for key in ("core.fsmonitor", "core.pager", "core.editor", "credential.helper", "gpg.program"):
        git(remote.clone, "config", key, act)
    place = GitPlace(repository=remote.clone / ".git", tree=remote.clone, index=tmp_path / "index")
    runner = Git()
    await runner.run("read-tree", "HEAD", place=place)
    await runner.run("update-index", "--refresh", place=place)
    await runner.run("checkout-index", "--all", "--force", place=place, cwd=remote.clone)
    await runner.run("update-ref", "refs/heads/other", "HEAD", place=place)
    await runner.run("log", "-1", place=place)
    assert not seen.exists()


async def test_filters_that_only_a_work_tree_names_do_not_exist(tmp_path: Path) -> None:
    remote = make_remote(tmp_path, {".gitattributes": "*.txt filter=evil\n", "a.txt": "one\n"})
    (tmp_path / "attributes").write_text("*.txt eol=crlf\n")
    git(remote.bare, "config", "core.attributesFile", str(tmp_path / "attributes"))
    git(remote.bare, "config", "core.autocrlf", "true")
    place = GitPlace(repository=remote.bare, tree=tmp_path / "tree", index=tmp_path / "index")
    (tmp_path / "tree").mkdir()
    await Git().run("read-tree", "main", place=place)
    await Git().run("checkout-index", "--all", place=place, cwd=tmp_path / "tree")
    assert (tmp_path / "tree" / "a.txt").read_bytes() == b"one\n"
    found = await Git().run("config", "--get-regexp", r"^(filter|diff\.evil)", place=place, fine=(1,))
    assert found == b""


async def test_a_redirect_is_not_followed(tmp_path: Path) -> None:
    make_remote(tmp_path)
    with serve_git(tmp_path) as there, serve_git(tmp_path) as here:
        here.redirect = there.url
        url = f"{here.url}/remote.git"
        with pytest.raises(FixError) as failed:
            await Git().run("ls-remote", url, token=GitToken(here.url, TOKEN))
        assert failed.value.remedy.startswith("the repository has moved")
        assert there.requests == []


async def test_a_token_is_sent_to_its_remote_only_and_stands_nowhere(tmp_path: Path) -> None:
    remote = make_remote(tmp_path)
    with serve_git(tmp_path, token=TOKEN) as served:
        url = f"{served.url}/remote.git"
        listed = await Git().run("ls-remote", url, token=GitToken(served.url, TOKEN))
        assert remote.head("main") in listed.decode()
        with pytest.raises(FixError) as failed:
            await Git().run("ls-remote", url, token=GitToken("http://127.0.0.1:9", TOKEN))
        assert failed.value.remedy
        assert served.requests[-1][2] is False
    assert TOKEN not in repr(GitToken(url, TOKEN))
    kept = [path for path in tmp_path.rglob("*") if path.is_file() and TOKEN.encode() in path.read_bytes()]
    assert kept == []


async def test_no_helper_of_a_repository_is_asked_for_a_password(tmp_path: Path) -> None:
    remote, seen = make_remote(tmp_path), tmp_path / "seen"
    git(remote.bare, "config", "credential.helper", f"!touch {seen};")
    with serve_git(tmp_path, token=TOKEN) as served, pytest.raises(FixError):
        await Git().run("ls-remote", f"{served.url}/remote.git", place=GitPlace(repository=remote.bare))
    assert not seen.exists()


async def test_a_token_is_masked_in_what_git_says_and_not_in_its_arguments(tmp_path: Path) -> None:
    said = script(
        tmp_path / "git",
        'tr "\\0" " " < /proc/$$/cmdline > '
        + str(tmp_path / "argv")
        + "; env | grep -i authorization >&2; exit 3",
    )
    token = GitToken("https://example.org", TOKEN)
    with pytest.raises(FixError) as failed:
        await Git(said).run("push", token=token)
    header = token.header().rpartition(" ")[2]
    assert header not in str(failed.value)
    assert "redacted" in str(failed.value)
    assert header not in (tmp_path / "argv").read_text()
    assert TOKEN not in (tmp_path / "argv").read_text()


@pytest.mark.parametrize("token", ["", "short", "with\nnewline-and-more", "não-ascii-token"])
def test_a_token_that_cannot_be_sent_is_refused(token: str) -> None:
    with pytest.raises(FixError):
        GitToken("https://example.org", token).header()


@pytest.mark.parametrize(
    ("service", "status", "remedy"),
    [
        ("git-upload-pack", 403, "archived"),
        ("git-upload-pack", 404, "url"),
        ("git-upload-pack", 401, "token"),
    ],
)
async def test_a_refusal_names_what_to_do(tmp_path: Path, service: str, status: int, remedy: str) -> None:
    make_remote(tmp_path)
    with serve_git(tmp_path) as served:
        served.status["git-upload-pack"] = status
        with pytest.raises(FixError) as failed:
            await Git().run("ls-remote", f"{served.url}/remote.git")
    assert remedy in failed.value.remedy


async def test_a_command_that_does_not_end_is_ended_with_what_it_started(tmp_path: Path) -> None:
    said = script(tmp_path / "git", f"sleep 600 & echo $! > {tmp_path / 'child'}; wait")
    with pytest.raises(FixError, match="not done within"):
        await Git(said, deadline_s=1.0).run("fetch")
    child = int((tmp_path / "child").read_text())
    await _until(lambda: not _lives(child))


async def _until(holds: Callable[[], bool]) -> None:
    for _ in range(3000):
        if holds():
            return
        await anyio.sleep(0.02)
    raise AssertionError("not within a minute")


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


ASK = "import anyio, sys; from fleet.fix.repository.git import Git; anyio.run(Git(sys.argv[1]).run, 'push')"


@pytest.mark.parametrize("ends", ["", "trap '' TERM; "], ids=["ends-when-asked", "deaf"])
async def test_git_and_what_it_started_end_with_a_fleet_that_was_killed(tmp_path: Path, ends: str) -> None:
    new, pids = tmp_path / "new", tmp_path / "pids"
    said = script(tmp_path / "git", f"{ends}sleep 600 & echo $! $$ > {new}; mv {new} {pids}; wait")
    async with await anyio.open_process([sys.executable, "-c", ASK, said], stderr=None) as fleet:
        await _until(pids.exists)
        started = [int(word) for word in pids.read_text().split()]
        assert [_lives(pid) for pid in started] == [True, True]
        fleet.kill()
        await _until(lambda: not any(_lives(pid) for pid in started))


async def test_a_git_that_would_outlive_the_fleet_is_not_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = script(tmp_path / "git", f"touch {tmp_path / 'started'}")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FixError, match="setpriv: not found"):
        await Git(said).run("version")
    assert not (tmp_path / "started").exists()


async def test_a_flood_is_ended(tmp_path: Path) -> None:
    said = script(tmp_path / "git", "yes")
    with pytest.raises(FixError, match="more than 100000 bytes"):
        await Git(said).run("log", limit=100_000)


async def test_what_git_says_is_cleaned(tmp_path: Path) -> None:
    said = script(tmp_path / "git", r"printf 'fatal: \033[31mred\033[0m \033]0;title\007end\n' >&2; exit 1")
    with pytest.raises(FixError) as failed:
        await Git(said).run("log")
    assert str(failed.value) == "git log: fatal: red end"


async def test_without_git_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(FixError) as failed:
        await Git(str(tmp_path / "none")).run("version")
    assert failed.value.remedy == "install git, or check PATH"


async def test_standard_input_is_closed(tmp_path: Path) -> None:
    said = script(tmp_path / "git", "readlink /proc/self/fd/0")
    assert (await Git(said).run("version")).strip() == b"/dev/null"
