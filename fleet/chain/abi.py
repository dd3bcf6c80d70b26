"""Every function, error, event and metadata key of the platform that the fleet knows (facts 1.3-1.4).

Selectors are written out, so that they can be searched for; a test recomputes each from its signature.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fleet.chain import codec


@dataclass(frozen=True, slots=True)
class Function:
    """One contract function; `writes` is false for views."""

    name: str
    selector: bytes
    inputs: tuple[str, ...]
    outputs: tuple[str, ...] = ()
    writes: bool = False

    @property
    def signature(self) -> str:
        return f"{self.name}({','.join(self.inputs)})"

    def encode(self, *args: Any) -> bytes:
        """Calldata: selector and arguments; ValueError or TypeError when an argument does not fit."""
        if codec.flat(self.inputs):
            return self.selector + codec.encode(self.inputs, args)
        from eth_abi.abi import encode  # 0.2-0.4 s to import: only arrays and tuples need it

        return self.selector + encode(self.inputs, args)

    def decode(self, data: bytes) -> tuple[Any, ...]:
        """The values of an answer; codec.Malformed when it is not one."""
        if codec.flat(self.outputs):
            return codec.decode(self.outputs, data)
        from eth_abi.abi import decode  # as above

        try:
            return tuple(decode(self.outputs, data))
        except Exception as error:  # eth_abi raises its own tree, OverflowError and UnicodeDecodeError alike
            raise codec.Malformed(f"{self.name}: {type(error).__name__}") from None


def _view(name: str, selector: str, inputs: str = "", outputs: str = "uint256") -> Function:
    return Function(name, bytes.fromhex(selector), _types(inputs), _types(outputs))


def _write(name: str, selector: str, inputs: str = "", outputs: str = "") -> Function:
    return Function(name, bytes.fromhex(selector), _types(inputs), _types(outputs), writes=True)


def _types(text: str) -> tuple[str, ...]:
    return tuple(text.split())


CUT = "(address,uint8,bytes4[])[]"

TABLE: tuple[Function, ...] = (
    # feedback log
    _write("submitFeedback", "e341a623", "string"),
    _view("feedbackCount", "2ed3f65b"),
    _view("feedbackAt", "5274f07a", "uint256", "address uint64 string"),
    _view("feedbackRange", "cd1f7306", "uint256 uint256", "address[] uint64[] string[]"),
    _write("clearFeedback", "ac8063ff"),
    # registry
    _write("register", "f2c298be", "string", "uint256"),
    _view("isTaken", "258adde2", "string", "bool"),
    _view("ownerOfName", "7f873749", "string", "address"),
    _view("ownerOfId", "c322ecfc", "uint256", "address"),
    _view("idOfName", "127c388a", "string"),
    _view("nameOfId", "8a3e6c1c", "uint256", "string"),
    _view("idOf", "d94fe832", "address"),
    _view("nextId", "61b8ce8c"),
    _write("setMetadata", "a0bd575b", "uint256 bytes32 bytes"),
    _view("metadata", "a575f120", "uint256 bytes32", "bytes"),
    _view("registrationCost", "dc4a7f7f"),
    _write("setRegistrationCost", "637e9d5c", "uint256"),
    _view("treasuryBalance", "313dab20"),
    _write("withdrawTreasury", "0d86419a", "address uint256"),
    # release
    _write("releaseName", "48e69e68", "uint256"),
    _write("adminBurnNames", "74223f6d", "uint256[]"),
    _write("adminResetAll", "12597def"),
    # main identity
    _write("registerMain", "cb5e0a4e", "uint256"),
    _write("clearMain", "6ba5ca16"),
    _view("mainOf", "e8f7b638", "address"),
    _view("mainNameOf", "a0297a25", "address", "string"),
    _view("isMain", "30c2d1dd", "uint256", "bool"),
    _view("mainCost", "b4c3b213"),
    _write("setMainCost", "b746033c", "uint256"),
    # loupe, ownership, cut
    _view("facets", "7a0ed627", "", "(address,bytes4[])[]"),
    _view("facetFunctionSelectors", "adfca15e", "address", "bytes4[]"),
    _view("facetAddresses", "52ef6b2c", "", "address[]"),
    _view("facetAddress", "cdffacc6", "bytes4", "address"),
    _view("supportsInterface", "01ffc9a7", "bytes4", "bool"),
    _view("owner", "8da5cb5b", "", "address"),
    _write("transferOwnership", "f2fde38b", "address"),
    _write("diamondCut", "1f931c1c", f"{CUT} address bytes"),
    # money and neighbours
    _write("approve", "095ea7b3", "address uint256", "bool"),
    _write("transfer", "a9059cbb", "address uint256", "bool"),
    _write("depositCredits", "d567c752", "uint256"),
    _view("creditOf", "75807250", "address"),
    _write("meter", "88962a60", "address uint256"),
    _write("redeem", "1222c25a", "string"),
    _write("claimDaily", "89934d3a"),
    _write("openSession", "f8635ece"),
    _view("sessionExpiryOf", "05218aaa", "address"),
    _view("tokenBoundAccount", "0be76ed6", "uint256", "address"),
    _view("tokenBoundAccountByName", "20c9cb0a", "string", "address"),
    _view("ownerOf", "6352211e", "uint256", "address"),
    _view("balanceOf", "70a08231", "address"),
    _view("tokenURI", "c87b56dd", "uint256", "string"),
)

FUNCTIONS: dict[str, Function] = {function.name: function for function in TABLE}
BY_SELECTOR: dict[bytes, Function] = {function.selector: function for function in TABLE}

ERRORS: dict[bytes, tuple[str, tuple[str, ...]]] = {
    bytes.fromhex(selector): (name, _types(inputs))
    for selector, name, inputs in (
        ("08c379a0", "Error", "string"),
        ("4e487b71", "Panic", "uint256"),
        ("4c806526", "EmptyFeedback", ""),
        ("a8fe583b", "FeedbackTooLong", "uint256"),
        ("7f19f48d", "InvalidName", "string"),
        ("30cd7471", "NotOwner", ""),
        ("b9c08761", "NotOwner", "uint256 address"),
        ("9eee17ad", "CannotReleaseMain", ""),
        ("8c9e2391", "CannotReleaseGuild", ""),
        ("0ed9cff4", "UnknownToken", "uint256"),
        ("a931601b", "NotMeter", ""),
        ("43fb9453", "InsufficientCredits", ""),
        ("d311bc39", "NotConfigured", ""),
        ("6606a462", "InvalidCode", ""),
        ("f06fe0f5", "CodeAlreadyUsed", ""),
    )
}

REGISTERED = "0xc118700a4fa70d79a8f1df06b1d2ff9aeaf09bdc4c528a45ddd5182856864594"
"""topic0 of `Registered(uint256 indexed agentId, address indexed owner, string name)`."""
FEEDBACK_SUBMITTED = "0xc7e666f164da054d2ca2bd712fb261158473066d414c8cfc33a1b9c7df775fe7"
"""topic0 of `FeedbackSubmitted(address indexed sender, uint256 timestamp, string text)`."""
FEEDBACK_CLEARED = "0xd152b1cd3646070da50e66ed2a625bd222cc2516cd14779b3fb4c1a9aef9d091"
"""topic0 of `FeedbackCleared(uint256 cleared)`."""


def describe_revert(data: bytes) -> str:
    """`InvalidName("x")`, the bare text of `Error(string)`, `Panic(0x11)`, or "" when there is no reason."""
    if len(data) < 4:
        return ""
    name, inputs = ERRORS.get(data[:4], (f"unknown error 0x{data[:4].hex()}", ()))
    try:
        values = codec.decode(inputs, data[4:])
    except codec.Malformed:
        return name
    if name == "Error":
        return str(values[0])[:200]
    if name == "Panic":
        return f"Panic({values[0]:#x})"
    return f"{name}({', '.join(str(value)[:80] for value in values)})"
