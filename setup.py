"""Builds the parser of the devnet's compiler with the package; adds shipped files and bill of materials."""

import json
import os
import runpy
import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

SHIPPED = ("config", "docs", "package.json", "personas")
"""Beside `fleet/` in a checkout, in `fleet/shipped/` of a wheel (`SHIPPED` of fleet/config/files.py)."""


class BuildWithData(build_py):
    """The parser comes before the files of the package are collected, because it is one of them."""

    def run(self) -> None:
        runpy.run_path("fleet/devnet/compiler/rustlite/generate.py", run_name="__main__")
        super().run()
        if self.editable_mode:
            return
        for name in SHIPPED:
            target = os.path.join(self.build_lib, "fleet", "shipped", name)
            if os.path.isdir(name):
                shutil.copytree(
                    name, target, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True
                )
            else:
                self.copy_file(name, target)
        sbom = runpy.run_path("fleet/app/sbom.py")
        bill = sbom["bill"](Path(), self.distribution.get_version())
        text = json.dumps(bill, indent=1, sort_keys=True) + "\n"
        Path(self.build_lib, "fleet", "shipped", sbom["NAME"]).write_text(text)


setup(cmdclass={"build_py": BuildWithData})
