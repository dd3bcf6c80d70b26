"""Takes room on the disk of its tree as no walk over names sees it: KIND; prints what it got in all."""

import ctypes
import os
import sys
import time

STEP, MOST = 1 << 20, 256
KEEP_SIZE = 1
libc = ctypes.CDLL(None, use_errno=True)


def take(kind: str, number: int) -> None:
    if kind == "names":
        for name in range(1024):
            open(f"src/{number}-{name}", "wb").close()
        return
    file = os.open(f"src/{number}", os.O_RDWR | os.O_CREAT)
    if kind == "unlinked":
        os.unlink(f"src/{number}")
        if os.write(file, bytes(STEP)) < STEP:
            raise OSError(28, "full")
    elif kind in ("fallocate", "keep-size"):
        mode = KEEP_SIZE if kind == "keep-size" else 0
        size = ctypes.c_long(STEP)
        if libc.fallocate(file, mode, ctypes.c_long(0), size) != 0:
            raise OSError(ctypes.get_errno(), "fallocate")
    elif kind == "mapped":
        os.ftruncate(file, STEP)
        if os.pwrite(file, bytes(STEP), 0) < STEP:
            raise OSError(28, "full")


taken = 0
try:
    for number in range(MOST):
        take(sys.argv[1], number)
        taken += 1
except OSError as error:
    print("ended:", error.strerror, flush=True)
print("taken:", taken, flush=True)
time.sleep(1)
