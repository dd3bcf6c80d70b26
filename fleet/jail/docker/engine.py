"""Docker's engine: makes, starts, kills and removes containers; nothing of a jail flows through it.

Every call runs in a worker thread under a deadline for the whole of it, and the library's errors become
JailError here. Access to an engine of root is root: a jail never sees its socket.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import socket
import tarfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from docker import APIClient
from docker.errors import APIError, DockerException, ImageNotFound, NotFound

from fleet.errors import JailError
from fleet.jail.bwrap.spawn import DATA
from fleet.jail.docker.engine_choice import EngineChoice
from fleet.jail.docker.runtime_helpers import end_helpers
from fleet.jail.jail_spec import UNPRIVILEGED

REPOSITORY = "qa-fleet-jail"
_DIRECTORIES = (
    *((name, 0o755) for name in ("dev", "etc", "opt", "proc", "sys", "usr")),
    ("tmp", 0o1777),
    ("box", 0o700),
)
_LINKS = ("bin", "lib", "lib64")
_NOT_OURS = b"1000"  # the user as bubblewrap's jails name it
_CALL_S = 20.0
_THREADS = 16
_LIMITS = {"MemoryLimit": "memory", "PidsLimit": "pids", "CpuCfsQuota": "cpu"}
"""What the engine says it can limit -> the control group it needs."""
_CONFLICT = 409  # not running any more, or its removal is under way

T = TypeVar("T")


@cache
def root_archive() -> bytes:
    """The image of a jail where none is configured, as a tar of always the same bytes: directories, links and
    the files of /etc.

    Everything that runs is mounted from the host, as in bubblewrap's jails. A tmpfs takes its mode from the
    directory of the image that it covers, whatever its options say: so /box and /tmp have theirs here.
    """
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, mode in _DIRECTORIES:
            _add(archive, name, tarfile.DIRTYPE, mode)
        for name in _LINKS:
            _add(archive, name, tarfile.SYMTYPE, 0o777, link=f"usr/{name}")
        for path, content in DATA:
            content = content.replace(_NOT_OURS, str(UNPRIVILEGED).encode())
            _add(archive, path.lstrip("/"), tarfile.REGTYPE, 0o644, content)
    return whole.getvalue()


def root_tag() -> str:
    """The tag of this very root: another content has another one."""
    return hashlib.sha256(root_archive()).hexdigest()[:16]


def _add(
    archive: tarfile.TarFile, name: str, kind: bytes, mode: int, content: bytes = b"", link: str = ""
) -> None:
    entry = tarfile.TarInfo(name)
    entry.type, entry.mode, entry.size, entry.linkname = kind, mode, len(content), link
    archive.addfile(entry, io.BytesIO(content))


@dataclass(frozen=True, slots=True)
class Ready:
    """An engine that can be used: the id of the jail's image, processors, whether it maps users, and whether
    it is an ordinary user's own."""

    image: str
    processors: int
    maps_users: bool
    rootless: bool


