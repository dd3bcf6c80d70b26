"""What stands below a folder of a site, asked in spellings that no link has: file servers in memory."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator
from random import Random
from typing import Any
from urllib.parse import unquote

import pytest

from fleet.drivers.desk import Question
from fleet.drivers.explore.web.attacks import GUESSED, below, beside_first, questions, ways_out
from fleet.drivers.explore.web.points import Point
from fleet.findings.sighting import Sighting
from fleet.oracles import table
from fleet.oracles.model import Exchange, Facts

FACTS = Facts(site="https://moss.example.org")
FILES = {
    "/srv/site/index.html": "moss",
    "/srv/site/more/deep.txt": "deep",
    "/etc/passwd": "root:x:0:0:root:/root:",
    "/etc/group": "root:x:0:\nadm:x:4:moss\n",
    "/etc/host.conf": "# the order of look-ups\nmulti on\n",
}
Answer = dict[str, Any]
Server = Callable[[str], Answer]


def file(path: str) -> Answer:
    text = FILES.get(posixpath.normpath(path).replace("//", "/"))
    return {"status": 404, "text": "not found"} if text is None else {"status": 200, "text": text}


def careful(path: str) -> Answer:
    """Every spelling is read once, and nothing leaves the folder."""
    wanted = posixpath.normpath("/srv/site/" + unquote(path))
    return file(wanted) if wanted.startswith("/srv/site/") else {"status": 403, "text": "forbidden"}


def at_home(path: str) -> Answer:
    """It sends folders on to their slash, on its own host."""
    return careful(path) | ({"status": 301, "location": "/more/"} if unquote(path) == "/more" else {})


def an_example(path: str) -> Answer:
    """It has a page that shows such a file, and takes two slashes for one."""
    plain = re.sub("/{2,}", "/", path)
    return {"status": 200, "text": FILES["/etc/passwd"]} if plain == "/etc/passwd" else careful(path)


def as_written(path: str) -> Answer:
    return file("/srv/site" + path)


def decoded(path: str) -> Answer:
    return {"status": 400, "text": ""} if ".." in path else file("/srv/site" + unquote(path))


def decoded_late(path: str) -> Answer:
    return {"status": 404, "text": ""} if "/../" in path else file("/srv/site" + unquote(path))


def decoded_twice(path: str) -> Answer:
    once = unquote(path)
    return {"status": 400, "text": ""} if ".." in once else file("/srv/site" + unquote(once))


def stripped(path: str) -> Answer:
    return file("/srv/site" + path.replace("../", ""))


def joined(path: str) -> Answer:
    below_root = path.removeprefix("/")
    return file(below_root if below_root.startswith("/") else f"/srv/site/{posixpath.normpath(below_root)}")


def begun_anew(path: str) -> Answer:
    """A path that is joined begins at the root of the machine, below its folder of files."""
    return (
        file(path.removeprefix("/more")) if path.startswith("/more/") and ".." not in path else careful(path)
    )


def sends_on(path: str) -> Answer:
    """What ends in a folder goes on to its slash, by the path as it was sent."""
    folder = posixpath.normpath(re.sub("/{2,}", "/", unquote(path))) in ("/", "/more")
    return {"status": 301, "location": path + "/", "text": ""} if folder else careful(path)


def seen(server: Server, asked: Iterable[Question]) -> list[Sighting]:
    found = []
    for question in asked:
        calls: list[Exchange] = []
        for step in question.steps:
            answer = server(step.args["url"].removeprefix("{site}"))
            calls.append(Exchange(step.tool, step.args, {"content_type": "text/plain", **answer}))
            found += [one.sighting for one in table.judge(calls, FACTS)]
    return found


def tails(folder: str) -> Iterator[Question]:
    return below(Point(folder, "tail", "", "etc/passwd"), Random(1), root=folder == "{site}/")


def titles(server: Server, folder: str = "{site}/") -> set[str]:
    return {re.sub("qa[0-9a-f]+", "QA", one.title) for one in seen(server, tails(folder))}


def beside_it(path: str) -> Answer:
    """It serves names with some extensions, and what stands beside its folder."""
    own = {"/srv/package.json": '{"name": "moss", "scripts": {}}', "/srv/site/package.json": "no"}
    at = posixpath.normpath("/srv/site" + unquote(path))
    return {"status": 200, "text": own[at]} if at in own else {"status": 404, "text": ""}


def its_own(path: str) -> Answer:
    """The settings of its package are among what it serves."""
    at = posixpath.normpath("/" + unquote(path)).replace("//", "/")
    return {"status": 200, "text": '{"scripts": {}}'} if at == "/package.json" else careful(path)


def developing(path: str) -> Answer:
    """A development server: any path of the machine as a module, by its query."""
    at, _, query = path.partition("?")
    raw = at.startswith("/@fs/") and query == "import&raw??"
    told = file(at.removeprefix("/@fs")) if raw else {"status": 403, "text": ""}
    return told | {"text": f"export default {json.dumps(told['text'])}"}


CLIMBED = "GET {site}/{value}: it reads /etc/passwd"
CONF = "GET {site}/{value}: it reads /etc/host.conf"
LED = "GET {site}/{value}: it leads to QA.evil.test"


@pytest.mark.parametrize("server", [careful, at_home, an_example, its_own])
@pytest.mark.parametrize("folder", ["{site}/", "{site}/more/"])
def test_a_careful_server_gives_nothing(server: Server, folder: str) -> None:
    assert titles(server, folder) == set()


@pytest.mark.parametrize("server", [as_written, decoded, decoded_twice, stripped, joined])
def test_each_way_out_of_a_folder_is_found(server: Server) -> None:
    said = titles(server)
    assert CLIMBED in said
    assert said <= {CLIMBED, CONF}


def with_extension(path: str) -> Answer:
    """It serves no name without one."""
    return file("/srv/site" + path) if "." in path.rpartition("/")[2] else {"status": 404, "text": ""}


def test_a_server_of_names_with_an_extension_is_left_as_well() -> None:
    assert titles(with_extension) == {CONF}
    assert titles(beside_it) == {"GET {site}/{value}: it reads the settings of its package"}
    assert titles(beside_it, "{site}/more/") == set()
    assert titles(developing) == {CLIMBED.replace("{value}", "@fs/{value}")}
    assert titles(begun_anew) == set()
    assert titles(begun_anew, "{site}/more/") == {"GET {site}/more/{value}: it reads /etc/passwd"}
    assert not titles(lambda path: an_example(path.removeprefix("/more")), "{site}/more/")


def test_a_folder_in_which_a_missing_file_has_no_answer_is_left_beside_its_name() -> None:
    (first, *_), folder = tails("{site}/more/"), "{site}/more/"
    alone = list(beside_first(first))
    assert [[step.args["url"] for step in one.steps] for one in alone] == [
        ["{site}/more", folder + way] for way in ways_out("etc/passwd")
    ]
    assert {one.title for one in seen(as_written, alone)} == {CLIMBED.replace("{value}", "more/{value}")}
    assert seen(careful, alone) == []
    guessed = list(below(Point(folder, "tail", GUESSED, "etc/passwd"), Random(1), root=False))
    assert [len(one.steps) for one in guessed] == [4, 3]


def test_one_server_is_one_defect_whichever_folder_and_input_shows_it() -> None:
    file_name = Point("{site}/more/deep.txt", "path", "2", "deep.txt")
    shown = [
        *seen(decoded_late, tails("{site}/")),
        *seen(decoded_late, tails("{site}/more/")),
        *seen(decoded_late, questions(file_name, Random(1))),
    ]
    assert {one.signature for one in shown} == {"climb GET {site} tail"}
    assert {one.title.partition(":")[0] for one in shown} == {"GET {site}/{value}", "GET {site}/more/{value}"}


def test_a_path_that_names_a_foreign_host_is_where_it_leads() -> None:
    assert titles(sends_on) == {LED}


def test_back_to_the_page_that_one_came_from_is_no_open_redirect() -> None:
    calls = [
        Exchange(
            "qa_fetch",
            {"url": "{site}/lang/de", "headers": {"referer": sent}},
            {"status": 302, "location": sent},
        )
        for sent in ("en", "https://qa1.evil.test/")
    ]
    assert [one.oracle for one in table.judge(calls, Facts())] == []


def test_the_body_of_a_redirect_runs_nowhere() -> None:
    for status, found in ((200, ["script-injection"]), (302, [])):
        calls = [
            Exchange(
                "qa_fetch",
                {"url": f"{{site}}/x?q={sent}", "canary": "qa12345"},
                {"status": status, "canary_executable": sent != "qa12345"},
            )
            for sent in ("qa12345", "%3Cscript%3Eqa12345")
        ]
        assert [one.oracle for one in table.judge(calls, Facts())] == found
