"""Draw the strategy study: the share of bugs found against the number of cases, as SVG text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from gate.study.corpus import Role
from gate.study.strategies import StrategyStudy
from gate.study.trials import Trial

WIDTH, HEIGHT = 720, 420
"""Size of the picture in pixels."""
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 170, 30, 50
_COLOURS = (
    "#9e9e9e", "#1f77b4", "#8c564b", "#bcbd22", "#e377c2", "#7f7f7f", "#ff7f0e", "#17becf",
    "#9467bd", "#d62728",
)  # fmt: skip
"""One a strategy, in the order of the table; the last, for `ours`, stands out."""


def recall_curve(trials: Sequence[Trial], cases: int) -> list[float]:
    """Return for 1 .. `cases` the share of (buggy kernel, seed) that failed by then."""
    buggy = [trial for trial in trials if trial.role == Role.BUGGY.value]
    firsts = [trial.first for trial in buggy if trial.first]
    return [sum(f <= n for f in firsts) / len(buggy) if buggy else 0.0 for n in range(1, cases + 1)]


def recall_plot(study: StrategyStudy) -> str:
    """Return an SVG picture with a line for each strategy; cases on a logarithmic axis."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        *_axes(study.cases),
    ]
    for index, row in enumerate(study.rows):
        colour = _COLOURS[index % len(_COLOURS)]
        trials = [trial for trial in study.trials if trial.strategy == row.strategy]
        curve = recall_curve(trials, study.cases)
        parts += _line(curve, colour, study.cases, bold=row.strategy == "ours")
        parts += _label(row.strategy, colour, index)
    parts.append("</svg>")
    return "\n".join(parts) + "\n"


def _x(case: int, cases: int) -> float:
    wide = WIDTH - _LEFT - _RIGHT
    return _LEFT + wide * math.log2(case) / max(math.log2(cases), 1)


def _y(share: float) -> float:
    return HEIGHT - _BOTTOM - (HEIGHT - _TOP - _BOTTOM) * share


def _axes(cases: int) -> list[str]:
    right = WIDTH - _RIGHT
    found = []
    for tenth in range(0, 11, 2):
        y = _y(tenth / 10)
        found.append(f'<path d="M{_LEFT} {y:.1f}H{right}" stroke="#ddd"/>')
        found.append(
            f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{tenth * 10} %</text>'
        )
    for power in range(cases.bit_length()):
        x = _x(1 << power, cases)
        below = HEIGHT - _BOTTOM
        found.append(f'<path d="M{x:.1f} {below}v5" stroke="#444"/>')
        found.append(f'<text x="{x:.1f}" y="{below + 20}" text-anchor="middle">{1 << power}</text>')
    found.append(
        f'<path d="M{_LEFT} {_TOP}V{HEIGHT - _BOTTOM}H{right}" fill="none" stroke="#444"/>'
    )
    middle = (_LEFT + right) / 2
    found.append(f'<text x="{middle}" y="{HEIGHT - 10}" text-anchor="middle">cases of an op</text>')
    found.append(f'<text x="{_LEFT}" y="18">bugs found (kernels x seeds)</text>')
    return found


def _line(curve: Sequence[float], colour: str, cases: int, *, bold: bool) -> list[str]:
    points = " ".join(
        f"{_x(case, cases):.1f},{_y(share):.1f}" for case, share in enumerate(curve, start=1)
    )
    width = 3 if bold else 1.5
    return [f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="{width}"/>']


def _label(name: str, colour: str, index: int) -> list[str]:
    x, y = WIDTH - _RIGHT + 16, _TOP + 10 + 20 * index
    return [
        f'<path d="M{x} {y}h20" stroke="{colour}" stroke-width="3"/>',
        f'<text x="{x + 26}" y="{y + 4}">{escape(name)}</text>',
    ]
