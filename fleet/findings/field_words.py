"""What a field of a tool's result says in a title, in words and units that people use. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from fleet.text import counted, line

CREDIT = 10**18
"""Wei of one credit, as of one ether."""
VALUE_CHARS = 60
FEW = 3
"""Members of a list that are shown; of a longer one those before the last of them."""
_IN_WEI = frozenset({"charged", "charged_again", "charged_claimed", "advertised_wei", "credit"})

FIELD_WORDS: Mapping[str, str | tuple[str, str]] = MappingProxyType(
    {
        # of every tool
        "ok": ("succeeds", "fails"),
        "latency_ms": "takes {} ms",
        "error": ('error "{}"', "no error"),
        "error_class": ("fails: {}", "no failure"),
        "hint": ("hints at {}", "without a hint"),
        # of a page
        "status": "answers {}",
        "content_type": ("content type {}", "no content type"),
        "bytes": "{} bytes",
        "sha256": ("hash {}", "no output"),
        "headers": ("{}", "no headers"),
        "allow_origin": ("allows {}", "allows no origin"),
        "location": ("redirects to {}", "redirects nowhere"),
        "text": ('text "{}"', "no text"),
        "canary_executable": ("the sent script runs", "the sent script does not run"),
        "a11y": ("breaks {}", "breaks no rule"),
        "secrets": ("shows a {}", "shows no secret"),
        "private": ("shows the fields {}", "shows no private field"),
        "links": ("links to {}", "no links"),
        "paths": ("names the paths {}", "names no paths"),
        "forms": ("forms: {}", "no forms"),
        "routes": ("names the routes {}", "names no routes"),
        "unjudged": ("not judged: {}", "all of it judged"),
        "p50_ms": "median {} ms",
        "p95_ms": "p95 {} ms",
        "max_ms": "at most {} ms",
        "samples": "{} samples",
        "control_p50_ms": "its control's median {} ms",
        "control_p95_ms": "its control's p95 {} ms",
        "ratio": "{} times its control",
        "samples_ms": "times {}",
        "control_ms": "its control's times {}",
        "ended": ("ends the server", "the server goes on"),
        "locked_out": ("locks its caller out", "locks no caller out"),
        "silent_ms": "silent for {} ms",
        "heard": ("the listener hears {}", "the listener hears nothing"),
        # of a page in a browser
        "final_url": ("ends at {}", "ends nowhere"),
        "title": ('title "{}"', "no title"),
        "fragment": ("a part of a page", "a whole page"),
        "canary_ran": ("the sent script runs", "the sent script does not run"),
        "canary_by": ("shown by {}", "shown by nothing"),
        "canary_at": ("sent script in {}", "sent script nowhere"),
        "console": ("console: {}", "console empty"),
        "exceptions": ("exceptions: {}", "no exceptions"),
        "failed": ("failed requests: {}", "no failed requests"),
        "refused": ("refused requests: {}", "no refused requests"),
        "violations": ("accessibility: {}", "no accessibility violations"),
        "focusable": "{} controls",
        "reached": "{} reached by keyboard",
        "trap": ("traps the keyboard at {}", "no keyboard trap"),
        "requests": "{} requests",
        "calls": ("its scripts ask: {}", "its scripts ask nothing"),
        "screenshot": ("with a screenshot", "no screenshot"),
        "screenshot_bytes": "screenshot of {} bytes",
        "start_ms": "browser started in {} ms",
        # of a call of an agent
        "reply": ('replies "{}"', "replies nothing"),
        "charged": "costs {}",
        "caller": ("taken for {}", "no caller"),
        "tool_calls": ("runs {}", "runs no tool"),
        "finish_reason": ("finish reason {}", "no finish reason"),
        "turns": "takes {} turns",
        "stream_ok": ("whole stream", "broken stream"),
        "stream_error": ("stream: {}", "no stream error"),
        "events": ("events: {}", "no events"),
        "address": ("signed by {}", "not signed"),
        "empty": ("empty reply", "a reply with content"),
        "claimed": ("claims to be {}", "claims no sender"),
        "charged_claimed": "costs the claimed sender {}",
        "status_again": "answers {} the second time",
        "error_again": ('second error "{}"', "no second error"),
        "charged_again": "costs {} the second time",
        "advertised_wei": "advertises {}",
        "terms": ("terms: {}", "no terms"),
        "credit": ("credit of {}", "no credit"),
        "state": ("its task is {}", "no task"),
        "card_status": "its card answers {}",
        "examples": ("its card's examples: {}", "no examples on its card"),
        "card_text": ("its card is signed", "its card is not signed"),
        "card_keys": ("its card's keys are published", "no keys of its card are published"),
        "declares": ("declares {}", "declares nothing"),
        "then_ok": ("serves what follows", "refuses what follows"),
        "then_state": ("then the task is {}", "then no task"),
        "then_code": ("then error {}", "then no error"),
        "unknown_code": (
            "error {} for a task that does not exist",
            "no error for a task that does not exist",
        ),
        "state_after": ("at last the task is {}", "at last no task"),
        # of what is paid for
        "quoted": ("states its terms", "states no terms to pay by"),
        "amount": "asks {} units",
        "payee": ("is paid to {}", "names nobody to pay"),
        "network": ("is paid on {}", "names no network"),
        "asset": ("is paid in {}", "names no token"),
        "resource": ("asks for {}", "names no resource"),
        "body_amount": "asks {} units in its body",
        "inputs": ("takes {}", "takes no parameters"),
        "named": ("takes an identifier", "takes no identifier"),
        "status_paid": "answers {} to the payment",
        "served": "{} answers to the payment",
        "distinct": "{} different answers to the payment",
        "receipt": ("the receipt says {}", "no receipt"),
        "receipt_tx": ("the receipt names {}", "the receipt names no transaction"),
        "receipt_holds": ("its transaction took the payment", "its transaction did not take the payment"),
        "taken": "takes {} units",
        "settled": "{} payments are taken",
        "status_other": "the other resource answers {} without one",
        "status_then": "answers {} after it",
        "served_then": "{} answers after it",
        "same_then": ("answers the same after it", "answers something else after it"),
        "taken_then": "takes {} units after it",
        # of a registration of an agent
        "registry": ("is in {}", "is in no registry"),
        "wallet": ("has the wallet {}", "has no wallet"),
        "uri": ("has its file at {}", "has no URI"),
        "file_read": ("its file is read", "its file is not read"),
        "fault": ("has no registration: {}", "has a registration"),
        "names_back": ("its file names {}", "its file names no agent"),
        "validates": ("is of {} Identity registry", "is of no Identity registry"),
        "validations": ("lists {} validations", "lists no validation"),
        "misplaced": ("lists validations of another agent", "lists no validation of another agent"),
        "services": ("services: {}", "no services"),
        "active": ("says that it is active", "says that it is inactive"),
        "x402": ("says that it takes payments", "says that it takes no payments"),
        # of an MCP server
        "wire": ("speaks {}", "speaks no version"),
        "server": ("is called {}", "has no name"),
        "instructions": ('instructs "{}"', "no instructions"),
        "tools": ("tools: {}", "no tools"),
        "resources": ("resources: {}", "no resources"),
        "templates": ("templates: {}", "no templates"),
        "prompts": ("prompts: {}", "no prompts"),
        "unlisted": ("not listed: {}", "all lists read"),
        "cut": ("more than is kept", "all of it kept"),
        "hidden": ("hidden text in {}", "no hidden text"),
        "secret_at": ("secrets in {}", "no secrets"),
        "protected": ("says that it needs authorisation", "states no authorisation"),
        "structured": ("structured content: {}", "no structured content"),
        "is_error": ("the tool fails", "the tool does not fail"),
        "changed": ("other definitions of {}", "no other definitions"),
        "asks_input": ("asks for input", "asks for no input"),
        "handed": ("hands out {}", "hands out nothing"),
        "foreign": ("{}", "no handle was shown"),
        "listed": ("listed for {}", "no list was asked"),
        "stalled": ("stops the server for a while", "the server goes on"),
        "hung": ("has no answer in time", "is answered in time"),
        # of a compiler, and of a search on one
        "outcome": ("ends in {}", "does not end"),
        "exit_code": "exit status {}",
        "size": "{} bytes",
        "entry": ("entry point {}", "no entry point"),
        "has_entry": ("an entry point", "no entry point"),
        "valid": ("valid module", "invalid module"),
        "span_start": "error from byte {}",
        "span_end": "error to byte {}",
        "cpu_ms": "{} ms of processor time",
        "control_cpu_ms": "its control {} ms of processor time",
        "kind": ("judged {}", "not judged"),
        "said": ('says "{}"', "says nothing"),
        "place": ("at {}", "place unknown"),
        "behaviour": ("behaviour {}", "no behaviour"),
        "runner": ("runner {}", "no runner"),
        "stopped": ("stopped by {}", "not stopped"),
        "executions": "{} executions",
        "accepted": "{} accepted",
        "lost": "{} lost",
        "shrinking": "{} spent on shrinking",
        "behaviours": "{} new behaviours",
        "unstable": "{} unstable",
        "seeds_done": "{} seeds done",
        "seconds": "{} s",
        "cpu_s": "{} s of processor time",
        "defects": ("defects: {}", "no defects"),
        "corpus": ("new inputs: {}", "no new inputs"),
        # of the chain
        "value": ("value {}", "no value"),
        "block": "at block {}",
        "how": ("by {}", "by no way known"),
        "by": ("called by {}", "no caller"),
        "succeeded": ("the call succeeds", "the call reverts"),
        "reverted": ('reverts with "{}"', "does not revert"),
        "returned": ("returns {}", "returns nothing"),
        "before": ("before: {}", "nothing before"),
        "after": ("after: {}", "nothing after"),
        "gas_used": "uses {} gas",
        "gas_estimate": "estimated at {} gas",
        "gas_quote": "quoted at {} gas",
        "gas_limit": "limited to {} gas",
        "tx": ("transaction {}", "no transaction"),
        "name": ("name {}", "no name"),
        "owner": ("owned by {}", "no owner"),
        "agent_id": "id {}",
        "main_unset": ("no main name", "a main name"),
        "published": ("published", "not published"),
        "code": ("code {}", "no code"),
        "app_read_back": ("the app reads back", "the app does not read back"),
        "face_read_back": ("the face reads back", "the face does not read back"),
        "index": "entry {}",
        "read_back": ("reads back", "does not read back"),
        # of a row of requests by accounts
        "answers": ("answers: {}", "no answers"),
        "brief": ("tokens end soon", "tokens do not end soon"),
        "endless": ("tokens state no end", "tokens state their end"),
        "start": ("accounts made with {}", "accounts made as asked"),
        "remains": ("still there: {}", "nothing left there"),
    }
)
"""By field: the words around its value; of a yes or no, and of what may be empty, the words of each case."""


def in_words(field: str, value: object) -> str:
    """A field with its value."""
    words = FIELD_WORDS.get(field, field.replace("_", " ") + " {}")
    filled, empty = words if isinstance(words, tuple) else (words, words)
    if isinstance(value, bool):
        return (filled if value else empty).format(shown(value))
    if value is None or value in ("", [], (), {}):
        return empty.format("none")
    if field in _IN_WEI and str(value).isascii() and str(value).isdecimal():
        return filled.format(amount(int(str(value))))
    text = shown(value)
    return filled.format(text.replace("-", " ") if field == "secrets" else text)


def shown(value: object) -> str:
    """A value without the spelling of a language; a number of more than twelve digits in short."""
    if value is None or value in ("", [], (), {}):
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        size = abs(value)
        whole = isinstance(value, int) or size >= 1000
        return f"{value:.3g}".replace("e+", "e") if size >= 10**13 or not whole else f"{value:.0f}"
    if isinstance(value, list | tuple):
        if any(isinstance(one, Mapping | list | tuple) for one in value):
            return str(len(value))
        first = value if len(value) <= FEW else value[: FEW - 1]
        return ", ".join(map(shown, first)) + (
            f" and {len(value) - len(first)} more" if value != first else ""
        )
    if isinstance(value, Mapping):
        return counted(len(value), "field")
    return line(str(value), VALUE_CHARS)


def amount(wei: int) -> str:
    """A price, in credits unless it is a few wei."""
    return f"{wei / CREDIT:.6g} credits" if wei >= 10**12 else f"{wei} wei"