class Engine:
    """One engine, as its containers' owner."""

    def __init__(self, choice: EngineChoice) -> None:
        self.choice = choice
        self._url = choice.url()
        self._threads = ThreadPoolExecutor(_THREADS, "engine")
        self._client: APIClient | None = None
        self._ready: asyncio.Future[Ready] | None = None
        self._removals: set[asyncio.Task[None]] = set()
        self._left: set[str] = set()  # not removed yet: the engine was away

    async def ready(self) -> Ready:
        """Connect, see what the engine can limit, find or make the image: once, until `forget`."""
        if self._ready is None:
            self._ready = asyncio.ensure_future(self._ask("prepare a jail", self._prepare))
            self._ready.add_done_callback(_retrieve)  # who asked may be gone
        try:
            return await asyncio.shield(self._ready)
        except JailError:
            self.forget()
            raise

    def forget(self) -> None:
        """Look again before the next container: the image may have been removed, the engine exchanged."""
        self._ready = None

    def launch(self, name: str, config: dict[str, Any]) -> asyncio.Future[str]:
        """Make and start a container; the future has its id. Do not cancel it: `discard` both instead."""
        work = self._threads.submit(
            _translated, "start a container", lambda: _launch(self._connected(), name, config)
        )
        launching = asyncio.wrap_future(work)
        launching.add_done_callback(_retrieve)  # `discard` looks at it
        return launching

    async def exit_status(self, container: str) -> int | None:
        """Of a container whose PID 1 has ended; None when the engine does not say."""
        try:
            found = await self._ask("wait", lambda client: client.wait(container, timeout=int(_CALL_S)))
        except JailError:
            return None
        code = found.get("StatusCode")
        return code if isinstance(code, int) else None

    async def kill(self, container: str) -> None:
        """SIGKILL for its PID 1; one that has ended is fine, and so is an engine that does not answer."""
        with suppress(JailError):
            await self._ask("kill", lambda client: _unless_gone(lambda: client.kill(container)))

    def discard(self, container: str, launching: asyncio.Future[str] | None = None) -> None:
        """Kill and remove a container with its volumes in the background; `aclose` waits for it.

        Where the engine is away, it is tried again after the next removal that works, and by `aclose`.
        """
        task = asyncio.ensure_future(self._discard(container, launching))
        self._removals.add(task)
        task.add_done_callback(self._removals.discard)

    async def containers(self, label: str) -> list[dict[str, Any]]:
        """Every container with this label, `name` or `name=value`: its Id, Labels and State."""
        return await self._ask(
            "list", lambda client: list(client.containers(all=True, filters={"label": label}))
        )

    async def remove(self, container: str) -> None:
        """Kill and remove it; one that is gone is fine."""
        await self._ask(
            "remove",
            lambda client: _unless_gone(lambda: client.remove_container(container, v=True, force=True)),
        )

    async def aclose(self) -> None:
        """Wait for what is being removed, then let go of the engine."""
        while self._removals:
            await asyncio.wait(self._removals)
        await self._remove_left()
        if self._client is not None:
            self._client.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _discard(self, container: str, launching: asyncio.Future[str] | None) -> None:
        if launching is not None:
            await asyncio.wait([launching], timeout=2 * _CALL_S)
        if await self._removed(container):
            await self._remove_left()

    async def _removed(self, container: str) -> bool:
        try:
            await self.remove(container)
        except JailError:  # at the latest the next start's reaper finds it by its labels
            self._left.add(container)
            return False
        return True

    async def _remove_left(self) -> None:
        left, self._left = self._left, set()
        await asyncio.gather(*(self._removed(container) for container in left))

    async def _ask(self, what: str, call: Callable[[APIClient], T]) -> T:
        work = self._threads.submit(_translated, what, lambda: call(self._connected()))
        try:
            async with asyncio.timeout(_CALL_S):
                return await asyncio.wrap_future(work)
        except TimeoutError as error:
            raise JailError(f"the engine did not {what} within {_CALL_S:.0f} s") from error

    def _connected(self) -> APIClient:
        """The client of an engine that is there: the library leaves a socket that does not connect open."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as attempt:
            attempt.settimeout(_CALL_S)
            attempt.connect(self._url.removeprefix("unix://"))
        if self._client is None:
            self._client = APIClient(
                base_url=self._url, version="auto", timeout=int(_CALL_S), max_pool_size=_THREADS
            )
        return self._client

    def _prepare(self, client: APIClient) -> Ready:
        facts = client.info()
        missing = [group for fact, group in _LIMITS.items() if not facts.get(fact)]
        if missing:
            raise JailError(
                f"the engine cannot limit {', '.join(missing)}",
                remedy="give it the control groups (rootless: cgroup v2 with delegation)",
            )
        if self.choice.runtime and self.choice.runtime not in facts.get("Runtimes", {}):
            raise JailError(
                f"the engine has no runtime {self.choice.runtime!r}", remedy="set `[jail] runtime`"
            )
        options = " ".join(facts.get("SecurityOptions") or ())
        rootless = "name=rootless" in options
        return Ready(
            image=_image(client, self.choice.image),
            processors=int(facts["NCPU"]),
            maps_users="name=userns" in options or rootless,
            rootless=rootless,
        )


def _retrieve(done: asyncio.Future[Any]) -> None:
    """Mark an exception as retrieved, so that the loop does not report it."""
    if not done.cancelled():
        done.exception()


def _translated(what: str, work: Callable[[], T]) -> T:
    try:
        return work()
    except (DockerException, OSError, ValueError) as error:  # OSError: every error of `requests`
        reason = str(getattr(error, "explanation", None) or error)
        raise JailError(f"the engine did not {what}: {reason}", remedy=_remedy(reason)) from error


def _remedy(reason: str) -> str:
    if "Permission denied" in reason:
        return "use a rootless engine, or join the group of the socket: that is being root on this machine"
    if "No such file" in reason or "refused" in reason or "aborted" in reason:
        return "start Docker, or set `[jail] socket`"
    return "run `fleet check machine`"


def _image(client: APIClient, name: str) -> str:
    if name:
        try:
            return _image_id(client, name)
        except ImageNotFound as error:
            remedy = f"docker build -t {name} -f sandbox/Dockerfile ."
            raise JailError(f"the engine has no image {name!r}", remedy=remedy) from error
    own = f"{REPOSITORY}:{root_tag()}"
    try:
        return _image_id(client, own)
    except ImageNotFound:
        client.import_image_from_data(root_archive(), repository=REPOSITORY, tag=root_tag())
        return _image_id(client, own)


def _image_id(client: APIClient, name: str) -> str:
    return str(client.inspect_image(name)["Id"])  # type: ignore[no-untyped-call]


def _launch(client: APIClient, name: str, config: dict[str, Any]) -> str:
    made = client.create_container_from_config(config, name)  # type: ignore[no-untyped-call]
    container = str(made["Id"])
    try:
        client.start(container)
    except (DockerException, OSError):
        end_helpers([container])  # a runtime that failed is not always gone
        raise
    return container


def _unless_gone(act: Callable[[], None]) -> None:
    try:
        act()
    except NotFound:
        return
    except APIError as error:
        if error.status_code != _CONFLICT:
            raise
