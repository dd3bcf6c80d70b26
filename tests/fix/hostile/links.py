"""Makes a link: NAME TARGET; what is there already is moved away first, and stays readable there."""

import os
import shutil
import sys

name, target = sys.argv[1:]
if os.path.lexists(name):
    shutil.move(name, "/tmp/moved")
os.symlink(target, name)
