"""A hostile program that does what its input says; the native and the JavaScript one do the same."""

import contextlib
import os
import shutil
import signal
import sys
import time


def main() -> None:
    word = sys.stdin.read()
    if word == "error":
        sys.stderr.write("error: bad\n")
        sys.exit(1)
    elif word == "panic":
        sys.stderr.write("panicked\n")
        sys.exit(101)
    elif word in ("abort", "segfault"):
        os.kill(os.getpid(), signal.SIGABRT if word == "abort" else signal.SIGSEGV)
    elif word == "flood":
        while True:
            sys.stdout.write("x" * 65536)
    elif word == "loop":
        while True:
            pass
    elif word == "sleep":
        time.sleep(60)
    elif word == "hog":
        held = bytearray(1400 << 20)
        sys.exit(101 + 0 * len(held))
    elif word == "daemon":
        daemon()
    elif word == "parent":
        with contextlib.suppress(PermissionError):
            os.kill(os.getppid(), signal.SIGKILL)
    elif word == "descriptors":
        for fd in (0, *range(3, 256)):
            try:
                os.write(fd, bytes(64))
            except OSError:
                continue
    elif word == "litter":
        here = os.getcwd()
        os.makedirs("deep/er")
        open("deep/er/file", "w").close()
        os.chmod("deep", 0)
        os.chdir("/")
        os.chmod(os.path.join(here, "deep"), 0o700)
        shutil.rmtree(here)
    elif word == "files everywhere":
        for folder in ("/box", "/tmp", "/dev/shm"):
            with contextlib.suppress(OSError), open(f"{folder}/full", "wb") as file:
                while True:
                    file.write(bytes(1 << 20))
    elif word == "memory of the last":
        word = os.environ.get("LAST", "none")
        os.environ["LAST"] = "an input before"
        main.last = word = getattr(main, "last", word)  # type: ignore[attr-defined]
        main.last = "an input before"  # type: ignore[attr-defined]
    if word != "daemon":
        sys.stdout.write("out:" + word)


def daemon() -> None:
    """A child in a session of its own that lives on and goes on printing."""
    read_end, write_end = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        os.write(write_end, str(os.getpid()).encode())
        for _ in range(600):
            with contextlib.suppress(OSError):
                os.write(1, b"later")
            time.sleep(0.1)
        os._exit(0)
    sys.stderr.write(os.read(read_end, 20).decode())


if __name__ == "__main__":
    main()
