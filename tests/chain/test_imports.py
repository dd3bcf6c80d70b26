"""web3 takes 0.7 s and 40 MB to import: a command that does not touch the chain does not pay for it."""

from __future__ import annotations

import os
import subprocess
import sys
from ast import literal_eval
from pathlib import Path

import pytest

from fleet.triage.outputs.document import LogPosition, WorklistHeader
from fleet.triage.outputs.files import save
from tests.cli.test_worklist_command import own
from tests.e2e.test_log_list import PROFILE, Node, serving

FIRST = "1970-01-01T00:00:01Z"
"""When the entries of that node were written."""
COMMANDS = {
    "--help": 0,
    "version": 0,
    "status": 0,
    "dial": 0,
    "worklist": 4,  # no log was read
    "personas check": 0,
    "personas list": 0,
    "runs list": 0,
    "findings list": 0,
    "proposals list": 0,
    "runs prune --help": 0,
    "config check": 2,  # there is no devnet yet
}
"""With their exit codes in an empty state directory."""
HEAVY = ("web3", "eth_account", "eth_abi", "fleet.chain.node.provider")
PROGRAM = """
import sys
from fleet.cli import main
sys.argv = ["fleet", *{words!r}]
try:
    main()
finally:
    print("\\nheavy:", *(name for name in {heavy!r} if name in sys.modules), file=sys.stderr)
"""


def test_a_command_that_does_not_touch_the_chain_imports_no_web3(tmp_path: Path) -> None:
    """All in one process, one after another: what none of them imports is not there after the last."""
    program = f"""
import sys
from fleet.cli import main
for words in {list(COMMANDS)!r}:
    sys.argv = ["fleet", *words.split()]
    try:
        main()
        code = 0
    except SystemExit as end:
        code = end.code or 0
    print("\\nran:", repr((words, code, [name for name in {HEAVY!r} if name in sys.modules])))
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"STATE_DIRECTORY": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    ran = [
        literal_eval(line.removeprefix("ran: "))
        for line in done.stdout.splitlines()
        if line.startswith("ran: ")
    ]
    assert ran == [(words, code, []) for words, code in COMMANDS.items()], done.stderr


def test_no_command_imports_web3_before_it_is_asked_for_the_chain() -> None:
    program = (
        "import sys, typer; from fleet.cli import app;"
        "[one.loaded() for one in typer.main.get_command(app).commands.values()];"
        f"print([name for name in {(*HEAVY, 'httpx', 'celpy')!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("command", ["items", f"items show {'a' * 12}"])
def test_a_list_that_is_current_is_shown_without_web3(command: str, tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    node = Node(2, lambda start, count: count)
    save(
        tmp_path, [own(1, "a finding", fingerprint="a" * 12)], WorklistHeader(as_of=LogPosition(0, 2, FIRST))
    )
    (tmp_path / "devnet").mkdir()
    with serving(node) as url:
        (tmp_path / "devnet" / "liar.toml").write_text(PROFILE.format(url=url))
        program = PROGRAM.format(words=command.split(), heavy=HEAVY)
        environment = os.environ | {"STATE_DIRECTORY": str(tmp_path), "QA_FLEET_PLATFORM": "liar"}
        done = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=100
        )
    assert (done.returncode, done.stderr.strip()) == (0, "heavy:")
    assert "a finding" in done.stdout
    assert node.asked == ([(1, 1)] if command == "items" else [])


def test_a_client_of_a_node_does() -> None:
    program = (
        "import sys; from fleet.chain.node.rpc import Rpc; Rpc('http://x').w3;"
        f"print([name in sys.modules for name in {HEAVY!r}])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[True, True, True, True]"


DEEP = """
import sys
from pathlib import Path
from fleet.chain.node import codec
from fleet.chain.keys import fresh, load_key
from fleet.chain.node.rpc import Rpc
from fleet.chain.signing.tx import UnsignedTx, parse, sign
from fleet.errors import ConfigError
from sandbox import strict_json

acts = {
    "client": lambda: Rpc("http://x"),
    "codec": lambda: codec.encode(["string"], ["x"]),
    "transaction": lambda: parse(sign(UnsignedTx(
        chain_id=1, nonce=0, tip=0, max_fee=1, gas=21_000, to="0x" + "11" * 20), fresh()).raw),
    "keystore": lambda: load_key(Path(sys.argv[2])),
}
limit = sys.getrecursionlimit()
try:
    acts[sys.argv[1]]()
except ConfigError as error:
    assert "does not open" in str(error), error
assert sys.getrecursionlimit() == limit, sys.getrecursionlimit()
try:
    strict_json.loads("[" * 90_000)
except ValueError as error:
    print(error)
"""


@pytest.mark.parametrize("act", ["client", "codec", "transaction", "keystore"])
def test_json_that_nests_too_deep_does_not_end_the_process(act: str, tmp_path: Path) -> None:
    """py_ecc, which these bring, raises the limit of recursion to what the C parser's stack cannot hold."""
    for name, content in (("key", "{}"), ("key.password", "x")):
        (tmp_path / name).write_text(content)
        (tmp_path / name).chmod(0o600)
    words = [sys.executable, "-c", DEEP, act, str(tmp_path / "key")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=100, check=False)
    assert (done.returncode, done.stdout) == (0, "nested too deeply\n"), done.stderr
