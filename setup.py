"""Carry the corpus and the examples inside the wheel; everything else is in pyproject.toml."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

DATA = ("corpus", "examples")


class BuildWithData(build_py):
    """Copy the data folders of the source tree into the built package as gate/data/NAME."""

    def run(self) -> None:
        """Build as usual, then copy."""
        super().run()
        if self.editable_mode:
            return
        ignored = shutil.ignore_patterns("__pycache__", "*.pyc", "results")
        for name in DATA:
            target = Path(self.build_lib) / "gate" / "data" / name
            shutil.copytree(Path(name), target, dirs_exist_ok=True, ignore=ignored)


setup(cmdclass={"build_py": BuildWithData})
