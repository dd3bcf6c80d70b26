"""Builds the parser of the devnet's compiler with the package; all else is in pyproject.toml."""

import runpy

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithParser(build_py):
    """Before the files of the package are collected: the parser is one of them."""

    def run(self) -> None:
        runpy.run_path("fleet/devnet/compiler/rustlite/generate.py", run_name="__main__")
        super().run()


setup(cmdclass={"build_py": BuildWithParser})
