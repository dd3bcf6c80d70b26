"""What the interpreter in a jail needs, and where it lies there."""

from __future__ import annotations

from pathlib import Path

import pytest

from fleet.errors import JailError
from fleet.jail.locate import loaded_library, seen_inside

MAPS = """\
55d1-55d2 r--p 00000000 08:01 12 /home/a b/py/bin/python3.13
7f00-7f01 r--p 00000000 08:01 13                         /home/a b/py/lib/libpython3.13.so.1.0
7f02-7f03 rw-p 00000000 00:00 0                          [heap]
"""


def test_the_library_of_this_process_is_read_from_its_map() -> None:
    assert loaded_library(MAPS) == Path("/home/a b/py/lib/libpython3.13.so.1.0")
    assert loaded_library("55d1-55d2 r--p 0 08:01 12 /usr/bin/python3.11\n") is None


@pytest.mark.parametrize(
    ("library", "prefix", "inside"),
    [
        (None, None, ""),
        (None, "/home/a/py", ""),
        ("/home/a/py/lib/libpython3.13.so.1.0", "/home/a/py", "/opt/py/lib"),
        ("/home/a/py/lib64/sub/libpython3.13.so.1.0", "/home/a/py", "/opt/py/lib64/sub"),
        ("/usr/local/lib/libpython3.13.so.1.0", None, "/usr/local/lib"),  # only the host's cache knows it
        ("/usr/lib/libpython3.12.so.1.0", "/srv/py", "/usr/lib"),
    ],
)
def test_the_library_is_named_where_the_jail_has_it(
    library: str | None, prefix: str | None, inside: str
) -> None:
    assert seen_inside(Path(library) if library else None, Path(prefix) if prefix else None) == inside


def test_a_library_that_no_jail_sees_is_refused() -> None:
    with pytest.raises(JailError, match=r"/srv/lib/libpython3\.13\.so"):
        seen_inside(Path("/srv/lib/libpython3.13.so"), Path("/home/a/py"))
