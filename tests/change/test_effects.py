"""Which changes of a package's `__init__.py` may reach what its modules hold."""

import pytest
from change_repo import TextTree

from gate.change.effects import changed_packages

INIT = "pkg/__init__.py"


def differs(before: str, after: str) -> bool:
    found = changed_packages([INIT, "pkg/k.py"], TextTree({INIT: before}), TextTree({INIT: after}))
    return found == {INIT}


@pytest.mark.parametrize(
    "added",
    [
        "from pkg import k\nk.entry = lambda x: x\n",
        "from pkg import k\nsetattr(k, 'entry', None)\n",
        "from pkg import k\n_ = setattr(k, 'entry', None)\n",
        "import pkg.k\nif True:\n    pkg.k.entry = None\n",
        "import pkg.k\ntry:\n    pkg.k.entry = None\nexcept ValueError:\n    pass\n",
        "import pkg.k\nclass A:\n    pkg.k.entry = None\n",
        "import sys\nsys.modules['pkg.k'] = None\n",
        "for pkg.k.entry in (1,):\n    pass\n",
        "def broken(:\n",
    ],
)
def test_what_reaches_into_another_module_is_a_change(added: str) -> None:
    assert differs("", added)
    assert differs(added, "")


@pytest.mark.parametrize(
    "added",
    [
        "from .k import entry\n",
        "__all__ = ['entry', 'other']\nVERSION: str = '2'\na, b = 1, 2\n",
        "def helper(x):\n    return x.y(1)\n",
        "class Shape:\n    '''A shape.'''\n    width = 3\n\n    def area(self): return 1\n",
        "'''Kernels.'''\n# a comment\n",
        "try:\n    from .k import entry\nexcept ImportError:\n    entry = None\n",
    ],
)
def test_what_only_names_things_is_none(added: str) -> None:
    assert not differs("", added)


def test_a_helper_counts_where_the_package_calls_something() -> None:
    patch = "def patch():\n    k.entry = {}\n\n\npatch()\n"
    assert differs(patch.format("one"), patch.format("two"))
    assert not differs(patch.format("one"), patch.format("one") + "\n# later\n")
