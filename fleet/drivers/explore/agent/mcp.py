"""The explorer of MCP servers: what they list, and each tool by its schema.

A tool is asked what fits, what is at the edge, what is wrong, and attacks that show by their effect.

Lists, resources and prompts are read at any rung. Tools are called where acts are permitted, but for those
whose server says that they destroy. An attack is a question of two calls: the control, and the attack.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any

from fleet.drivers.desk import Left, Question, led_by
from fleet.drivers.explore.account.bodies import filled, plain
from fleet.drivers.explore.agent.mcp_values import (
    attacks,
    backtracking,
    climbs,
    edges,
    expressions,
    reversed_ranges,
    wrong,
)
from fleet.drivers.explore.listened import asking, heard
from fleet.drivers.explore.own_urls import OwnUrls
from fleet.drivers.explore.pages import short_hash
from fleet.drivers.explore.port import ExplorerContext, Results
from fleet.personas.model import Step
from fleet.text import counted
from sandbox.agents.handles import NAMED
from sandbox.agents.mcp_wire import SESSIONS, STATELESS

TOOL = "qa_mcp"
TOOLS = (TOOL,)
CALL = "tools/call"
FOREIGN = "http://qa-elsewhere.example"
"""An origin that no server has reason to trust."""
CLIENTS = ("claude-ai", "mcp-inspector")
"""Names of clients that servers meet; what is listed is the same for all."""
REMEMBERED = 5_000
"""Questions of which it is known how often they were asked."""
FOREIGN_RESOURCES = 6
HANDED_ON = 24
"""Pairs of tools of one server, one of which is given what the other handed out."""
_LISTING = re.compile(r"(?i)^(?:list|my|show|get_my|all)|list$|s$")
"""A tool that lists what its caller has."""
NESTED = 2
"""Levels of objects in arguments that are looked into."""
MOST = 60
"""Tools, resources and prompts of one server, each."""
_WORD = re.compile(r"\{(?:handle|email|phrase|mark)[^}]*\}")
_VARIABLE = re.compile(r"\{[^{}]{1,60}\}")
_WORDS = {"{email}": "qa@example.org"}


@dataclass(frozen=True, slots=True)
class McpLookup(Question):
    """Asks a server what it lists, as one caller."""

    url: str = ""
    caller: str = ""

    @property
    def why(self) -> str:
        return "an MCP server of the profile, or one that a document names"


class McpExplorer:
    """Implements Explorer. `asked`: by its hash, how often a question was; the least asked come first."""

    def __init__(self, context: ExplorerContext, chance: Random, state: Mapping[str, Any]) -> None:
        platform, self._urls, self._chance = context.platform, OwnUrls(context.platform), chance
        asked = state.get("asked")
        self.asked = Counter(
            {str(key): times for key, times in asked.items() if type(times) is int}
            if isinstance(asked, dict)
            else {}
        )
        self._listens = platform.web.listens
        self._acts, self._never = context.acts, frozenset(platform.mcp.never)
        self._carried = platform.accounts.carried if platform.accounts else ""
        self._carried = self._carried if self._carried.startswith("header ") else ""
        self._callers = ("", "one", "other") if platform.accounts else ("",)
        self._met: dict[str, str] = {}
        """As whom a server is asked, by its URL: the first who is shown its tools."""
        self._slow = set[tuple[str, ...]]()
        """Tools that are not called again, by server and name."""
        self._wire: dict[str, str] = {}
        """The version that a server was first met with."""
        self._left: dict[str, str] = {}
        self._closed: dict[tuple[str, str], list[str]] = {}
        """Tools that are not called, by server and reason."""
        self._tools: dict[str, dict[str, Mapping[str, Any]]] = {}
        """Schemas of the tools that may be called, by server and name."""
        self._listed: dict[tuple[str, str], set[str]] = {}
        """URIs of resources that a caller is shown, by server and caller."""
        self._followed = set[tuple[str, ...]]()
        """Tools whose answers were followed: by what asks for input, and which pairs."""
        self._next: list[Question] = [
            self._lookup(url, caller)
            for actual in platform.mcp_urls
            if (url := self._urls.spelled(actual, faces=False))
            for caller in self._callers
        ]

    def ask(self, most: int) -> Sequence[Question]:
        asked = list[Question]()
        self._next = [one for one in self._next if not self._slow & set(map(_called, one.steps))]
        while self._next and len(self._next[0].steps) <= most:
            most -= len(self._next[0].steps)
            one = self._next.pop(0)
            args = one.steps[-1].args
            about = f"{args.get('method', 'what')} {args.get('name', 'is listed')} of {args['url']}"
            asked += led_by(about, one)
        return asked

    def learn(self, question: Question, results: Results) -> None:
        self.asked[_key(question)] += bool(results)
        for step, result in zip(question.steps, results, strict=False):
            if _called(step) and any(map(result.get, ("hung", "stalled", "ended"))):
                url, name = _called(step)
                self._slow.add((url, name))
                self._close(url, name, "a call had no answer, and they were not asked more")
            if _called(step):
                self._next[:0] = self._followed_up(step, result)
        if not isinstance(question, McpLookup) or not results:
            return
        url, caller, result = question.url, question.caller, results[0]
        if result.get("ok"):
            self._listed[url, caller] = {str(one["uri"]) for one in named(result, "resources", "uri")}
            self._next[:0] = self._of_another(url)
        if not caller:
            self._next += self._as_strangers(url, protected=bool(result.get("protected")))
        if url in self._met or not result.get("ok"):
            if not result.get("ok") and url not in self._met:
                self._left[f"MCP server {url}"] = f"it lists nothing: {result.get('error', '')}"
            return
        self._met[url], self._wire = caller, self._wire | {url: str(result.get("wire", ""))}
        self._left.pop(f"MCP server {url}", None)
        ranked = [*self._of_server(url), *self._of_lists(url, result), *self._of_tools(url, result)]
        self._chance.shuffle(ranked)
        ranked.sort(key=lambda each: (self.asked[_key(each[1])], each[0]))
        self._next += (one for _, one in ranked)

    def state(self) -> Mapping[str, Any]:
        return {"asked": dict(self.asked.most_common(REMEMBERED))}

    def left(self) -> Sequence[Left]:
        """Servers that list nothing, and tools that are not called."""
        closed = [
            Left(f"{counted(len(names), 'tool')} of {url}, {', '.join(names)}", why)
            for (url, why), names in self._closed.items()
        ]
        return [*(Left(part, why) for part, why in self._left.items()), *closed]

    def _lookup(self, url: str, caller: str) -> McpLookup:
        return McpLookup((self._step(url, caller),), url, caller)

    def _step(self, url: str, caller: str, **args: object) -> Step:
        who = {"caller": caller, **({"carried": self._carried} if self._carried else {})} if caller else {}
        wire = {"wire": self._wire[url]} if self._wire.get(url) else {}
        return Step(tool=TOOL, args={"url": url, **who, **wire, **args})

    def _as_strangers(self, url: str, *, protected: bool) -> Iterator[Question]:
        if protected:
            yield Question((self._step(url, "invented"),))

    def _of_server(self, url: str) -> Iterator[tuple[int, Question]]:
        """What the server tells its clients apart by."""
        lists = self._step(url, self._met[url])
        yield 0, Question((lists, self._step(url, self._met[url], origin=FOREIGN)))
        yield 1, Question((lists, self._step(url, self._met[url], contradicts="protocol-version")))
        for client in CLIENTS:
            yield 1, Question((lists, self._step(url, self._met[url], client=client)))
        if self._wire[url] == STATELESS:
            yield 1, Question((lists, self._step(url, self._met[url], contradicts="method")))
            old = {"wire": SESSIONS[0]}  # a server may have both
            plain = self._step(url, self._met[url], **old)
            told = self._step(url, self._met[url], contradicts="protocol-version", **old)
            yield 1, Question((plain, told))
        if self._met[url]:
            shown = {"session_of": "one", "wire": SESSIONS[0]}
            yield 1, Question((self._step(url, ""), self._step(url, "", **shown)))

    def _followed_up(self, step: Step, result: Mapping[str, Any]) -> Iterator[Question]:
        """What is asked of what a call handed out: a requestState, or handles that another tool takes."""
        url, name = _called(step)
        caller, tools = self._met.get(url, ""), self._tools.get(url, {})
        if name not in tools or step.args.get("state") or step.args.get("then"):
            return
        call = partial(self._step, url, caller, method=CALL, name=name, arguments=step.args["arguments"])
        if result.get("asks_input") and (url, name) not in self._followed:
            self._followed.add((url, name))
            for state in ("altered", "other") if caller else ("altered",):
                yield Question((call(state="own"), call(state=state)))
        handed = [str(one).casefold() for one in result.get("handed") or ()]
        for taker, schema in tools.items() if caller and handed else ():
            good, known = arguments(schema), _properties(schema)
            takes = [
                one for one in known if NAMED.search(one) and known[one].get("type") in ("string", "integer")
            ]
            key = (url, name, taker)
            fits = [one for one in takes if {one.casefold(), "text", "id"} & set(handed)]
            if taker == name or not fits or key in self._followed or len(self._followed) >= HANDED_ON:
                continue
            self._followed.add(key)
            rest = {one: value for one, value in good.items() if one != fits[0]}
            listing = {"listing": found} if (found := _listing(tools, f"{name} {taker} {fits[0]}")) else {}
            then = call(then=taker, then_argument=fits[0], then_arguments=rest, **listing)
            yield Question((self._step(url, ""), then))

    def _of_another(self, url: str) -> Iterator[Question]:
        """Resources that one account is shown and the other is not, read by both."""
        if (url, "one") not in self._listed or (url, "other") not in self._listed:
            return
        for uri in sorted(self._listed[url, "one"] - self._listed[url, "other"])[:FOREIGN_RESOURCES]:
            read = (self._step(url, who, method="resources/read", name=uri) for who in ("one", "other"))
            yield Question((self._step(url, ""), self._step(url, "other"), *read))
        if self._listed[url, "one"] != self._listed[url, "other"]:
            old = {"wire": SESSIONS[0]}
            both = (self._step(url, who, **old) for who in ("one", "other"))
            yield Question((*both, self._step(url, "other", session_of="one", **old)))

    def _of_lists(self, url: str, result: Mapping[str, Any]) -> Iterator[tuple[int, Question]]:
        """Resources and prompts: reads, whatever is sent."""
        caller = self._met[url]
        uris = [str(one["uri"]) for one in named(result, "resources", "uri")]

        def read(uri: str) -> Step:
            return self._step(url, caller, method="resources/read", name=uri)

        for uri in uris:
            yield 1, Question((read(uri),))
        for uri in uris[:1] if self._wire[url] == STATELESS else ():
            yield 2, Question((read(uri), self._contradicted(read(uri))))
        for stem in (str(one["uriTemplate"]) for one in named(result, "templates", "uriTemplate")):
            before, brace, after = stem.partition("{")
            after = after.partition("}")[2] if brace else ""
            known = (uri for uri in uris if uri.startswith(before))
            control = read(next(known, _VARIABLE.sub("moss", stem)))
            for at, climb in enumerate(climbs("moss") if brace else ()):
                yield 1 + at // 2, Question((control, read(before + climb + _VARIABLE.sub("moss", after))))
        for prompt in named(result, "prompts", "name"):
            given = dict.fromkeys((str(one["name"]) for one in named(prompt, "arguments", "name")), "moss")
            got = partial(self._step, url, caller, method="prompts/get", name=str(prompt["name"]))
            yield 1, Question((got(arguments=given),))
            if given:
                yield 1, Question((got(arguments={}),))
            for name in given:
                for at, value in enumerate([*expressions("moss"), *climbs("moss")]):
                    yield 2 + at // 2, Question((got(arguments=given), got(arguments={**given, name: value})))

    def _of_tools(self, url: str, result: Mapping[str, Any]) -> Iterator[tuple[int, Question]]:
        """Calls of each tool, where it may be called."""
        may = self._acts and self._urls.may_act(url)
        for one in named(result, "tools", "name"):
            name, hints = str(one["name"]), one.get("annotations")
            if name in self._never:
                why = "mcp.never of the profile names them"
            elif (
                isinstance(hints, Mapping)
                and hints.get("destructiveHint") is True
                and not hints.get("readOnlyHint")
            ):
                why = "their server says that they destroy"
            elif _task_only(one):
                why = "they are called as a task alone"
            elif not may:
                why = "calling them is an act: it takes the rung exercise, and the endpoint in web.act_paths"
            else:
                yield from self._of_tool(url, one)
                continue
            self._close(url, name, why)

    def _contradicted(self, step: Step) -> Step:
        """The same, named otherwise in its header."""
        return step.model_copy(update={"args": {**step.args, "contradicts": "name"}})

    def _close(self, url: str, name: str, why: str) -> None:
        names = self._closed.setdefault((url, why), [])
        names += [name] * (name not in names)

    def _of_tool(self, url: str, tool: Mapping[str, Any]) -> Iterator[tuple[int, Question]]:
        caller, name = self._met[url], str(tool["name"])
        schema = tool.get("inputSchema")
        schema = schema if isinstance(schema, Mapping) else {}
        good = arguments(schema)

        def call(arguments: Mapping[str, Any], who: str = caller, **more: object) -> Step:
            return self._step(url, who, method=CALL, name=name, arguments=dict(arguments), **more)

        lists = self._step(url, caller)
        self._tools.setdefault(url, {})[name] = schema
        yield 0, Question((lists, call(good)))
        yield 1, Question((call(good, relist=True),))
        if self._wire[url] == STATELESS:  # a session may see a change alone
            yield 1, Question((call(good, relist=True, wire=SESSIONS[0]),))
        if self._wire[url] == STATELESS and len(self._tools[url]) == 1:
            yield 1, Question((call(good), self._contradicted(call(good))))
        if caller:
            yield 1, Question((self._step(url, ""), call(good, "")))
        known = _properties(schema)
        for rank, value in wrong(good, schema):
            yield rank, Question((lists, call(good), call(value)))
        usuals = {key: _value(key, one, schema) for key, one in known.items()}
        for first, turned in reversed_ranges(usuals):
            full = {**good, **{key: usuals[key] for key in turned}}
            yield 2, Question((call(full), call({**full, first: turned[first]})))
        if costly := backtracking(known):
            texts = dict.fromkeys(costly, "moss")
            yield 5, Question((call({**good, **texts}), call({**good, **costly})), minimal=True)
        yield from self._of_leaves(f"{url} {name}", call, lists, good, schema)

    def _of_leaves(
        self,
        where: str,
        call: Callable[..., Step],
        lists: Step,
        good: Mapping[str, Any],
        schema: Mapping[str, Any],
    ) -> Iterator[tuple[int, Question]]:
        """Each argument in turn, at its edges and by attacks."""
        for path, said in _leaves(schema):
            usual, with_it = _at(good, path), good
            if usual is None and said.get("type", "string") == "string" and "enum" not in said:
                usual = _value(path[-1], said, schema)
                with_it = _put(good, path, usual)
            for rank, edge in edges(said, usual):
                told = (lists,) if "enum" in said else ()  # another kind of answer may have another form
                yield rank, Question((*told, call(with_it), call(_put(with_it, path, edge))))
            if isinstance(usual, str) and not {"enum", "const", "format", "pattern"} & set(said):
                chance = Random(f"{where} {path}")
                listened = (heard(chance), asking(chance)) if self._listens else ("", ())
                for rank, values in attacks(path[-1], usual, listened):
                    steps = (call(_put(with_it, path, one)) for one in values)
                    yield rank, Question((call(with_it), *steps))


make = McpExplorer


def _key(question: Question) -> str:
    return short_hash(repr(question.steps))


def _called(step: Step) -> tuple[str, ...]:
    """The server and the tool that a step calls; empty for any other step."""
    args = step.args
    return (str(args["url"]), str(args["name"])) if args.get("method") == CALL else ()


def _listing(tools: Mapping[str, Mapping[str, Any]], about: str) -> str:
    """The tool without arguments that lists what the others are about; "" for none."""
    words = {one.rstrip("s") for one in re.split("[^a-z]+", about.casefold()) if len(one) > 3}
    for name, schema in tools.items():
        named = {one.rstrip("s") for one in re.split("[^a-z]+", name.casefold())}
        if not arguments(schema) and _LISTING.search(name) and named & words:
            return name
    return ""


def _task_only(tool: Mapping[str, Any]) -> bool:
    execution = tool.get("execution")
    return isinstance(execution, Mapping) and execution.get("taskSupport") == "required"


def named(found: Mapping[str, Any], kind: str, key: str) -> list[Mapping[str, Any]]:
    """The members of a list that have a name."""
    listed = found.get(kind)
    members = listed[:MOST] if isinstance(listed, list | tuple) else ()
    return [one for one in members if isinstance(one, Mapping) and isinstance(one.get(key), str) and one[key]]


def _properties(schema: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    listed = schema.get("properties")
    members = list(listed.items())[:20] if isinstance(listed, Mapping) else []
    return {str(key): plain(said, schema) for key, said in members}


def _leaves(
    schema: Mapping[str, Any], depth: int = NESTED
) -> Iterator[tuple[tuple[str, ...], Mapping[str, Any]]]:
    """Arguments by their path: a framework may wrap all of them in one object."""
    for key, said in _properties(schema).items():
        inner = {**said, "$defs": schema.get("$defs")}
        if depth and isinstance(said.get("properties"), Mapping):
            yield from (((key, *path), one) for path, one in _leaves(inner, depth - 1))
        else:
            yield (key,), said


def _at(arguments: Mapping[str, Any], path: tuple[str, ...]) -> Any:  # noqa: ANN401  any JSON
    """The value at a path; None for none."""
    found: Any = arguments
    for key in path:
        found = found.get(key) if isinstance(found, Mapping) else None
    return found


def _put(arguments: Mapping[str, Any], path: tuple[str, ...], value: object) -> dict[str, Any]:
    """The arguments with another value at a path."""
    key, *rest = path
    inner = arguments.get(key)
    below = inner if isinstance(inner, Mapping) else {}
    return {**arguments, key: _put(below, tuple(rest), value) if rest else value}


def arguments(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments that fit: those that are required."""
    needed = schema.get("required")
    names = [one for one in needed if isinstance(one, str)] if isinstance(needed, list) else []
    known = _properties(schema)
    return {name: _value(name, known.get(name, {}), schema) for name in names}


def _value(name: str, said: Mapping[str, Any], schema: Mapping[str, Any]) -> Any:  # noqa: ANN401  any JSON
    """A value that fits a schema; a plain word where any text does."""

    def worded(value: Any) -> Any:  # noqa: ANN401  any JSON
        if isinstance(value, str):
            return _WORD.sub(lambda found: _WORDS.get(found[0], "moss"), value)
        if isinstance(value, dict):
            return {key: worded(one) for key, one in value.items()}
        return list(map(worded, value)) if isinstance(value, list) else value

    return worded(filled(name, said, schema, entering=False))
