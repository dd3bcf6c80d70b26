"""Never ends, and takes no hint to."""

import signal
import time
from pathlib import Path

for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
Path("src/begun.md").write_text("begun")
while True:
    time.sleep(1)
