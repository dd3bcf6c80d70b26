"""A look at a build outside of the layout that fixers see: what relies on the jail shows there."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from fleet.config.propose import ServiceSection
from fleet.findings.repro import ReproCall
from fleet.fix.jails.tree_jail import TreeJails
from fleet.fix.model import FixTask
from fleet.jail.bwrap.jail import BwrapJail
from fleet.jail.docker.engine_choice import EngineChoice
from fleet.jail.docker.jail import DockerJail
from fleet.jail.model import Image, Jail
from tests.dockerd import DockerEngine, dockerd
from tests.fix import sample
from tests.fix.gate_world import task_of

__all__ = ["dockerd"]

pytestmark = [pytest.mark.jail, pytest.mark.anyio]
LOOKS = {
    "the working folder": "os.path.isdir('/box')",
    "its name": "os.getcwd() == '/box'",
    "our code": "os.path.exists('/opt/sandbox')",
    "the tree": "os.path.exists('/opt/qa_tree')",
    "the machine's name": "os.uname().nodename == 'jail'",
    "the home": "os.path.expanduser('~') == '/box'",
    "the user": "'qa:x' in open('/etc/passwd').read()",
    "a variable": "'QA_PLACES' in os.environ",
}
SERVER = """
import http.server, os, sys

class Pages(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = repr([%s]).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Pages).serve_forever()
"""


@pytest.fixture(params=["bubblewrap", "docker"])
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def jails(backend: str, request: pytest.FixtureRequest, tmp_path: Path) -> TreeJails:
    spool = tmp_path / "spool"
    spool.mkdir()
    if backend == "bubblewrap":
        return TreeJails(lambda image: BwrapJail(image, pool=0, spool=spool), sample.PROFILE)
    engine: DockerEngine = request.getfixturevalue("dockerd")

    def contained(image: Image) -> Jail:
        return DockerJail(image, pool=0, spool=spool, engine=EngineChoice(socket=engine.socket))

    return TreeJails(contained, sample.PROFILE)


def served(tmp_path: Path) -> FixTask:
    one = sample.Sample(tmp_path, (), {})
    service = ServiceSection(command=("{python}", "server.py", "{port}"))
    section = sample.repository(one).model_copy(update={"service": service})
    return replace(task_of(one, sample.DEFECTS[2]), repository=section)


LEFT: dict[str, list[str]] = {"bubblewrap": [], "docker": ["the working folder", "the user"]}
"""The image of a container has an empty /box and an /etc of its own; patches that name them are refused."""


async def test_nothing_that_a_fixer_sees_is_there_elsewhere(
    jails: TreeJails, backend: str, tmp_path: Path
) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "server.py").write_text(SERVER % ", ".join(LOOKS.values()))
    call = ReproCall("qa_fetch", {"url": "{site}/"})
    (here,) = await jails.ask(tree, served(tmp_path), [call])
    (there,) = await jails.ask(tree, served(tmp_path), [call], elsewhere=True)
    assert here["text"] == str([True] * (len(LOOKS) - 1) + [False])
    assert [
        name for name, seen in zip(LOOKS, json.loads(there["text"].lower()), strict=True) if seen
    ] == LEFT[backend]
