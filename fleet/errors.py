"""Every error the fleet raises on purpose.

    FleetError                      message, remedy, exit code, retryable
    ├── UsageError        exit 2    the command line asks for something that does not exist
    ├── ConfigError       exit 3    a file of ours is wrong: names file, key, remedy
    │   └── PersonaError            a persona file is wrong: file, line, key
    ├── Unreachable       exit 4    a chain, a platform or a compiler did not answer (retryable)
    │   ├── WrongTarget             it answered, but it is not what the profile describes (not retryable)
    │   └── NodeBusy                the node refused each attempt for a reason of its own: a limit, a lag
    ├── Refused           exit 5    dial, gate, signer or broker refused
    │   └── BudgetExceeded          the fence in front of spending
    ├── TryAgain          exit 75   another daemon holds the lock, a lease is live, a disk is full
    ├── LostRun           exit 75   a peer owns this run now: this process records nothing about it
    ├── FixError          exit 1    a repository, a patch or a tracker did not do what a proposal needs
    │   └── PatchRefused  exit 5    a patch outside the limits: paths, sizes, kinds of files
    ├── JailError         exit 4    no jail works here, or a jail broke: never an answer about the platform
    └── ChainError                  a transaction or a call did not do what it should
        ├── RpcError                the node answered with a JSON-RPC error
        │   └── Unfunded            a key of ours cannot pay: never an answer about the platform
        └── TxFailed                receipt status 0, out of gas, or the read-back disagrees

Foreign exceptions are translated at the seam of the room that imports the library that raises them.
"""

from __future__ import annotations


class FleetError(Exception):
    """An expected failure: `str(e)` is one line for a person, `remedy` says what to do about it."""

    exit_code = 1
    retryable = False

    def __init__(self, message: str, *, remedy: str = "") -> None:
        super().__init__(message)
        self.remedy = remedy


class UsageError(FleetError):
    exit_code = 2


class ConfigError(FleetError):
    """A file of ours is wrong; the message names the file and the key."""

    exit_code = 3


class PersonaError(ConfigError):
    """A persona file is wrong; `line` and `column` are 1-based, 0 when none can be named.

    `others` are the file's further errors; the first one is the likely cause.
    """

    def __init__(
        self, message: str, *, file: str, line: int = 0, column: int = 0, key: str = "", remedy: str = ""
    ) -> None:
        where = ":".join([file, *(str(number) for number in (line, column) if number)])
        super().__init__(f"{where}: {key + ': ' if key else ''}{message}", remedy=remedy)
        self.file, self.line, self.column, self.key, self.reason = file, line, column, key, message
        self.others: tuple[PersonaError, ...] = ()

    def __str__(self) -> str:
        more = f" (and {len(self.others)} more)" if self.others else ""
        return f"{super().__str__()}{more}"


class Unreachable(FleetError):
    exit_code = 4
    retryable = True
    how = ""
    """How it failed to answer (unanswered.py); "" when an answer came but was unusable."""


class WrongTarget(Unreachable):
    """The thing at that address is not what the profile says: wrong chain id, no code, no such view."""

    retryable = False


class NodeBusy(Unreachable):
    """The node refused for a reason of its own until the patience of the request ended; never a statement
    about the platform. `asked_s`: the pause that it asked for, in seconds."""

    asked_s = 0.0


class Refused(FleetError):
    """A fence refused. `rule` is the machine-readable name of the rule."""

    exit_code = 5

    def __init__(self, message: str, *, rule: str, remedy: str = "") -> None:
        super().__init__(message, remedy=remedy)
        self.rule = rule


class BudgetExceeded(Refused):
    def __init__(self, message: str, *, rule: str = "budget", remedy: str = "") -> None:
        super().__init__(message, rule=rule, remedy=remedy)


class TryAgain(FleetError):
    exit_code = 75
    retryable = True


class LostRun(FleetError):
    """A peer presumed this process dead and took over the run: abandon it and record nothing."""

    exit_code = 75


class JailError(FleetError):
    exit_code = 4


class ChainError(FleetError):
    exit_code = 4


class RpcError(ChainError):
    """The node's own JSON-RPC error object."""

    def __init__(self, message: str, *, code: int = 0, data: str = "") -> None:
        super().__init__(message)
        self.code, self.data = code, data


class Unfunded(RpcError):
    """A key of ours cannot pay; the message names it. Never a statement about the platform."""


class TxFailed(ChainError):
    """`kind` is one of `reverted`, `oog`, `not_mined`, `read_back`; `tx` the hash if one was sent."""

    def __init__(self, message: str, *, kind: str, tx: str = "", gas_used: int = 0) -> None:
        super().__init__(message)
        self.kind, self.tx, self.gas_used = kind, tx, gas_used


class FixError(FleetError):
    """A repository, a patch or a tracker did not do what a proposal needs; names which."""


class PatchRefused(FixError):
    """A patch is outside the limits of a proposal. `rule` is the machine-readable name of the limit."""

    exit_code = 5

    def __init__(self, message: str, *, rule: str, remedy: str = "") -> None:
        super().__init__(message, remedy=remedy)
        self.rule = rule
