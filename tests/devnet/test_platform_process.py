"""The platform as a process: ready line, graceful end, end with its parent."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx


def start(*more: str, stderr: int | None = None) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "fleet.devnet.platform", "--rpc", "http://127.0.0.1:9", "--diamond"]
    return subprocess.Popen(
        [*command, "0x" + "00" * 20, *more], stdout=subprocess.PIPE, stderr=stderr, text=True
    )


def processor_time(stat: str) -> int:
    """What a process has used so far, in ticks, by its line (proc_pid_stat(5), `utime` and `stime`)."""
    fields = stat.rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


def ticks_to_import(libraries: str) -> int:
    """What a process uses that does nothing but load them: the measure of this machine at this moment."""
    source = f"import {libraries}; print(open('/proc/self/stat').read())"
    shown = subprocess.run([sys.executable, "-c", source], check=True, capture_output=True, text=True).stdout
    return processor_time(shown)


def test_the_process_says_when_it_is_ready_and_ends_gracefully() -> None:
    bare = ticks_to_import("web3, uvicorn, starlette")
    with start("--defects", "method-405,compiler-hang", "--public-url", "http://site.test") as process:
        assert process.stdout is not None
        ready = json.loads(process.stdout.readline())
        took = processor_time(Path(f"/proc/{process.pid}/stat").read_text())
        documents = httpx.get(f"{ready['url']}/llms.txt", trust_env=False, timeout=60).text
        chain_down = httpx.get(f"{ready['url']}/face/docs/", trust_env=False, timeout=60).status_code
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    assert (ready["ready"], ready["pid"], ready["defects"]) == (
        True,
        process.pid,
        ["compiler-hang", "method-405"],
    )
    assert "http://site.test/api/persona" in documents
    assert chain_down == 503
    assert took < 3 * bare  # a ratio: both load web3, whatever else this machine does


def test_the_process_ends_with_its_parent() -> None:
    script = (
        "import subprocess, sys, os, signal\n"
        "child = subprocess.Popen([sys.executable, '-m', 'fleet.devnet.platform', '--rpc', 'http://127.0.0.1:9',\n"
        "    '--diamond', '0x' + '00' * 20], stdout=subprocess.PIPE)\n"
        "print(child.pid, child.stdout.readline().decode(), flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    parent = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    pid = int(parent.stdout.split()[0])
    until = time.monotonic() + 60
    while _alive(pid) and time.monotonic() < until:
        time.sleep(0.01)
    assert not _alive(pid)


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_wrong_defect_ends_the_process_with_an_error() -> None:
    with start("--defects", "nonsense", stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        assert "unknown defects: nonsense" in process.stderr.read()
        assert process.wait(30) != 0
