"""The dictionary of traces: what is seen in which answer, and the healthy texts that it leaves alone."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from fleet.oracles import table
from fleet.oracles.model import Exchange, Facts
from fleet.oracles.web import traces

JSON = "application/json"
URL = {"url": "{site}/x"}


def seen(text: str, status: int = 404, kind: str = "text/plain", url: str = "{site}/x") -> list[str]:
    result: dict[str, Any] = {"status": status, "text": text, "content_type": kind}
    return [one.oracle for one in table.judge((Exchange("qa_fetch", {"url": url}, result),), Facts())]


LEAKS = (
    "called `Result::unwrap()` on an `Err` value: ParseIntError",
    "Os { code: 2, kind: NotFound, message: x }",
    "src/store/reader.rs:88:14",
    'File "/srv/x/app.py", line 12, in handler',
    "FileNotFoundError: [Errno 2]",
    '"errno":-2',
    "bind() failed, errno = 13 (Permission denied)",
    '{"errno": 111, "strerror": "Connection refused"}',
    "KeyError: 'name'",
    "ValueError: invalid literal for int() with base 10: 'x'",
    "'NoneType' object has no attribute 'id'",
    "Expecting value: line 1 column 1 (char 0)",
    "panic: runtime error: index out of range [3] with length 2",
    "json: cannot unmarshal string into Go value of type int",
    'strconv.Atoi: parsing "x"',
    "open data/x.json: no such file or directory",
    "TypeError: Cannot read properties of undefined (reading 'id')",
    "ReferenceError: foo is not defined",
    "Cannot find module 'left-pad'",
    "java.lang.NullPointerException",
    "org.springframework.dao.DataAccessException",
    "Warning: include(x.php): failed to open stream in /var/www/html/x.php on line 3",
    "#0 /var/www/html/index.php(12): main()",
    "app/models/user.rb:12:in `find'",
    "ActiveRecord::RecordNotFound",
    "System.NullReferenceException: Object reference",
    "Died at /srv/cgi/x.pl line 12.",
    "** (Ecto.NoResultsError) expected at least one",
    "==123==ERROR: AddressSanitizer: heap-use-after-free",
    "*** stack smashing detected ***: terminated",
    "terminate called after throwing an instance of 'std::out_of_range'",
    "wasm trap: out of bounds memory access",
    "SQLSTATE[42601]: syntax error",
    'near "x": syntax error',
    "no such table: users",
    "SQLITE_CONSTRAINT: failed",
    "SQLITE_CONSTRAINT_UNIQUE",
    "unterminated quoted string at or near",
    'relation "users" does not exist',
    "Unknown column 'x' in 'where clause'",
    "Unclosed quotation mark after the character string ''.",
    "ORA-00942: table or view does not exist",
    "sqlalchemy.exc.OperationalError",
    "MongoServerError: E11000",
    "WRONGTYPE Operation against a key holding the wrong kind of value",
    "ENOENT: no such file or directory, open 'x'",
    "connect ECONNREFUSED 10.0.0.4:5432",
    "dial tcp 127.0.0.1:6379: connect: connection refused",
    "could not connect to server: Connection refused (db.internal:5432)",
    "HTTPConnectionPool(host='localhost', port=80): Max retries exceeded with url: /",
    "cannot open /data/apps/x: Permission denied",
    "/data/apps/docs.wasm: No such file or directory",
    "sh: 1: convert: not found",
    "VM Exception while processing transaction: revert",
    'call revert exception (action="call", code=CALL_EXCEPTION, version=6.7)',
    "web3.exceptions.ContractLogicError",
    "cannot read /home/deploy/app/config.json",
    "template /var/www/site/views/x.html is missing",
    "C:\\Users\\ci\\app\\x.cs",
    "/usr/lib/python3.11/json/decoder.py",
    "could not write /data/uploads/a.txt",
    "unable to load the note at /volumes/notes/1.json",
    "failed to open '/kelp/beds/north.db'",
    "reading /kelp/beds/north.toml failed",
    "the file '/kelp/beds/7.json' does not exist",
    "no file /kelp/beds/7.json",
    "File not found: /storage/beds/7",
    "template not found: /site/views/bed.html",
    "/kelp/beds/7.json: permission denied",
    "not here (/private/var/kelp/beds/7)",
    '{"why": "unknown bed", "file": "/srv/beds/7"}',
    "D:\\kelp\\beds\\7.json",
    "\\\\reef\\beds\\7.json",
)


@pytest.mark.parametrize("text", LEAKS)
def test_a_leak_is_seen_in_every_refusal(text: str) -> None:
    assert seen(f"oops: {text}") == ["trace"]
    assert seen(json.dumps({"error": {"detail": f"oops: {text}"}}), 422, JSON) == ["trace"]
    assert seen(f"<html><body><h1>Oops</h1><pre>{text}</pre></body></html>", 403, "text/html") == ["trace"]


PHP = '<br />\n<b>Warning</b>:  Undefined array key "m" in <b>/var/www/months.php</b> on line <b>31</b><br />'
DJANGO = (
    "<title>RuntimeError at /gql</title><table><tr><th>Request Method:</th><td>POST</td></tr>"
    '<tr><th scope="row">Django Version:</th><td>5.2.19</td></tr>'
    "<tr><th>Python Path:</th><td>/root/x/lib</td></tr>"
)
FENCED = '# Errors\n\n```\nTraceback (most recent call last):\n  File "/home/you/x.py", line 3, in y\n```\n'


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (json.dumps({"ok": True, "error": "No such device (os error 19)"}), JSON),
        (json.dumps({"ok": False, "message": "No such device (os error 19)"}), JSON),
        (json.dumps({"items": [{"error": "ENOENT: x"}]}), JSON),
        ("<html><title>App</title><body>cannot open app (os error 2)</body></html>", "text/html"),
        ("<p>hello</p><!-- rendered by /var/www/site/views/home.erb -->", "text/html"),
        ("<p>File &quot;/srv/app/views.py&quot;, line 3, in show</p>", "text/html"),
        ("error: (os error 2)", "text/plain"),
        (json.dumps({"status": "ok", "db": "/var/lib/app/main.db"}), JSON),
        (f"<h1>Months</h1>{PHP}<p>{'moss ' * 300}</p>", "text/html"),
        (f"a heading\n{FENCED}\nKeyError: 'x'", "text/markdown"),
    ],
)
def test_a_leak_is_seen_at_status_200(text: str, kind: str) -> None:
    assert seen(text, 200, kind) == ["trace"]


def test_a_debug_page_is_one_setting_whatever_page_shows_it() -> None:
    exchanges = [
        Exchange(
            "qa_fetch",
            {"url": f"{{site}}/{page}"},
            {"status": status, "text": text, "content_type": "text/html"},
        )
        for page, status, text in (("gql", 500, DJANGO), ("media/x", 400, DJANGO), ("y", 404, DJANGO))
    ]
    found = [one for exchange in exchanges for one in table.judge((exchange,), Facts())]
    assert {one.sighting.signature for one in found} == {found[0].sighting.signature}
    assert ["the debug page of Django" in one.sighting.title for one in found] == [True] * 3


def test_escaped_text_is_read_as_its_reader_sees_it() -> None:
    assert seen("\\u0027NoneType\\u0027 object has no attribute \\u0027id\\u0027", 500) == ["trace"]
    assert seen("<p>near &quot;x&quot;: syntax error</p>", 400, "text/html") == ["trace"]
    assert seen("no+page", 404) == []


HEALTHY = (
    "there is no such page",
    r'{"message":"Unrecognized keys in mapping: \"{\'\\U000c9748\u00fb\\U000949c5\\x9bVp\': 1}\""}',
    r'{"message":"not a date: \\x1d\u00a6\u7000\\x91\u00e7"}',
    r"no such key: \\x9c\u00cc\u00f8",
    '{"code":404,"errno":111,"error":"Not Found","message":"The resource could not be found."}',
    '{"code": 401, "errno": 104, "error": "Unauthorized", "message": "Please authenticate yourself."}',
    "no such name",
    'window.SQLITE_WEB_DB = "a.db"',
    "error 2: bad request",
    "file not found",
    "permission denied: only the owner may do this",
    "connection refused by policy",
    "invalid JSON: an object is expected",
    "bytes must be a number up to 1048576",
    "address must be 0x and 40 hex digits",
    "kind must be html or face",
    '"moss" is not a registered agent',
    "unsupported path /v1/x",
    "method not allowed; use POST /api/names",
    "execution reverted: NameTaken",
    "metering failed: execution reverted",
    "rate limit: too many calls from this address",
    "at noon (see /help) line 3",
    "syntax error in your query at column 4",
    "expected `;`, found `}` at 3:14",
    "[4..9] unknown name `foo`",
    "see https://example.org/home/alice/settings or http://x.test/opt/in/now",
    "thread not found",
    "no route to /docs/guide.html",
    "value out of range: amount",
    "stale or future timestamp",
    "panic mode is on; try again at 12:30",
    "the table does not exist",
    "limits of files are in /docs/files/limits.txt",
    "use POST /api/v1/notes.json",
    "could not delete /api/notes/7",
    "cannot open https://kelp.test/data/beds/7.json",
    "failed to load /assets/app.css",
    "a file is stored under /files/{name} and read at /files/{name}/text",
    '{"why": "unknown bed", "file": "north/7.json", "see": "/docs/beds.txt"}',
    "drive D: is read-only",
)


@pytest.mark.parametrize("text", HEALTHY)
@pytest.mark.parametrize("status", [200, 404, 422])
def test_healthy_words_are_left_alone(text: str, status: int) -> None:
    assert seen(text, status) == []
    assert seen(json.dumps({"error": text}), status, JSON) == []
    assert seen(f"<html><body><p>{text}</p></body></html>", status, "text/html") == []


REFUSAL = '{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: no session"},"id":null}'


@pytest.mark.parametrize("text", [REFUSAL, f"[{REFUSAL}]", f"event: message\ndata: {REFUSAL}"])
def test_a_service_that_speaks_json_rpc_shows_no_error_of_a_node(text: str) -> None:
    assert seen(text, 400, JSON) == []


@pytest.mark.parametrize("text", [f"no block: {REFUSAL}", json.dumps({"why": json.loads(REFUSAL)})])
def test_what_a_node_answered_inside_another_answer_is_seen(text: str) -> None:
    assert seen(text, 502) == ["trace"]


GUIDE = (
    "If you see `No such file or directory (os error 2)`, the name has no app. How to fix it: publish one."
)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (GUIDE, "text/markdown"),
        (f"<h1>Errors</h1><p>{GUIDE}</p>", "text/html"),
        (json.dumps({"name": "docs", "content": GUIDE}), JSON),
        (json.dumps({"entries": [{"title": "compiler", "said": "thread 'main' panicked at x.rs:1"}]}), JSON),
        (json.dumps({"status": "ok", "binary": "/usr/local/bin/tool", "dir": "/home/you/project/x"}), JSON),
        ("Install to /home/you/bin/tool and /var/lib/tool", "text/plain"),
        ("- we now answer 404 instead of `KeyError: 'x'`", "text/plain"),
        ("<script>// at /home/dev/x\n</script><p>hello</p>", "text/html"),
        (FENCED, "text/markdown"),
        (f"It is this:\n{FENCED}and `KeyError: 'x'` too", "text/plain"),
        (f"<h1>What PHP says</h1><pre>{PHP}</pre><p>{'moss ' * 300}</p>", "text/html"),
    ],
)
def test_documents_and_users_may_speak_of_errors(text: str, kind: str) -> None:
    assert seen(text, 200, kind) == []


def test_an_echo_is_the_callers() -> None:
    asked = "{site}/file?p=%2Fhome%2Fmoss%2Fkey.txt"
    assert seen("no file /home/moss/key.txt", url=asked) == []
    assert seen("no file /home/fern/key.txt", url=asked) == ["trace"]


@pytest.mark.parametrize("sent", ["%2Fkelp%2Fbeds%2F7.json", "kelp/beds/7.json"])
def test_a_path_that_a_caller_names_with_or_without_its_slash_is_the_callers(sent: str) -> None:
    text = "could not read /kelp/beds/7.json"
    assert seen(text, url="{site}/read?file=" + sent) == []
    assert seen(text, url="{site}/kelp/beds/7.json") == []
    assert seen(text, url="{site}/beds/7.json") == ["trace"]  # the folder is the server's own


def test_documentation_may_name_paths() -> None:
    said = "# Store\n\nIf the daemon could not read /data/beds/7.json, make the folder /data/beds first.\n"
    assert seen(said, 200, "text/markdown") == []
    assert seen(json.dumps({"name": "docs", "content": said}), 200, JSON) == []


PAIRS: dict[str, list[list[str]]] = tomllib.loads(
    Path(__file__).with_name("trace_pairs.toml").read_text("utf-8")
)


def signature(page: str, text: str, status: int = 500) -> str:
    kind = JSON if text.startswith("{") else "text/plain"
    result: dict[str, Any] = {"status": status, "text": text, "content_type": kind}
    exchange = Exchange("qa_fetch", {"url": page}, result)
    (one,) = table.judge((exchange,), Facts(site="http://h.test"))
    return one.sighting.signature


@pytest.mark.parametrize("pair", PAIRS["same"])
def test_one_place_of_the_code_is_one_defect_on_any_page_of_a_host(pair: list[str]) -> None:
    first, text, second, other = pair
    assert signature(f"{{site}}{first}", text) == signature(f"{{site}}{second}", other)
    assert signature(f"{{site}}{first}", text) != signature(f"http://other.test{second}", other)


@pytest.mark.parametrize("pair", PAIRS["other"])
def test_what_may_be_two_defects_is_two(pair: list[str]) -> None:
    first, text, second, other = pair
    assert signature(f"{{site}}{first}", text) != signature(f"{{site}}{second}", other)


SENT = "    at SendStream.error (/srv/node_modules/send/lib/send.js:142:31)"


def test_the_stack_of_a_library_that_refuses_is_one_defect_of_its_host() -> None:
    piped = SENT.replace("142:31", "371:12")
    here = [signature("{site}/a/%2e%2e", SENT, 403), signature("{site}/%00", piped, 400)]
    assert here == ["trace {site} a JavaScript stack trace in refusals"] * 2
    assert signature("{site}/a/%2e%2e", SENT) != signature("{site}/%00", piped)  # two failures may be two
    own = "    at show (/srv/app.js:7:3)"
    assert signature("{site}/a", own, 400) == "trace {site} a JavaScript stack trace at /srv/app.js 7 show"


@pytest.mark.parametrize(
    ("status", "document", "said"),
    [
        (400, {"errors": [{"extensions": {"exception": {"stacktrace": ["GraphQLError: no field x"]}}}]}, 1),
        (200, {"errors": [{"extensions": {"stackTrace": ["lib.Exception: no", "  line 7"]}}]}, 1),
        (500, {"stack": "RangeError: too deep"}, 1),
        (200, {"issues": [{"stacktrace": ["ValueError: of somebody else's program"]}]}, 0),
        (200, {"errors": [{"stacktrace": []}, {"stack": "LAMP"}]}, 0),
        (404, {"error": "no stack of that name", "stack": "web"}, 0),
    ],
)
def test_a_field_for_developers_in_a_failed_answer_is_a_leak(
    status: int, document: dict[str, Any], said: int
) -> None:
    assert seen(json.dumps(document), status, JSON) == ["trace"] * said


def test_the_stack_of_an_error_is_no_framework_s_page() -> None:
    framed = json.dumps({"error": "no", "stack": "TypeError: x\n    at list (/srv/app.js:7:3)"})
    found = traces.find(framed)
    assert found is not None
    assert found.kind == "a JavaScript stack trace"


def test_traces_in_the_errors_of_graphql_are_one_setting_of_its_server() -> None:
    def place(frame: str, status: int) -> tuple[str, str]:
        lines = ["GraphQLError: no", f"    at {frame}", "    at next (/srv/x/b.js:3:1)"]
        text = json.dumps({"errors": [{"message": "no", "extensions": {"stacktrace": lines}}]})
        result = {"status": status, "text": text, "content_type": JSON}
        call = Exchange("qa_fetch", {"url": "{site}/graphql"}, result)
        (found,) = table.judge((call,), Facts(site="http://h.test"))
        return found.sighting.signature, found.sighting.where["trace"]

    assert place("gql (/srv/x/a.js:1:2)", 200) == place("Object.Field (/srv/x/c.js:9:2)", 400)


def _through(*lines: int) -> str:
    frames = "\n".join(
        f'  File "/srv/venv/lib/python3.11/site-packages/flask/app.py", line {one}, in run' for one in lines
    )
    return f"Traceback (most recent call last):\n{frames}\nTemplateNotFound: moss"


def test_one_way_through_libraries_is_one_defect_whatever_page_shows_it() -> None:
    """Of a program that shows no code of its own; a few frames are those of any failure."""

    def place(page: str, text: str) -> str:
        result: dict[str, Any] = {"status": 500, "text": text, "content_type": "text/plain"}
        (found,) = table.judge((Exchange("qa_fetch", {"url": page}, result),), Facts(site="http://h.test"))
        return found.sighting.where["trace"]

    assert len({place(f"{{site}}/js/{at}x", _through(1, 2, 3)) for at in range(3)}) == 1
    assert place("{site}/a", _through(1, 2, 3)) != place("{site}/a", _through(1, 2, 4))
    assert place("{site}/a", _through(1, 2)) != place("{site}/b", _through(1, 2))


@pytest.mark.parametrize(("shown", "leaks"), [("moss.woff", False), ("other.woff", True)])
def test_a_path_that_was_sent_is_no_leak_without_its_null_byte_either(shown: str, leaks: bool) -> None:
    """A page says which file it does not have, and leaves control characters out."""
    url = "{site}/static/..%2F..%2Fetc%2Fmoss%00.woff"
    result = {"status": 404, "text": f"no such file: /static/../../etc/{shown}"}
    found = table.judge([Exchange("qa_fetch", {"url": url}, result)], Facts(site="http://h.test"))
    assert ("trace" in [one.oracle for one in found]) is leaks
