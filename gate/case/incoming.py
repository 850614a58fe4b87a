"""Incoming gradients of returns whose shape only the reference knows (`loss: {dtype: T}`).

Their layout is no level of the plan and stands in no case text: layout and values follow from the
case's seed once the shape is known.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gate.case.bound import BoundTensor
from gate.case.domain import fill_kind, resolve_span
from gate.case.fills import base_fill, fill
from gate.case.layouts import expanded_axes, layouts_for, place
from gate.dtypes import Array
from gate.seed import Seed


def placed_incoming(tensor: BoundTensor, shape: tuple[int, ...], case_seed: int) -> BoundTensor:
    """Return an incoming gradient with the layout that the case's seed gives it: the plain one for
    every second case, else any that the schema allows for the shape."""
    draw = Seed(case_seed).child(tensor.name).child("layout")
    layouts = layouts_for(tensor.arg, shape, tensor.dtype)
    layout = layouts[0] if draw.below(2) else layouts[draw.below(len(layouts), 1)]
    return replace(tensor, layout=layout, place=place(layout, shape, tensor.dtype))


def drawn_incoming(tensor: BoundTensor, shape: tuple[int, ...], case_seed: int) -> Array:
    """Return the values of an incoming gradient, equal along expanded axes."""
    held = placed_incoming(tensor, shape, case_seed)
    repeats = expanded_axes(held.layout, shape)
    once = tuple(min(1, extent) if i in repeats else extent for i, extent in enumerate(shape))
    span = resolve_span(tensor.name, tensor.arg, tensor.dtype, once, {})
    seed = Seed(case_seed).child(tensor.name)
    kind = fill_kind(tensor.arg.values.domain, tensor.dtype)
    values = fill(base_fill(kind), span, seed, {})
    return np.asarray(np.broadcast_to(values, shape), order="C")
