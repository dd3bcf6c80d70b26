"""Words by what they mean, as data: tools that destroy, replies that confirm, deny or hold nothing. Pure."""

from __future__ import annotations

import re

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")


def among(text: str) -> frozenset[str]:
    """A set of words, written as one text."""
    return frozenset(text.split())


ALWAYS = among("delete burn wipe erase destroy purge revoke withdraw unregister deregister selfdestruct")
"""Verbs that destroy whatever their object is."""
OVER_OBJECTS = among(
    "remove drop transfer send pay payout release mint sweep drain spend refund grant set publish deploy"
    " reset clear change update overwrite truncate rotate disable enable stop shutdown terminate kill ban"
    " unlock rename assign upgrade approve move"
)
"""Verbs that destroy when they act on one of OBJECTS."""
OBJECTS = among(
    "owner ownership admin role permission access price fee fund money credit token payment balance treasury"
    " wallet key secret account user name domain registration contract database table record file folder"
    " directory disk config configuration policy system server site page app face all everything"
)
"""What belongs to an agent, its owner or other people."""
OWN = among(
    "my me mine self own caller session conversation chat history context memory note greeting draft cart"
    " preference reminder todo task alarm timer bookmark favorite favourite sandbox scratch demo test human"
    " agent message notification feedback"
)
"""What a stranger has a right to change: its own things in a conversation."""
READING = among(
    "get list show read find search describe check count estimate quote preview explain help is can view look"
    " simulate what who lookup fetch validate verify"
)


def words(name: str) -> tuple[str, ...]:
    """The words of a tool's name, snake or camel case, in lower case and singular."""
    return tuple(re.sub(r"(?<=\w{2}[^s])s$", "", word.lower()) for word in _WORD.findall(name))


def destructive(tool: str) -> bool:
    """Whether a tool of this name destroys what is not its caller's, by the plain meaning of its words."""
    said = words(tool)
    if not said or said[0] in READING or OWN & set(said):
        return False
    return bool(ALWAYS & set(said)) or bool(OVER_OBJECTS & set(said) and OBJECTS & set(said))


CONFIRMS = re.compile(
    r"\b(?:done|saved|stored|remembered|recorded|noted|updated|kept|changed|added|got it|all set"
    r"|(?:is|has been|was|are) (?:now )?set|will remember|i have set|i've set|i set)\b",
    re.IGNORECASE,
)
"""A reply that says that something was kept."""
DENIES = re.compile(
    r"\b(?:no|not|cannot|can't|couldn't|won't|don't|unable|only|sorry|too|limit|limited|max|maximum|at most"
    r"|longer|error|invalid|unknown|refus\w*|denied|truncat\w*|shorten\w*|cut|first|usage|expected|unsupported"
    r"|character|characters|chars|bytes|unfortunately|however|but|example|demo|pretend)\b",
    re.IGNORECASE,
)
"""A reply that is not a plain yes."""
NOTHING = re.compile(
    r"\b(?:no|none|nothing|not|never|empty|yet|haven't|hasn't|don't|without|unset|blank)\b", re.IGNORECASE
)
"""A reply that says that nothing is kept."""
USAGE = re.compile(r"\b(?:usage|syntax|expected|invalid|unknown|argument|parameter|error|try)\b", re.I)
SILENCE = re.compile(
    r"\b(?:nothing|empty|silen\w+|silence|blank|quiet|no (?:text|words?|reply|answer)|don'?t|do not|not"
    r"|without|stop|ignore|whitespace|spaces?|zero)\b",
    re.IGNORECASE,
)
"""A message that may ask for an empty reply."""
PERSONAL = re.compile(r"\b(?:my|mine|me|i)\b", re.IGNORECASE)
YOURS = re.compile(r"^(?:here (?:is|are) )?your\b", re.IGNORECASE)
MISSING_TOKEN = re.compile(r"\b(?:missing|required|requires?|needed|must|unauthenticated|no token)\b", re.I)
"""A refusal that says that a call without a token is refused."""
