"""Which way is chosen, and why another one is not."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from fleet.files import ROOT
from sandbox.errors import JailBroken
from sandbox.programs.process import Ending
from sandbox.programs.program import Program, WarmStart
from sandbox.runners import choice as native_way
from sandbox.runners.choice import another_start, runner
from sandbox.runners.python import PythonRunner
from sandbox.runners.served import FORK, ServedRunner
from tests.sandbox.runners.programs import PYTHON, native, node


def name_of(program: Program, part: str = "compiler") -> str:
    found = runner(program, part)
    found.close()
    return found.name


def executable(path: Path, text: str) -> str:
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


def test_a_launcher_script_is_spawned(tmp_path: Path) -> None:
    script = executable(tmp_path / "launch", "#!/bin/sh\ncat\n")
    assert name_of(Program(command=(script,), warm="fork-server")) == "spawn: fork-server: a launcher script"


def test_a_static_program_is_spawned(tmp_path: Path) -> None:
    native(tmp_path)  # skips without a compiler
    (tmp_path / "s.c").write_text("int main(void) { return 0; }\n")
    built = subprocess.run(["cc", "-static", "-o", tmp_path / "s", tmp_path / "s.c"], check=False)
    if built.returncode:
        pytest.skip("no static C library here")
    program = Program(command=(str(tmp_path / "s"),), warm="fork-server")
    assert name_of(program) == "spawn: fork-server: a static program"


def test_a_setuid_program_is_spawned(tmp_path: Path) -> None:
    target = Path(native(tmp_path).command[0])
    target.chmod(target.stat().st_mode | stat.S_ISUID)
    assert native_way.unfit(str(target)) == "a setuid program"


def test_without_the_helper_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native_way, "LIBRARY", str(tmp_path / "none.so"))
    found = Program(command=(shutil.which("cat") or "/bin/cat",), warm="fork-server")
    assert name_of(found) == "spawn: fork-server: the helper library is not compiled"


def test_a_module_that_is_not_there() -> None:
    program = replace(PYTHON, warm_entry="nowhere_at_all:main")
    assert name_of(program) == "spawn: python: ModuleNotFoundError: No module named 'nowhere_at_all'"


def test_an_entry_that_does_something_else(tmp_path: Path) -> None:
    """The first executions are compared: a wrong entry would say nothing true of the program."""
    (tmp_path / "other.py").write_text("def main():\n    print('something else')\n")
    program = replace(PYTHON, warm_entry="other:main", environment={"PYTHONPATH": str(tmp_path)})
    assert name_of(program) == ("spawn: python: standard output differs from that of a process of its own")


def test_node_without_an_adapter(tmp_path: Path) -> None:
    program = replace(node(), warm_entry=str(tmp_path / "none.js"))
    assert name_of(program) == f"spawn: node: no adapter at {tmp_path}/none.js"


def test_without_node(tmp_path: Path) -> None:
    script = executable(tmp_path / "launch", "#!/bin/sh\ncat\n")
    program = Program(command=(script,), warm="node", environment={"PATH": str(tmp_path)})
    assert name_of(program) == "spawn: node: node is missing"


def test_a_loader_that_is_the_compiler_with_other_arguments_starts_warm_too() -> None:
    program = replace(PYTHON, loader=(*PYTHON.command, "--more"))
    assert name_of(program, "loader") == "python"


def test_a_loader_that_is_another_program_is_spawned() -> None:
    other = (*PYTHON.command[:-1], str(Path(PYTHON.command[-1]).with_name("guest.py")))
    program = replace(PYTHON, loader=other)
    assert name_of(program, "loader") == "spawn: python is a way of the compiler only"


def test_a_platform_without_a_loader() -> None:
    with pytest.raises(JailBroken, match="no compiler configured"):
        runner(PYTHON, "loader")


@pytest.mark.parametrize("way", [WarmStart.FORK_SERVER, WarmStart.PYTHON])
def test_a_server_that_is_lost_is_started_again(way: WarmStart, tmp_path: Path) -> None:
    found = runner(native(tmp_path) if way is WarmStart.FORK_SERVER else PYTHON, "compiler")
    try:
        assert isinstance(found, ServedRunner)
        for _ in range(2):
            assert found._server
            os.kill(found._server.pid, signal.SIGKILL)
            assert found.run(b"hello", 5).stdout == b"out:hello"
            assert found.run(b"error", 5).ending is Ending.CLEAN_ERROR
    finally:
        found.close()


def test_the_environment_and_folder_of_a_profile(tmp_path: Path) -> None:
    code = "import os, sys; print(os.getcwd(), os.environ.get('WORD'), os.environ.get('LD_PRELOAD'))"
    program = Program(
        command=("{python}", "-I", "-S", "-c", code),
        environment={"WORD": "x"},
        folder=str(tmp_path),
        warm="fork-server",
    )
    found = runner(program, "compiler")
    try:
        assert found.run(b"", 5).stdout.decode() == f"{tmp_path} x None\n"
    finally:
        found.close()


def test_a_source_and_an_output_by_file() -> None:
    code = "import sys; open(sys.argv[2], 'w').write(open(sys.argv[1]).read().upper()); print('noise')"
    program = Program(
        command=("{python}", "-I", "-S", "-c", code, "{source}", "{output}"),
        source_by="file",
        file_name="a.txt",
        output_file="a.out",
    )
    found = runner(program, "compiler")
    try:
        assert [found.run(word, 5).stdout for word in (b"one", b"two")] == [b"ONE", b"TWO"]
    finally:
        found.close()


def test_inputs_in_one_process_that_disturb_each_other_are_forked(tmp_path: Path) -> None:
    (tmp_path / "leaky.py").write_text(
        "import sys\nseen = []\n\ndef main():\n"
        "    seen.append(1)\n    print(sys.stdin.read(), 'first' if len(seen) == 1 else 'again')\n\n"
        "if __name__ == '__main__':\n    main()\n"
    )
    program = Program(
        command=("{python}", "-B", str(tmp_path / "leaky.py")),
        warm="python",
        warm_entry="leaky:main",
        environment={"PYTHONPATH": str(tmp_path)},
    )
    found = runner(program, "compiler")
    try:
        assert isinstance(found, PythonRunner)
        found._since = 10**9  # the next is compared with a fork
        assert found.run(b"x", 5).stdout == b"x first\n"
        for _ in range(9):
            found._since = 10**9
            assert found.run(b"x", 5).stdout == b"x first\n"
        assert found.name == "python: a fork for each input, since inputs in one process disturb each other"
    finally:
        found.close()


def test_what_a_program_says_once_in_a_process_does_not_disturb(tmp_path: Path) -> None:
    (tmp_path / "warns.py").write_text(
        "import sys\nwarned = []\n\ndef main():\n"
        "    warned or print('warning', file=sys.stderr)\n    warned.append(1)\n"
        "    if sys.stdin.read() == 'x':\n        raise KeyError\n"
        "    print('Error: no', file=sys.stderr)\n    return 1\n\n"
        "if __name__ == '__main__':\n    sys.exit(main())\n"
    )
    program = Program(
        command=("{python}", "-B", str(tmp_path / "warns.py")),
        warm="python",
        warm_entry="warns:main",
        environment={"PYTHONPATH": str(tmp_path)},
    )
    found = runner(program, "compiler")
    try:
        assert isinstance(found, PythonRunner)
        for word in (b"x", b"y") * 5:
            found._since = 10**9  # is compared with a fork
            assert found.run(word, 5).stderr.startswith(b"warning\n")
        assert found.name == "python"
    finally:
        found.close()


def test_places_are_the_same_numbers_in_a_fork_and_in_process() -> None:
    found = runner(PYTHON, "compiler")
    try:
        assert isinstance(found, PythonRunner)
        by_fork = found.ordered(b"f", b"error", 5).covered
        in_process = found.tried(b"p", b"error", 5)[0].covered
        assert by_fork == in_process != found.ordered(b"f", b"daemon", 5).covered
    finally:
        found.close()


def test_no_descriptors_are_lost(tmp_path: Path) -> None:
    before = sorted(os.listdir("/proc/self/fd"))
    for program in (PYTHON, replace(PYTHON, warm_entry="nowhere:main"), replace(PYTHON, warm="spawn")):
        found = runner(program, "compiler")
        found.run(b"parent", 5)
        found.close()
    assert sorted(os.listdir("/proc/self/fd")) == before


HASHED = "import sys\n\ndef main():\n    print(hash('a') if sys.stdin.read() == 'two' else 'same')\n\n"


def test_another_start_has_another_seed_of_hashes_and_what_is_not_forked_has_none(tmp_path: Path) -> None:
    script = tmp_path / "hashed.py"
    script.write_text(HASHED + "if __name__ == '__main__':\n    main()\n")
    program = Program(
        command=("{python}", str(script)), warm="python", warm_entry="hashed:main", sample="one"
    )
    first = runner(program, "compiler")
    second = another_start(program, first)
    try:
        assert second is not None
        assert first.run(b"two", 5).stdout == first.run(b"two", 5).stdout != second.run(b"two", 5).stdout
        assert second.run(b"one", 5).stdout == b"same\n"
    finally:
        first.close()
        if second:
            second.close()
    spawned = runner(replace(program, warm="spawn"), "compiler")
    assert another_start(program, spawned) is None
    spawned.close()


def test_a_start_that_differs_for_the_sample_too_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "hashed.py").write_text(HASHED + "if __name__ == '__main__':\n    main()\n")
    program = Program(
        command=("{python}", str(tmp_path / "hashed.py")),
        warm="python",
        warm_entry="hashed:main",
        sample="two",
    )
    first = runner(program, "compiler")
    assert first.name == "python"
    assert another_start(program, first) is None
    first.close()


def test_what_follows_an_input_that_took_all_memory_took_little(tmp_path: Path) -> None:
    """A server that was lost has a new worker, and that input is its first."""
    (tmp_path / "hogs.py").write_text(
        "import sys\n\ndef main():\n    word = sys.stdin.read()\n    try:\n"
        "        held = bytearray((200 << 20) * (word == 'much'))\n    except MemoryError:\n        pass\n"
        "    sys.exit('error: ' + word)\n\nif __name__ == '__main__':\n    main()\n"
    )
    # as in a jail, in a small process: what a child held at most is measured against its parent's size
    (tmp_path / "asks.py").write_text(
        "import sys\nfrom sandbox.programs.program import Program\n"
        "from sandbox.runners.choice import runner\n"
        "command = ('{python}', sys.argv[1])\n"
        "program = Program(command=command, warm='python', warm_entry='hogs:main', sample='a')\n"
        "found = runner(program, 'compiler')\nassert found.name == 'python'\n"
        "for source in (b'a', b'b', b'c'):\n    found.run(source, 5)\nfound.restart()\n"
        "print(*(found.run(source, 5).peak >> 20 for source in (b'much', b'd', b'e', b'f')))\nfound.close()\n"
    )
    asked = [sys.executable, str(tmp_path / "asks.py"), str(tmp_path / "hogs.py")]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    said = subprocess.run(
        asked, capture_output=True, text=True, check=True, timeout=60, cwd=ROOT, env=environment
    )
    peaks = [int(one) for one in said.stdout.split()]
    assert peaks[0] >= 200
    assert max(peaks[1:]) < 150


FAILING = """import sys

