"""Words of an error that a page or a gate only quotes are not a finding; those that a question causes are."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from fleet.drivers.desk import Question
from fleet.findings.reader import read
from fleet.findings.records import ItemRecord, fixed_record, read_record, write_record
from fleet.findings.recurrence import key_of, read_recurrence
from fleet.personas.model import Step
from fleet.runs.proof.grades import graded
from fleet.runs.proof.retest import retest
from tests.runs.table import RUN, look, persona, seated, well
from tests.runs.test_desk import ANY

pytestmark = pytest.mark.anyio
SQL = "You have an error in your SQL syntax; check the manual near ''' at line 1"
TRACE = "Traceback (most recent call last):\n  File \"/srv/app/main.py\", line 10, in show\nKeyError: 'x'"
JINJA = "jinja2.exceptions.UndefinedError: 'x' is undefined"
PATH = "cannot read /home/deploy/app/config.json"
STACK = "    at parse (/srv/app/node_modules/body-parser/lib/types/json.js:89:19)"
WORDS = (SQL, TRACE, JINJA, PATH, STACK)
Site = Callable[[str], tuple[int, str]]
HTML = "text/html"


def page(words: str) -> str:
    return f"<html><body><h1>Errors</h1><pre>{words}</pre></body></html>"


def static(words: str) -> Site:
    """A page that quotes the words, whatever it is asked; others do not exist."""
    return lambda url: (200, page(words)) if url.partition("?")[0] == "/docs" else (404, "no")


def shell(words: str) -> Site:
    """A site that shows one page for every path, with the words in it."""
    return lambda url: (200, page(words))


def gate(words: str, status: int = 403) -> Site:
    """A firewall before a site, which quotes the pattern of its rule for every attack."""

    def answer(url: str) -> tuple[int, str]:
        bad = any(
            mark in unquote(unquote(url)) for mark in ("<", "'", '"', "..", "{{", "%00", "\0", "//", "evil")
        )
        return (status, page(f"Blocked. Rule: {words}")) if bad else (200, page("welcome"))

    return answer


def program(words: str, status: int = 400) -> Site:
    """A site that breaks at a quote in its parameter, and nowhere else."""

    def answer(url: str) -> tuple[int, str]:
        place, _, query = url.partition("?")
        broken = place == "/docs" and "q=" in query and "%27" in query
        return (status, page(words)) if broken else (200, page("welcome"))

    return answer


def of_path(words: str) -> Site:
    """A site that says of every file that is not there how it looked for it."""
    return lambda url: (200, page("welcome")) if url == "/" else (404, page(words))


def ask(urls: list[str]) -> list[Question]:
    return [Question((Step(tool="qa_fetch", args={"url": "{proxy}" + url}),)) for url in urls]


def answering(site: Site) -> Callable[[str, dict[str, Any]], Awaitable[dict[str, Any]]]:
    async def answer(tool: str, args: dict[str, Any]) -> dict[str, Any]:
        status, text = site(args["url"].removeprefix("http://proxy"))
        failed = {"ok": False, "error_class": "http"} if status >= 400 else {}
        return await well(tool, args) | failed | {"status": status, "text": text, "content_type": HTML}

    return answer


async def proven(tmp_path: Path, site: Site, urls: list[str]) -> tuple[list[str], list[str]]:
    """Titles of what is confirmed, and reasons of what is not."""
    async with seated(tmp_path, persona(), hand=ANY, answer=answering(site)) as table:
        async with table.desk.turn() as turn:
            await turn.pose(ask(urls))
        await table.drive.runner.prove_raised()
        rows = await table.world.journal.findings(RUN)
    done = [one for one in rows if one.state == "confirmed" and one.data["oracle"] == "trace"]
    return [one.title for one in done], [graded(one).why for one in rows if one.state == "dropped"]


ATTACKED = ["/docs", "/docs?q=%27", "/docs?q=%3Cscript%3E", "/docs?q=moss"]


@pytest.mark.parametrize("words", WORDS)
@pytest.mark.parametrize("site", [static, shell])
async def test_a_page_that_quotes_an_error_is_no_finding(
    tmp_path: Path, site: Callable[[str], Site], words: str
) -> None:
    assert (await proven(tmp_path, site(words), ATTACKED))[0] == []


@pytest.mark.parametrize("status", [200, 403, 406, 429, 500])
@pytest.mark.parametrize("words", WORDS)
async def test_a_block_page_that_quotes_its_rule_is_no_finding(
    tmp_path: Path, status: int, words: str
) -> None:
    urls = ["/docs?q=%27", "/docs?q=%3Cscript%3E", "/docs/..%2f..%2fetc%2fpasswd", "/find?x=%7B%7B7*7%7D%7D"]
    told, why = await proven(tmp_path, gate(words, status), urls)
    assert told == []
    assert all("a gate quotes them" in one or "another finding" in one for one in why)


@pytest.mark.parametrize("url", ["/%2e%2e/%2e%2e/%2e%2e/etc/passwd", "/docs/%2e%2e%2f", "//moss.evil.test/"])
@pytest.mark.parametrize("words", WORDS)
async def test_a_gate_that_refuses_a_path_is_compared_where_it_refuses_nothing(
    tmp_path: Path, url: str, words: str
) -> None:
    told, why = await proven(tmp_path, gate(words), [url])
    assert told == []
    assert all("a gate quotes them" in one or "another finding" in one for one in why)


@pytest.mark.parametrize("status", [200, 400, 404, 500])
@pytest.mark.parametrize("words", WORDS)
async def test_what_a_question_causes_is_a_finding(tmp_path: Path, status: int, words: str) -> None:
    told, _ = await proven(tmp_path, program(words, status), ["/docs?q=moss", "/docs?q=%27"])
    shown = status >= 400 or words is not PATH  # a path in a page that is served may be what it is about
    assert len(told) == shown


@pytest.mark.parametrize("words", WORDS)
async def test_one_answer_is_one_finding(tmp_path: Path, words: str) -> None:
    urls = [f"/{word}/{at}x" for at, word in enumerate(["lists", "people", "files", "moss", "fern"] * 3)]
    told, why = await proven(tmp_path, of_path(words), urls)
    assert len(told) == 1
    assert not [one for one in why if "gate" in one]


async def test_a_probe_of_a_persona_is_compared_as_well(tmp_path: Path) -> None:
    one = persona(look("a", url="{proxy}/docs?q=%27", expect="true"))
    async with seated(tmp_path, one, answer=answering(static(SQL))) as table:
        await table.drive()
        (row,) = await table.world.journal.findings(RUN)
    assert (row.state, graded(row).grade) == ("dropped", "refuted")
    assert "it quotes them" in graded(row).why


@pytest.mark.parametrize(("site", "found"), [(gate(SQL), 0), (program(SQL), 1)])
async def test_a_quote_that_a_gate_refuses_is_no_injection(tmp_path: Path, site: Site, found: int) -> None:
    def answer(url: str) -> tuple[int, str]:
        return (200, page("welcome")) if url.endswith("%27%27") else site(url)

    steps = tuple(
        Step(tool="qa_fetch", args={"url": f"{{proxy}}/docs?q={value}"})
        for value in ("moss", "moss%27", "moss%27%27", "moss")
    )
    async with seated(tmp_path, persona(), hand=ANY, answer=answering(answer)) as table:
        async with table.desk.turn() as turn:
            await turn.pose([Question(steps)])
        await table.drive.runner.prove_raised()
        rows = await table.world.journal.findings(RUN, ["confirmed"])
    assert [one.data["oracle"] for one in rows].count("quote-injection") == found


async def run_again(tmp_path: Path, before: Site, after: Site) -> tuple[list[str], ItemRecord | None]:
    """What is proven over one site, run again over another: verdicts, and the record of one that is clean."""
    one = persona(look("a", url="{proxy}/docs?q=%27", expect="true"))
    async with seated(tmp_path, one, answer=answering(before), run="firstrun") as table:
        await table.drive()
        for row in await table.world.journal.findings("firstrun", ["confirmed"]):
            for state in ("posting", "posted"):
                await table.world.journal.set_finding("firstrun", row.fingerprint, state=state)
    async with seated(tmp_path, persona(), hand=ANY, answer=answering(after), run="otherrun") as table:
        verdicts = await retest(table.drive.runner)
        name = next(iter(verdicts))
        figures = read_recurrence(await table.world.journal.get(key_of(table.world.platform.name, name)))
    if not figures.clean_at:
        return [*verdicts.values()], None
    text = write_record(fixed_record(name, figures), surface="security", title="t")
    return [*verdicts.values()], read_record(read(text))


@pytest.mark.parametrize("words", [SQL, TRACE, JINJA, STACK])
@pytest.mark.parametrize("after", [static, shell])
async def test_an_item_that_a_page_only_quotes_by_now_is_clean_with_its_reason(
    tmp_path: Path, after: Callable[[str], Site], words: str
) -> None:
    verdicts, record = await run_again(tmp_path, program(words, 200), after(words))
    assert set(verdicts) == {"clean"}
    assert record is not None
    assert (record.runs, record.reason) == (0, "the page says the same whatever is asked: it quotes them")


@pytest.mark.parametrize("words", WORDS)
async def test_an_item_that_a_gate_only_quotes_by_now_is_clean_with_its_reason(
    tmp_path: Path, words: str
) -> None:
    verdicts, record = await run_again(tmp_path, program(words, 400), gate(words, 400))
    assert set(verdicts) == {"clean"}
    assert record is not None
    assert "a gate quotes them" in record.reason


@pytest.mark.parametrize("status", [400, 500])
@pytest.mark.parametrize("words", WORDS)
async def test_an_item_that_its_question_still_causes_is_shown(
    tmp_path: Path, status: int, words: str
) -> None:
    site = program(words, status)
    assert await run_again(tmp_path, site, site) == (["shown"], None)
