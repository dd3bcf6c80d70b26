"""A dictionary of widely used functions by selector, and what a view's name says of its value. Pure.

Standards and the platform's own surface are listed; settings and roles are made from common words, because
`setRelayFee(uint256)` on an unknown contract is still a setter of a fee.
"""

from __future__ import annotations

import re
import tomllib
from functools import lru_cache
from pathlib import Path

from fleet.chain.node.abi import TABLE
from fleet.chain.node.digest import keccak256

_DATA = Path(__file__).with_suffix(".toml")
_VERBS = ("set", "update")
_KINDS = ("(uint256)", "(address)", "(bool)", "(string)", "(uint64)", "(uint128)", "(uint96)", "(uint16)")

ROLE = re.compile(
    r"(?:pending|get|new)?(?:owner|admin|governor|guardian|operator|treasury|feerecipient|feecollector|feereceiver"
    r"|pauser|minter|meter|relayer|signer|implementation|controller|manager|beneficiary|wallet|vault|sponsor|verifier"
    r"|registrar|paymenttoken|\w+(?:recipient|receiver|owner|admin|operator))(?:address)?",
    re.IGNORECASE,
)
SETTING = re.compile(
    r"(?:get)?(?:(?:max|min)[A-Z]\w*|(?:\w+)?(?:Cost|Price|Fees?|Bps|Limit|Cap|Rate|Quota|Period|Duration|Interval"
    r"|Window|Threshold|Delay)|cost|price|fees?|limit|cap|rate|quota|threshold)"
)
COUNT = re.compile(
    r"(?!active|pending|open|queue|available|remaining|free)(?:\w+Count|next\w*Id|total[A-Z]\w*)"
)
FUNDS = re.compile(
    r"(?:treasury|reserve|vault|fee|pot|contract)s?(?:Balance|Funds)?|(?:total)?(?:Fees|Deposits)"
)
LENGTH = re.compile(r"max\w*(?:Length|Bytes|Size)|\w+(?:LengthLimit|SizeLimit|ByteLimit)")
SETTER = re.compile(
    r"(?:set|update|change|configure|admin|force)[A-Z]\w*|(?:un)?pause|initiali[sz]e|init|reset\w*"
)


def selector_of(signature: str) -> str:
    """The selector of a canonical signature."""
    return "0x" + keccak256(signature.encode())[:4].hex()


def signature_of(selector: str) -> str:
    """The signature that a selector most likely is of; "" for an unknown one."""
    return _dictionary().get(selector, ("", False))[0]


def is_view(selector: str) -> bool:
    """Whether the dictionary knows it as a view."""
    return _dictionary().get(selector, ("", False))[1]


def spoken(selector: str) -> str:
    """A function in a title: its name, or its selector if nothing is known of it."""
    name = signature_of(selector).partition("(")[0]
    return f"{name}()" if name else selector


@lru_cache(maxsize=1)
def _dictionary() -> dict[str, tuple[str, bool]]:
    """Signature and whether it is a view, by selector; what is listed wins over what is made."""
    words = {key: text.split() for key, text in tomllib.loads(_DATA.read_text("utf-8")).items()}
    alone, paid = words["alone"], ("()", "(address)", "(address,uint256)")
    nouns = [*alone, *(of + what for of in words["of"] for what in words["what"])]
    made = {f"{noun[0].lower()}{noun[1:]}()": True for noun in nouns}
    made |= {f"get{noun}()": True for noun in nouns}
    made |= {f"{verb}{noun}{kind}": False for verb in _VERBS for noun in nouns for kind in _KINDS[:3]}
    made |= {f"set{noun}{kind}": False for noun in alone for kind in _KINDS[3:]}
    made |= {f"withdraw{noun}{kind}": False for noun in alone for kind in paid}
    said = ("(string)", "(uint256,string)", "(address,string)")
    made |= {f"{v}{noun}{kind}": False for v in words["say"] for noun in words["text"] for kind in said}
    made |= dict.fromkeys(words["writes"], False) | dict.fromkeys(words["reads"], True)
    made |= {function.signature: not function.writes for function in TABLE}
    return {selector_of(signature): (signature, view) for signature, view in made.items()}
