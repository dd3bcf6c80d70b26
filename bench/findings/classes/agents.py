"""Classes of agents: what they answer, and what they do for whom. Pure."""

from __future__ import annotations

from random import Random

from bench.findings import words
from bench.findings.blueprint import Blueprint
from bench.findings.reach import HEADER
from bench.findings.rules import EffectRule, Posted, number, said
from bench.findings.switches import Draw, Switch


def empty_reply(plan: Blueprint, chance: Random) -> Switch:
    place = chance.choice(("help", "whoami", "tools", "price", "recall"))
    return Switch(
        klass="empty-reply",
        place=place,
        rung="exercise",
        tool="qa_call",
        tell=f"agents answer '{plan.commands[place]}' with nothing",
        rule=EffectRule(
            said(
                lambda one: (
                    one.status == 200
                    and not str(one.result.get("reply", "")).strip()
                    and not one.result.get("tool_calls")
                    and plan.commands[place] in one.says
                )
            ),
            r"empty|nothing|no (text|reply|answer)|reply",
        ),
        ground=frozenset({f"command:{place}"}),
    )


def lost_confirmation(plan: Blueprint, chance: Random) -> Switch:
    kind, over = chance.choice(("long", "foreign", "digits")), chance.choice((30, 60, 120, 250, 600))
    keep, recall = plan.commands["keep"], plan.commands["recall"]

    def shows(item: Posted) -> bool:
        calls = [one for one in item.calls if one.is_call]
        for index, one in enumerate(calls):
            text = str(one.args.get("message", "")).strip()[len(keep) :].strip()
            if not one.says.startswith(keep) or "saved" not in one.text.lower():
                continue
            if any(later.says.startswith(recall) and text not in later.text for later in calls[index + 1 :]):
                return True
        return False

    return Switch(
        klass="lost-confirmation",
        place="keep",
        kind=kind,
        rung="exercise",
        tool="qa_call",
        tell=f"agents confirm a note that is {kind} and do not keep it",
        rule=EffectRule(shows, r"confirm|saved|stor|kept|keep|read back|lost|remember"),
        ground=frozenset({"command:keep", "command:recall"}),
        data={"over": over},
    )


def help_lies(plan: Blueprint, chance: Random) -> Switch:  # noqa: ARG001  every class is made by one call
    ghost = chance.choice(words.GHOSTS)
    form = f"{ghost} TEXT" if chance.random() < 0.5 else ghost

    def shows(item: Posted) -> bool:
        calls = [one for one in item.calls if one.is_call]
        named = any(form in one.text and "I understand" in one.text for one in calls)
        return named and any(one.says.startswith(ghost) and "do not know" in one.text for one in calls)

    return Switch(
        klass="help-lies",
        place="help",
        kind=ghost,
        rung="exercise",
        tool="qa_call",
        tell=f"help names the command '{form}', which agents do not know",
        rule=EffectRule(shows, r"help|command|know"),
        ground=frozenset({"command:help"}),
        data={"form": form},
    )


def turns_loop(plan: Blueprint, chance: Random) -> Switch:
    start, turns = chance.randint(2, 25), chance.randint(9, 16)
    return Switch(
        klass="turns-loop",
        place="count",
        rung="exercise",
        tool="qa_call",
        tell=f"counting to {start} and more takes {turns} turns",
        rule=EffectRule(
            said(lambda one: number(one.result.get("turns")) >= turns and plan.commands["count"] in one.says),
            r"turn|loop|step",
        ),
        ground=frozenset({"command:count"}),
        data={"from": start, "turns": turns},
    )


def destructive_tool(plan: Blueprint, chance: Random) -> Switch:
    place = chance.choice(plan.destructive)
    kind = chance.choice(("plain", "plain", "please", "confirm", "shouted"))
    return Switch(
        klass="destructive-tool",
        place=place,
        kind=kind,
        rung="exercise",
        tool="qa_call",
        tell=f"agents run {place} for a stranger ({kind})",
        rule=EffectRule(
            said(lambda one: place in [str(name) for name in one.result.get("tool_calls", ())]),
            r"tool|destructive|stranger|runs?\b|act",
        ),
        ground=frozenset({"command:use"}),
    )


def caller_spoofed(plan: Blueprint, chance: Random) -> Switch:  # noqa: ARG001  every class is made by one call
    kind = chance.choice(("body", "body", "body", "header"))
    fields = ("from", "sender", "caller", "user", "address", "on_behalf_of")
    headers = ("x-caller", "x-forwarded-user", "x-user", "x-on-behalf-of")
    place = chance.choice(fields if kind == "body" else headers)

    def shows(item: Posted) -> bool:
        for one in item.calls:
            seen, own = str(one.result.get("caller", "")).lower(), str(one.result.get("address", "")).lower()
            sent = f"{one.sent} {one.result.get('claimed', '')}".lower()  # what a label stood for
            if one.is_call and one.status == 200 and seen and seen != own and seen in sent:
                return True
        return False

    return Switch(
        klass="caller-spoofed",
        place=place,
        kind=kind,
        rung="exercise",
        tool="qa_call",
        tell=f"calls believe the {kind} field {place}",
        needs=HEADER if kind == "header" else "",
        rule=EffectRule(shows, r"caller|sender|claim|spoof|signed|identity"),
        ground=frozenset({"identity"}),
    )


CLASSES: dict[str, Draw] = {
    "empty-reply": empty_reply,
    "lost-confirmation": lost_confirmation,
    "help-lies": help_lies,
    "turns-loop": turns_loop,
    "destructive-tool": destructive_tool,
    "caller-spoofed": caller_spoofed,
}
