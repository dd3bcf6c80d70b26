"""Run as a folder or a file, with or without site-packages: `python -I -S -B rustlite [--entry]`."""

import gc
import os
import sys
from importlib import import_module

JAIL_SITE = "/opt/site"
"""Where a jail has the packages; elsewhere the interpreter's own path is right."""

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
if os.path.isdir(JAIL_SITE):
    sys.path.append(JAIL_SITE)
gc.disable()  # one short job on a capped input; collecting is 10 % of its time
# by its name: a relative import would need another `__package__`, and Python 3.12 warns about that on stderr
sys.exit(import_module("rustlite.cli").main(sys.argv[1:]))
