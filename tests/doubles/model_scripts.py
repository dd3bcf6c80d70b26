"""Scripts for the scripted model: one that tests properly, and those that a fleet must survive."""

from __future__ import annotations

from collections.abc import Sequence

from tests.doubles.model import Answer, ModelPrompt, Raw, Refuse, Say, Script, ScriptedCall, Silence

FETCH = ScriptedCall("qa_fetch", {"url": "http://127.0.0.1:1/"})


def in_order(*answers: Answer, then: Answer | None = None) -> Script:
    """These answers one after the other, then the last one, or `then`, repeatedly."""

    def script(asked: ModelPrompt) -> Answer:
        if asked.number < len(answers):
            return answers[asked.number]
        return then if then is not None else answers[-1]

    return script


def always(answer: Answer) -> Script:
    """The same answer every time."""
    return lambda _: answer


def good(probes: Sequence[str], *beyond: ScriptedCall) -> Script:
    """Thinks aloud, works through the probes two at a time, then explores beyond them."""
    pairs = [tuple(probes[start : start + 2]) for start in range(0, len(probes), 2)]
    answers: list[Answer] = [
        Say(
            reasoning="First the plan, then what it leaves out.",
            text="I start with the plan.",
            calls=[ScriptedCall("run_probe", {"probe": probe}) for probe in pair],
        )
        for pair in pairs
    ]
    answers += [Say(text="Now beyond the plan.", calls=[call]) for call in beyond]
    answers.append(Say(text="All is done.", calls=[ScriptedCall("finish", {"detail": "the plan is done"})]))
    return in_order(*answers, then=Say(text="Nothing is left."))


def flood(count: int = 800, call: ScriptedCall = FETCH) -> Script:
    """So many calls in one turn, and again."""
    return always(Say(calls=[call] * count))


def garbage() -> Script:
    """Events that are not JSON, and JSON that is not an event."""
    return always(
        Raw(
            (
                b"data: {not json\n\n",
                b'data: {"choices": "none"}\n\n',
                b"\xff\xfe\x00data: [DONE]\n\n",
            )
        )
    )


def huge(size: int) -> Script:
    """A text without an end in sight."""
    return always(Say(text="x" * size))


HOSTILE: dict[str, Script] = {
    "malformed-json": always(Say(calls=[ScriptedCall("qa_fetch", '{"url": "http')])),
    "not-an-object": always(Say(calls=[ScriptedCall("qa_fetch", "[1, 2]")])),
    "unknown-tool": always(Say(calls=[ScriptedCall("shell", {"command": "id"})])),
    "refusal": always(Say(refusal="I will not do that.")),
    "content-filter": always(Say(text="I", finish="content_filter")),
    "never-finishes": always(Say(calls=[FETCH])),
    "stops-at-once": always(Say(text="I am done.")),
    "says-nothing": always(Say()),
    "flood": flood(),
    "huge-text": huge(1_000_000),
    "garbage": garbage(),
    "not-a-stream": always(Raw((b"<html>hello</html>",), "text/html")),
    "cut-in-text": always(Say(text="x" * 500, cut_after=5)),
    "cut-in-call": always(
        Say(calls=[ScriptedCall("qa_fetch", {"url": "http://127.0.0.1:1/" + "x" * 200})], cut_after=6)
    ),
    "401": always(Refuse(status=401)),
    "403": always(Refuse(status=403)),
    "404": always(Refuse(status=404)),
    "500": always(Refuse(status=500)),
    "429-soon": always(Refuse(status=429, headers={"retry-after": "0"})),
    "429-never": always(Refuse(status=429, headers={"retry-after": "86400"})),
    "silence": always(Silence(60.0)),
}
"""Every one of them must end a run in one recorded outcome, with nothing left behind."""
