"""The explorer of an agent's registration (ERC-8004): its file, and what that names, as far as it is ours.

The file is written by whoever owns the agent. What it names is asked where the profile has it in scope
already, by the tool of that part; everything else is only reported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any
from urllib.parse import urlsplit

from fleet.drivers.desk import Left, Question
from fleet.drivers.explore.own_urls import OwnUrls
from fleet.drivers.explore.port import ExplorerContext, Results
from fleet.personas.model import Step
from fleet.text import line
from sandbox.tools.qa_fetch import LONGEST
from sandbox.tools.qa_registry import REGISTRATION_PAGE

TOOL = "qa_registry"
TOOLS = (TOOL,)


class RegistryExplorer:
    """Implements Explorer: evidence of each service, and then the registration that names it."""

    def __init__(self, context: ExplorerContext, _chance: Random, _state: Mapping[str, Any]) -> None:
        self._platform, self._tools = context.platform, context.tools
        self._urls, self._left = OwnUrls(context.platform), dict[str, str]()
        agent = context.platform.erc8004
        steps = [] if agent is None else [Step(tool=TOOL, args={"agent": agent.agent})]
        self._next = [Question((step,), led="the agent's number in the registry") for step in steps]

    def ask(self, most: int) -> Sequence[Question]:
        asked = list[Question]()
        while self._next and len(self._next[0].steps) <= most:
            most -= len(self._next[0].steps)
            asked.append(self._next.pop(0))
        return asked

    def learn(self, question: Question, results: Results) -> None:
        if len(question.steps) > 1 or not results:
            return
        step, result = question.steps[0], results[0]
        part, uri = f"the registration of agent {step.args['agent']}", str(result.get("uri", ""))
        if not result.get("ok"):
            self._left[part] = line(str(result.get("error", "")), 120)
        elif result.get("file_read"):
            self._next += self._of_file(step, result)
        elif file := self._own(uri) if not step.args.get("file") else "":
            self._next.append(Question((Step(tool=TOOL, args={**step.args, "file": file}),)))
        else:
            self._left[part] = f"its file is not on a host of this profile: {line(uri, 120)}"

    def state(self) -> Mapping[str, Any]:
        return {}

    def left(self) -> Sequence[Left]:
        return [Left(part, why) for part, why in self._left.items()]

    def _own(self, url: str) -> str:
        """A URL in a repro's form; "" for one that is not the platform's."""
        return self._urls.spelled(url, faces=False) if url.startswith(("http://", "https://")) else ""

    def _of_file(self, step: Step, result: Mapping[str, Any]) -> Iterator[Question]:
        hosts = dict[str, None]()
        for one in result.get("services") or ():
            name, endpoint = str(one.get("name", "")), str(one.get("endpoint", ""))
            if not endpoint.startswith(("http://", "https://")):
                continue
            part = f"the service {line(name, 20)} at {line(endpoint, 120)}"
            if not (url := self._own(endpoint)):
                self._left[part] = "its host is not in this profile, and a registration adds none"
                continue
            hosts[self._own("{0.scheme}://{0.netloc}".format(urlsplit(endpoint)) + REGISTRATION_PAGE)] = None
            if name.upper() != "MCP":
                yield from self._beside(step, "qa_fetch", url=url, longest=LONGEST)
            elif self._urls.actual(url) in self._platform.mcp_urls:
                yield from self._beside(step, "qa_mcp", url=url)
            else:
                self._left[part] = "mcp.endpoints of the profile does not name it"
        for place in hosts:
            yield from self._beside(step, "qa_fetch", url=place)
        for actual in self._platform.paid_urls:
            yield from self._beside(step, "qa_pay", url=self._urls.spelled(actual, faces=False))

    def _beside(self, step: Step, tool: str, **args: object) -> Iterator[Question]:
        if tool in self._tools and args["url"]:
            yield Question((Step(tool=tool, args=args), step))


make = RegistryExplorer
