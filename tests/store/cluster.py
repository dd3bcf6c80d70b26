"""A real PostgreSQL of the tests' own: made in a folder, under a user that is not root, gone afterwards.

It listens on a unix socket only, so no port can clash; `fsync` is off, because no test pulls a plug.
"""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest

ABSENT = "PostgreSQL's server is not installed (Debian: apt install postgresql)"
USER = "qa"
_OPTIONS = {
    "listen_addresses": "",
    "fsync": "off",
    "full_page_writes": "off",
    "max_connections": "80",
    "autovacuum": "off",
    "log_min_messages": "fatal",
}


def binaries() -> Path | None:
    """The folder of the newest server here; None when there is none."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parts[4]))
    on_path = shutil.which("postgres")
    return found[-1].parent if found else Path(on_path).parent if on_path else None


class Cluster:
    """Started by `start`, ended by `stop`, removed by `remove`; also when the tests themselves are killed."""

    def __init__(self, bin_folder: Path) -> None:
        self._bin = bin_folder
        self.folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))
        self._server: subprocess.Popen[bytes] | None = None
        self._numbers = itertools.count(1)
        self._as = []
        if os.geteuid() == 0:  # the server refuses to run as root
            shutil.chown(self.folder, "nobody", "nogroup")
            self._as = ["--reuid=nobody", "--regid=nogroup", "--clear-groups"]
        self._run(
            "initdb",
            "-D",
            f"{self.folder}/data",
            "-U",
            USER,
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--no-sync",
            "--locale=C",
            "--locale-provider=icu",
            "--icu-locale=en-US",
        )

    def _run(self, name: str, *arguments: str) -> None:
        command = ["setpriv", *self._as, str(self._bin / name), *arguments]
        subprocess.run(command, check=True, capture_output=True, cwd=self.folder, env={"LC_ALL": "C"})

    def start(self) -> None:
        self.spawn()
        self.wait()

    def spawn(self) -> None:
        """Only from the main thread: the server ends with the thread that made it."""
        options = [word for name, value in _OPTIONS.items() for word in ("-c", f"{name}={value}")]
        with (self.folder / "log").open("ab") as log:
            self._server = subprocess.Popen(
                [
                    "setpriv",
                    *self._as,
                    "--pdeathsig",
                    "INT",
                    str(self._bin / "postgres"),
                    "-D",
                    f"{self.folder}/data",
                    "-k",
                    str(self.folder),
                    *options,
                ],
                cwd=self.folder,
                env={"LC_ALL": "C"},
                stderr=log,
            )

    def wait(self) -> None:
        """Until it takes connections."""
        assert self._server is not None
        until = time.monotonic() + 30
        while True:
            try:
                psycopg.connect(self.url()).close()
                return
            except psycopg.OperationalError:
                if time.monotonic() > until or self._server.poll() is not None:
                    raise
                time.sleep(0.05)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """SIGINT ends every connection at once, SIGQUIT does not even tidy up."""
        assert self._server is not None
        self._server.send_signal(how)
        self._server.wait(30)
        self._server = None

    def remove(self) -> None:
        if self._server is not None:
            self.stop(signal.SIGQUIT)  # nobody needs what a tidy end would write
        shutil.rmtree(self.folder)

    def url(self, database: str = "postgres", *, user: str = USER, schema: str = "") -> str:
        path = f"&options={quote(f'-csearch_path={schema}')}" if schema else ""
        return f"postgresql://{user}@/{database}?host={quote(str(self.folder))}{path}"

    def place(self) -> str:
        """The URL of an empty schema that nobody else uses."""
        schema = f"s{os.getpid()}_{next(self._numbers)}"
        self.do(f"CREATE SCHEMA {schema}")
        return self.url(schema=schema)

    def do(self, statement: str, url: str = "") -> list[tuple[object, ...]]:
        with psycopg.connect(url or self.url(), autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []


@contextmanager
def running() -> Iterator[Cluster]:
    """One for a session of tests; where there is no server they are skipped, and say so."""
    folder = binaries()
    if folder is None:
        pytest.skip(ABSENT)
    cluster = Cluster(folder)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.remove()
