"""A disk that fills up and is freed again, in a mount namespace of its own; what the ballast made of it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from fleet.disk_reserve import BALLAST, FEW, LOW, SIZE, give_up, look, relieve


def blocks(path: Path) -> int:
    return path.stat().st_blocks * 512


def fill(path: Path) -> None:
    with path.open("wb", buffering=0) as handle:
        try:
            while handle.write(bytes(1 << 16)):
                pass
        except OSError:
            return


def crowd(folder: Path, count: int) -> None:
    folder.mkdir()
    for number in range(count - 1):
        (folder / str(number)).touch()


def main(disk: Path) -> dict[str, object]:
    size = SIZE + 4 * LOW
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size},nr_inodes={3 * FEW}", "small", str(disk)], check=True
    )
    seen: dict[str, object] = {"at first": look(disk), "reserved": blocks(disk / BALLAST) >= SIZE}
    seen["enough room relieves nothing"] = relieve(disk)
    fill(disk / "other")
    seen["full"], seen["given up"] = look(disk), not (disk / BALLAST).exists()
    seen["still full"] = look(disk)
    small = disk / "small"
    small.write_bytes(bytes(1 << 20))
    seen["room for what ends"] = small.stat().st_size
    small.unlink()
    (disk / "other").unlink()
    (disk / BALLAST).write_bytes(b"half of one")
    seen["freed"], seen["reserved again"] = look(disk), blocks(disk / BALLAST) >= SIZE
    fill(disk / "other")
    seen["relieved"], seen["by giving up"] = relieve(disk), not (disk / BALLAST).exists()
    fill(disk / "more")
    seen["nothing left to give"] = relieve(disk)
    give_up(disk)
    (disk / "other").unlink()
    (disk / "more").unlink()
    seen["freed again"], free = look(disk), os.statvfs(disk).f_favail
    crowd(disk / "crowd", free - FEW + 1)
    seen["too many files"], seen["given up for them"] = look(disk), not (disk / BALLAST).exists()
    shutil.rmtree(disk / "crowd")
    seen["fewer files"], seen["reserved after them"] = look(disk), (disk / BALLAST).exists()
    seen["no disk"] = look(disk / "nowhere")
    return seen


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]))))
