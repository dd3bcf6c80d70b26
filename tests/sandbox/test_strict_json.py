"""What the reader of strangers' JSON refuses; everything that it takes reads as `json.loads` reads it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.strict_json import MAX_DIGITS, MAX_FLOAT, loads

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**256) + 1, 2**256 - 1)
    | st.text()
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


@given(PLAIN)
def test_what_is_plain_is_read_as_it_was_written(value: object) -> None:
    text = json.dumps(value)
    assert loads(text) == loads(text.encode()) == json.loads(text)


@pytest.mark.parametrize(
    "text",
    [
        "1e999",
        "-1e999",
        "[1e400]",
        '{"a": [0.0, 1E309]}',
        "NaN",
        "Infinity",
        '{"a": -Infinity}',
        "9" * (MAX_DIGITS + 1),
        "-" + "9" * (MAX_DIGITS + 1),
        "9" * 4_000,
        "9" * 5_000,
        "0." + "0" * MAX_FLOAT + "1",
        "1." + "0" * 4_000,
        "",
        "{",
        "[1,]",
        "[" * 100_000,
        '{"a":' * 100_000,
        "\ufeff1",
    ],
)
def test_what_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        loads(text)


@pytest.mark.parametrize("raw", [b"\xff\xfe{", b'"\xed\xa0\x80"', "{}".encode("utf-16")])
def test_bytes_are_utf_8(raw: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        loads(raw)


def test_the_longest_that_is_taken() -> None:
    assert loads(str(2**256 - 1)) == 2**256 - 1
    assert loads(str(-(2**255))) == -(2**255)
    assert loads("1e308") == 1e308
    assert loads(b"\xef\xbb\xbf{}") == {}


@pytest.mark.parametrize("text", ["[1, [2, 3]]", '{"a": {"b": 1, "c": [0]}}', "[[], [], [], []]"])
def test_members_are_counted_at_every_depth(text: str) -> None:
    assert loads(text, values=4) == json.loads(text)
    with pytest.raises(ValueError, match="more than 3 values"):
        loads(text, values=3)


def test_repeated_keys_are_the_callers_to_judge() -> None:
    assert loads('{"a": 1, "a": 2}', pairs=list) == [("a", 1), ("a", 2)]


def test_a_library_that_raised_the_recursion_limit_does_not_let_a_stranger_end_the_process() -> None:
    """eth-account and web3 do it at their import: CPython 3.11 then dies of a deep document."""
    code = (
        "import sys; sys.setrecursionlimit(100_000)\n"
        "from sandbox import strict_json\n"
        "try: strict_json.loads('[' * 1_000_000)\n"
        "except ValueError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "nested too deeply")
