"""A program that could not be started is our trouble, never an outcome of the platform's compiler."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from fleet.drivers.session import OUR_FAILURES
from sandbox.errors import CLASSES, Failure
from sandbox.programs import process
from sandbox.programs.process import Ending
from sandbox.programs.starts import not_started
from tests.sandbox.doubles import bench
from tests.sandbox.test_process import python

ROOT = Path(__file__).parents[2]


def shell(script: str) -> tuple[str, ...]:
    return ("/bin/sh", "-c", script)


@pytest.mark.parametrize(
    ("argv", "why"),
    [
        (("/nowhere/compiler",), "No such file"),
        (("/etc/passwd",), "Permission denied"),
        (("/usr",), "Permission denied"),
        (shell("exit 127"), "status 127"),
        (shell("exit 126"), "status 126"),
        (shell("nowhere-compiler"), "not found"),
        (shell("/etc/passwd"), "Permission denied"),
        (("/usr/bin/env", "nowhere-compiler"), "No such file"),
        ((sys.executable, "/nowhere/compiler.py"), "can't open file"),
        ((sys.executable, "-m", "nowhere_compiler"), "No module named"),
        (python("os.kill(os.getpid(), signal.SIGSYS)"), "system call"),
    ],
)
def test_what_cannot_be_started_is_no_ending(argv: tuple[str, ...], why: str) -> None:
    with pytest.raises(Failure, match=why) as failure:
        process.run(argv, b"", 10)
    assert failure.value.error_class == "cannot_start"


@pytest.mark.parametrize(
    ("code", "stderr"),
    [
        (
            127,
            "/opt/tc/c: error while loading shared libraries: libx.so.1: cannot open shared object file: No",
        ),
        (
            1,
            "/opt/tc/c: /lib/libc.so.6: version `GLIBC_2.38' not found (required by /opt/tc/c)",
        ),
        (127, "/opt/tc/c: symbol lookup error: /usr/lib/libx.so: undefined symbol: y"),
        (127, "Error loading shared library libx.so: No such file or directory (needed by /opt/tc/c)"),
        (
            1,
            "Traceback\nImportError: libx.so: cannot open shared object file: No such file",
        ),
        (
            1,
            "Fatal Python error: init_fs_encoding: failed to get the Python codec of the filesystem encoding",
        ),
        (2, "sh: 1: Cannot fork"),
        (1, "RuntimeError: can't start new thread"),
    ],
)
def test_a_loader_says_so_in_its_own_words(code: int, stderr: str) -> None:
    assert not_started(("/opt/tc/c",), code, stderr.encode()) != ""


@pytest.mark.parametrize(
    ("code", "stderr"),
    [
        (1, "LH0204: unknown name [3..9]"),
        (1, "No module named `std` [3..9]"),  # a compiler's own words about a source
        (101, "thread 'main' panicked at src/parse.rs:3:5: index out of bounds"),
        (2, ""),
        (-11, ""),
        (0, "/opt/tc/c: error while loading shared libraries: of another program"),
    ],
)
def test_what_a_compiler_says_is_its_own(code: int, stderr: str) -> None:
    assert not_started(("/opt/tc/c",), code, stderr.encode()) == ""


def test_a_library_that_is_not_there(tmp_path: Path) -> None:
    """A real one: this interpreter beside a library that nothing can find."""
    shared = shutil.which("cc")
    if shared is None:
        pytest.skip("there is no C compiler here to link a program against a library")
    (tmp_path / "x.c").write_text("int x(void) { return 0; }")
    (tmp_path / "main.c").write_text("int x(void); int main(void) { return x(); }")
    library, program = tmp_path / "libqa.so", tmp_path / "compiler"
    subprocess.run([shared, "-shared", "-fPIC", "-o", library, tmp_path / "x.c"], check=True)
    subprocess.run([shared, "-o", program, tmp_path / "main.c", library], check=True)
    assert process.run((str(program),), b"", 10).ending is Ending.ACCEPTED
    library.unlink()
    with pytest.raises(Failure, match=r"error while loading shared libraries: .*libqa\.so"):
        process.run((str(program),), b"", 10)


@pytest.mark.skipif(not Path("/usr/bin/python3").exists(), reason="no Python that another user can reach")
def test_the_limit_on_processes_is_ours() -> None:
    """In a child of its own: the limit binds whoever reached it. Root is bound by none."""
    code = (
        "import resource, sys; sys.path.insert(0, '.'); resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))\n"
        "from sandbox.programs import process\nfrom sandbox.errors import Failure\n"
        "try: process.run(('/bin/true',), b'', 5)\n"
        "except Failure as failure: print(failure.error_class, failure)"
    )
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        shutil.copytree(ROOT / "sandbox", Path(folder, "sandbox"))
        user: dict[str, Any] = {"user": 64_998, "group": 64_998, "extra_groups": []}
        done = subprocess.run(
            ["/usr/bin/python3", "-c", code],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=30,
            **(user if os.geteuid() == 0 else {}),
        )
    assert done.stdout.startswith("cannot_start /bin/true cannot be started here: Resource temporarily")


@pytest.mark.anyio
async def test_the_tool_answers_could_not_look() -> None:
    async with bench() as it:
        for tool, more in (
            ("qa_compile", {"program": {"command": shell("exit 127")}}),
            ("qa_compile", {"program": {"command": ("/no",)}}),
        ):
            result = await it.run(tool, {"source": "x"}, **more)
            assert (result["ok"], result["outcome"], result["error_class"]) == (False, "", "cannot_start")
    assert "cannot_start" in OUR_FAILURES & set(CLASSES)