COUNT = [0]

def main():
    word = sys.stdin.read()
    COUNT[0] += 1
    if word == "fail":
        print(f"panicked at {COUNT[0]}:{COUNT[0]}", file=sys.stderr)
        sys.exit(101)
    print(word)
"""


def test_a_failure_is_no_proof_that_inputs_disturb_each_other(tmp_path: Path) -> None:
    (tmp_path / "failing.py").write_text(FAILING + "\nif __name__ == '__main__':\n    main()\n")
    program = Program(
        command=("{python}", str(tmp_path / "failing.py")),
        warm="python",
        warm_entry="failing:main",
        sample="one",
    )
    found = runner(program, "compiler")
    try:
        said = {found.run(b"fail", 5).stderr for _ in range(8)}
        assert said == {b"panicked at 1:1\n"}  # a fork's word
        assert found.name == "python"
        assert found.run(b"two", 5).stdout == b"two\n"
    finally:
        found.close()


IMPORTING = """import sys

def main():
    fresh = "colorsys" not in sys.modules
    import colorsys
    print("imported" if fresh and sys.stdin.read() == "two" else "there")

if __name__ == '__main__':
    main()
"""


def test_a_server_that_starts_again_learns_its_imports_before_it_forks(tmp_path: Path) -> None:
    (tmp_path / "importing.py").write_text(IMPORTING)
    program = Program(
        command=("{python}", str(tmp_path / "importing.py")),
        warm="python",
        warm_entry="importing:main",
        sample="sample",
    )
    found = runner(program, "compiler")
    assert isinstance(found, ServedRunner)
    try:
        assert found.first == b"sample"
        found.restart()
        assert found.ordered(FORK[:1], b"two", 5).stdout == b"there\n"
    finally:
        found.close()
