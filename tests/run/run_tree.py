"""The code tree that the workers of these tests import from."""

from pathlib import Path

TREE = Path(__file__).parent / "tree"
"""A small repository of launchers, references and set-up files."""
