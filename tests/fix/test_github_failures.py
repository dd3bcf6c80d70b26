"""What GitHub may answer instead: each failure named, no pause cut short, no token shown."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response

from fleet.errors import ConfigError, FixError, FleetError, TryAgain
from fleet.fix.model import FixTask
from fleet.fix.publish.github import GitHubPublisher
from fleet.fix.publish.github_api import LIMIT, GitHubApi
from fleet.fix.publish.token import TokenFile
from tests.fix.branches import MemoryBranches
from tests.fix.github_server import TOKEN, GitHubServer
from tests.fix.published_task import BODY, MESSAGE, TEXT, github, made, patch, published, task
from tests.fix.tasks import repository
from tests.sandbox.doubles import Server, http_answer

pytestmark = pytest.mark.anyio

LIMITED = {"message": "You have exceeded a secondary rate limit"}
FAULTS: list[tuple[str, Response, type[FleetError], str]] = [
    (
        "401",
        JSONResponse({"message": "Bad credentials"}, 401),
        FixError,
        r"token in .*github\.widget is not valid",
    ),
    (
        "403",
        JSONResponse({"message": "Resource not accessible"}, 403),
        FixError,
        "may not do this in acme/widget",
    ),
    (
        "archived",
        JSONResponse({"message": "Repository was archived so is read-only."}, 403),
        FixError,
        "archived",
    ),
    ("404", JSONResponse({"message": "Not Found"}, 404), FixError, "404 .* Not Found; the token in"),
    ("limit", JSONResponse(LIMITED, 403, {"retry-after": "30"}), TryAgain, "a pause of 30 s"),
    ("limit, none", JSONResponse(LIMITED, 403), TryAgain, "a pause of 60 s"),
    ("limit, huge", JSONResponse(LIMITED, 429, {"retry-after": "9" * 18}), TryAgain, "a pause of 3600 s"),
    (
        "limit, garbage",
        JSONResponse(LIMITED, 429, {"retry-after": "-1e9; soon"}),
        TryAgain,
        "a pause of 60 s",
    ),
    ("limit, spent", JSONResponse({}, 403, {"x-ratelimit-remaining": "0"}), TryAgain, "a pause of 60 s"),
    (
        "422",
        JSONResponse({"message": "No", "errors": [{"code": "x", "field": "head"}]}, 422),
        FixError,
        "No; head x",
    ),
    ("422, odd", JSONResponse({"message": 7, "errors": 5}, 422), FixError, "GitHub answered 422"),
    (
        "500",
        PlainTextResponse("<html><b>500</b></html>", 500),
        TryAgain,
        r"500 \(list the pull requests of a branch\)$",
    ),
    ("html", PlainTextResponse("<html>login</html>"), FixError, "is not JSON"),
    ("cut", Response(b'[{"number": 1'), FixError, "is not JSON"),
    ("huge", Response(b" " * (LIMIT + 1)), FixError, f"more than {LIMIT} bytes"),
    ("members", JSONResponse([0] * 100_001), FixError, "more than 100000 values"),
    ("other", JSONResponse([{"number": "1"}]), FixError, r"does not fit .*: 0\.number: int_type"),
    ("object", JSONResponse({}), FixError, "does not fit"),
    ("accepted", JSONResponse([], 202), FixError, "GitHub answered 202"),
]


@pytest.mark.parametrize(
    ("answer", "kind", "said"), [one[1:] for one in FAULTS], ids=[one[0] for one in FAULTS]
)
async def test_a_failure_is_named(
    server: GitHubServer,
    publisher: GitHubPublisher,
    of: FixTask,
    answer: Response,
    kind: type[FleetError],
    said: str,
) -> None:
    server.faults["pulls/list"] = [answer]
    with pytest.raises(kind, match=said) as failed:
        await publisher.find(of)
    assert isinstance(failed.value, TryAgain) == (kind is TryAgain)
    assert server.asked.total() == 1


async def test_a_redirect_is_not_followed(
    server: GitHubServer, publisher: GitHubPublisher, of: FixTask
) -> None:
    async with Server() as other:
        server.faults["pulls/list"] = [RedirectResponse(f"{other.url}/repositories/1/pulls", 301)]
        with pytest.raises(FixError, match="acme/widget has moved"):
            await publisher.find(of)
        assert (other.dials, server.asked.total()) == (0, 1)


async def test_a_pause_that_github_asks_for_is_kept(
    server: GitHubServer, publisher: GitHubPublisher, of: FixTask
) -> None:
    await publisher.push(of, patch(), MESSAGE)
    server.faults["pulls/create"] = [JSONResponse(LIMITED, 403)]
    with pytest.raises(TryAgain, match="pause"):
        await publisher.open(of, TEXT, BODY)
    assert server.asked == {"pulls/list": 1, "pulls/create": 1}


async def test_a_drip_ends_at_the_deadline(token: Path) -> None:
    async with Server(lambda _: http_answer(200, b"[]")[:-1]) as slow:
        section = github(slow.url)
        api = GitHubApi(section, TokenFile(token), deadline_s=0.2)
        of = task(on=repository(github=section))
        with pytest.raises(TryAgain, match="did not answer"):
            await GitHubPublisher(section, api, MemoryBranches({})).find(of)


async def test_nobody_listens(token: Path) -> None:
    section = github("http://127.0.0.1:9")
    with pytest.raises(TryAgain, match=r"did not answer .*ConnectError"):
        await made(task(on=repository(github=section)), token, MemoryBranches({})).find(task())


async def test_a_token_that_expires_midway_is_named_and_a_new_one_counts_at_once(
    server: GitHubServer, publisher: GitHubPublisher, of: FixTask, token: Path
) -> None:
    await publisher.push(of, patch(), MESSAGE)
    server.token = "github_pat_renewed0000000000000000"
    with pytest.raises(FixError, match=f"token in {re.escape(str(token))} is not valid") as failed:
        await publisher.open(of, TEXT, BODY)
    assert "contents and pull requests read-write" in failed.value.remedy
    token.write_text(server.token)
    assert (await publisher.open(of, TEXT, BODY)).state == "open"


async def test_a_token_that_others_may_read_is_not_used(
    server: GitHubServer, publisher: GitHubPublisher, of: FixTask, token: Path
) -> None:
    token.chmod(0o640)
    with pytest.raises(ConfigError, match=r"github\.widget"):
        await publisher.find(of)
    token.chmod(0o600)
    token.write_text("two words of text")
    with pytest.raises(FixError, match="not a token"):
        await publisher.find(of)
    assert server.asked.total() == 0


ECHO = f"your token {TOKEN} and {TOKEN}"


async def test_the_token_is_in_no_error(
    server: GitHubServer, publisher: GitHubPublisher, of: FixTask
) -> None:
    """Whatever a server repeats of what it was sent, cut at any place."""
    for pad in ("", "x" * 270, "\u200b" * 4_080, "\u200b" * 4_065):  # the last leaves 20 characters of it
        said = {"message": pad + ECHO, "errors": [{"message": ECHO, "code": ECHO}, ECHO]}
        bodies = [
            json.dumps(said).encode(),
            b'{"message": "%s"}' % ECHO.replace("github", "\\u0067ithub").encode(),
            ECHO.encode(),
        ]
        server.faults["pulls/list"] = [
            Response(body, status) for body in bodies for status in (200, 401, 403, 422, 500)
        ]
        for _ in range(15):
            with pytest.raises(FleetError) as failed:
                await publisher.find(of)
            shown = f"{failed.value} {failed.value.remedy} {failed.value!r}"
            assert (shown.count("canary"), shown.count("github_pat")) == (0, 0)


async def test_the_token_is_in_no_argv_environment_or_representation(
    server: GitHubServer, publisher: GitHubPublisher, of: FixTask, token: Path
) -> None:
    await published(publisher, of)
    assert TOKEN not in repr(vars(publisher)) + repr(TokenFile(token)) + repr(vars(publisher._api))
    own = Path("/proc") / str(os.getpid())
    assert TOKEN.encode() not in (own / "cmdline").read_bytes() + (own / "environ").read_bytes()
    assert TOKEN not in json.dumps([server.pulls, server.comments, server.bodies])
