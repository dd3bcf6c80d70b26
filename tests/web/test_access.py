"""Every look at a page and every form is on record: who, when, from where, how long."""

from __future__ import annotations

import getpass
import json
import os
import socket
from pathlib import Path
from typing import Any

import anyio
import pytest

from fleet.service.http_server import listen
from fleet.web.access import KEPT, login_of
from tests.web.conftest import FIRST, URL, Served

pytestmark = pytest.mark.anyio


def lines(state: Path) -> list[dict[str, Any]]:
    files = sorted(state.glob("access-*.jsonl"))
    assert [one.stat().st_mode & 0o777 for one in files] == [0o600] * len(files)
    return [json.loads(line) for one in files for line in one.read_text().splitlines()]


async def test_each_look_and_each_form_is_one_line(served: Served) -> None:
    cookie, csrf = await served.unlocked()
    await served.ask("/items/nosuchitem", cookie=cookie)
    await served.ask(f"/items/{FIRST}/dismiss", "POST", form={"csrf": csrf}, cookie=cookie, origin=URL)
    await served.ask("/", x_forwarded_user="mallory")
    await served.ask("/", host="qa.example.org", x_forwarded_user="ada")
    await served.ask("/", host="evil.example")
    await served.ask("/static/site.css")
    said = lines(served.state)
    assert [(one["asked"], one["status"]) for one in said] == [
        ("GET /unlock", 200),
        ("POST /unlock", 303),
        ("GET /", 200),
        ("GET /items/nosuchitem", 400),
        (f"POST /items/{FIRST}/dismiss", 400),
        ("GET /", 200),
        ("GET /", 200),
        ("GET /", 421),
    ]
    assert [bool(one["session"]) for one in said] == [False, False, True, True, True, False, False, False]
    assert len({one["session"] for one in said}) == 2
    assert cookie.partition("=")[2] not in str(said)
    here = f"unknown@{socket.gethostname()}"
    assert [one["who"] for one in said] == [here] * 6 + [f"ada through {here}", here]
    assert {one["address"] for one in said} == {"127.0.0.1"}
    assert all(one["at"].endswith("Z") and one["ms"] >= 0 for one in said)


async def test_a_person_of_this_machine_is_known_by_their_login_and_a_follower_by_its_end(
    served: Served,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as door:
        port = door.getsockname()[1]
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(listen, served.app, [door])
            stream = await anyio.connect_tcp("127.0.0.1", port)
            await stream.send(f"GET /changes HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n\r\n".encode())
            assert b"200" in await stream.receive()
            assert lines(served.state) == []
            await stream.aclose()
            with anyio.fail_after(20):
                while not lines(served.state):  # noqa: ASYNC110
                    await anyio.sleep(0.02)
            tasks.cancel_scope.cancel()
    [said] = lines(served.state)
    assert said["asked"] == "GET /changes"


def test_the_owner_of_a_connection_is_found_by_its_ports() -> None:
    with socket.create_server(("127.0.0.1", 0)) as door, socket.create_connection(door.getsockname()) as mine:
        ends = mine.getsockname()[1], door.getsockname()[1]
        assert login_of(*ends) == getpass.getuser()
        assert login_of(*reversed(ends)) in ("", getpass.getuser())
        assert login_of(ends[0], 1) == ""


async def test_months_are_kept_for_longer_than_ninety_days_and_then_go(served: Served) -> None:
    for month in range(1, 13):
        (served.state / f"access-2020-{month:02}.jsonl").write_text("{}\n")
    await served.ask("/")
    kept = sorted(one.name for one in served.state.glob("access-*.jsonl"))
    assert len(kept) == KEPT
    assert kept[:-1] == [f"access-2020-{month:02}.jsonl" for month in range(9, 13)]
    assert 28 * (KEPT - 1) >= 90
    os.chmod(served.state / kept[-1], 0o400)
    (served.state / kept[-1]).unlink()
    (served.state / kept[-1]).symlink_to("/dev/full")
    assert (await served.ask("/")).status_code == 200
