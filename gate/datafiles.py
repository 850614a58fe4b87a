"""Where the corpus and the examples lie: beside an installed `gate`, or in the source tree."""

from __future__ import annotations

from pathlib import Path

from gate.errors import UsageError

_PACKAGE = Path(__file__).resolve().parent


def data_folder(name: str) -> Path:
    """Return the folder `corpus` or `examples` that belongs to this copy of kernel-gate.

    A wheel carries them as `gate/data/NAME`; a source tree has them beside the package.

    Raises
        UsageError  neither place has it (a damaged installation)
    """
    places = (_PACKAGE / "data" / name, _PACKAGE.parent / name)
    for place in places:
        if place.is_dir():
            return place
    raise UsageError(
        f"{name}: not found in {places[0]} nor in {places[1]}; install kernel-gate again, "
        "or run it from its source tree"
    )
