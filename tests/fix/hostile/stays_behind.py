"""Leaves processes behind that change the tree after it was judged."""

import os
import time
from pathlib import Path

for _ in range(5):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for number in range(600):
                time.sleep(0.05)
                Path("src/late.py").write_text(str(number))
        os._exit(0)
