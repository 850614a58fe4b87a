"""Write one case as a stand-alone pytest file: torch and the repository only, no kernel-gate."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gate import __version__
from gate.case.bound import BoundCase
from gate.case.model import Case
from gate.case.text import format_case
from gate.engine.cases import prepare
from gate.engine.context import CaseRecord
from gate.engine.lanes import Crew
from gate.engine.task import OpTask
from gate.errors import UsageError
from gate.run.argwire import ListWire, ScalarWire, TensorWire
from gate.run.wire import wire_args
from gate.schema.expr import Call

MAX_INLINE = 8 * 2**20
"""Bytes of inputs that a test file may carry before compression."""

_TEMPLATE = '''\
"""Case {case_comment}

Written by kernel-gate {version}. Needs torch, triton and this repository; run it from the root:

    pytest {file_name}

Without a GPU: TRITON_INTERPRET=1 pytest {file_name}
"""

import base64
import importlib
import importlib.util
import json
import math
import os
import sys
import zlib

import torch
import torch.nn.functional as F

DEVICE = "cpu" if os.environ.get("TRITON_INTERPRET") == "1" else "cuda"
ROOT = os.environ.get("KERNEL_ROOT", os.getcwd())
PYTHONPATH = {pythonpath!r}
ARGS = json.loads(zlib.decompress(base64.b64decode("""
{args}
""")))
VARIABLES = {{
    name: getattr(torch, value) if isinstance(value, str) else value
    for name, value in {variables!r}.items()
}}
TOLERANCE = {tolerance!r}


def load(module, name):
    """Import `path.py` from the repository, or a dotted module."""
    sys.path[:0] = [os.path.join(ROOT, path) for path in (*PYTHONPATH, ".")]
    if module.endswith(".py"):
        path = os.path.join(ROOT, module)
        sys.path.insert(0, os.path.dirname(path))
        spec = importlib.util.spec_from_file_location(module.replace("/", "_")[:-3], path)
        found = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = found
        spec.loader.exec_module(found)
    else:
        found = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found


def build(arg, device):
    """One argument, laid out in memory exactly as in the case."""
    if arg["kind"] == "list":
        return [build(item, device) for item in arg["items"]]
    if arg["kind"] == "scalar":
        return getattr(torch, arg["value"]) if arg["dtype"] else arg["value"]
    dtype = getattr(torch, arg["dtype"])
    storage = torch.zeros(max(1, arg["storage"]), dtype=dtype, device="cpu")
    view = storage.as_strided(arg["shape"], arg["strides"], arg["offset"])
    if arg["data"] is not None:
        raw = bytearray(base64.b64decode(arg["data"]))
        if raw:
            view.copy_(torch.frombuffer(raw, dtype=torch.uint8).view(dtype).view(arg["shape"]))
    moved = storage.to("cpu" if arg["on_cpu"] else device)
    return moved.as_strided(arg["shape"], arg["strides"], arg["offset"])


def widened(value):
    """A float tensor as float64 on the CPU: what the reference is evaluated on."""
    if isinstance(value, list):
        return [widened(item) for item in value]
    if isinstance(value, torch.Tensor):
        moved = value.detach().cpu()
        return moved.double() if moved.is_floating_point() else moved
    return value


def cdiv(a, b):
    return -(-a // b)


def next_pow2(n):
    return 1 << max(0, n - 1).bit_length()


def _eval(text, names):
    """An expression of the op schema (it was checked by kernel-gate's own parser)."""
    scope = dict(names, torch=torch, F=F, math=math, cdiv=cdiv, next_pow2=next_pow2, device=DEVICE)
    plain = dict(min=min, max=max, abs=abs, sum=sum, len=len, tuple=tuple, dict=dict)
    return eval(text, {{"__builtins__": plain}}, scope)


def call(args, device):
    """The entry, called as the op schema says."""
    names = dict(VARIABLES, **args)
    {call}


def reference(args):
    """The right answer, in float64."""
    names = dict(VARIABLES, **args)
    {reference}


def flat(value):
    if isinstance(value, dict):
        return list(value.values())
    return list(value) if isinstance(value, (tuple, list)) else [value]


def test_{op}_case():
    args = {{arg["name"]: build(arg, DEVICE) for arg in ARGS}}
    truth = flat(reference({{name: widened(value) for name, value in args.items()}}))
    returned = call(args, DEVICE)
    outputs = {outputs}
    assert len(outputs) == len(truth), f"{{len(outputs)}} values, expected {{len(truth)}}"
    for position, (out, expected) in enumerate(zip(outputs, truth)):
        if expected is None or out is None:
            assert out is None and expected is None, f"value {{position}}: {{out}} for {{expected}}"
            continue
        out, expected = widened(out), expected.to(torch.float64)
        assert out.shape == expected.shape, f"value {{position}}: {{out.shape}}"
        error = (out.double() - expected).abs()
        same = (out == expected) | (out.isnan() & expected.isnan())
        wrong = ~same & ~(error <= TOLERANCE[position])
        assert not wrong.any(), (
            f"value {{position}}: {{int(wrong.sum())}} of {{wrong.numel()}} elements are wrong, "
            f"first at {{wrong.nonzero()[0].tolist()}}: "
            f"{{out[wrong][0].item()}} for {{expected[wrong][0].item()}}, "
            f"allowed {{TOLERANCE[position]}}"
        )
'''


def emit_test(task: OpTask, case: Case, crew: Crew, record: CaseRecord, path: Path) -> None:
    """Write the case as a pytest file.

    The tolerance of each output is the largest allowance that the judge worked out for it.

    Raises
        UsageError  the inputs are too large to carry, or the file cannot be written
    """
    ready = crew.call(lambda lane: prepare(task, case, lane))
    bound = ready.bound
    wires = wire_args(bound, ready.inputs)
    size = sum(_wire_bytes(wire) for wire in wires)
    if size > MAX_INLINE:
        raise UsageError(
            f"--emit-test: the case's inputs take {size:,} bytes, more than {MAX_INLINE:,}; use "
            "the smallest case of a finding"
        )
    text = _TEMPLATE.format(
        case_comment=format_case(bound.case).replace("\\", "\\\\").replace('"""', "'''"),
        version=__version__,
        file_name=path.name,
        pythonpath=list(task.pythonpath),
        args=_packed([_plain(wire) for wire in wires]),
        variables=_variables(bound),
        tolerance=_tolerances(task, record),
        op=task.schema.op,
        call=_call_code(task.schema.entry, [arg.name for arg in task.schema.args]),
        reference=_reference_code(task),
        outputs=_outputs_code(task),
    )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as problem:
        raise UsageError(f"--emit-test {path}: cannot be written ({problem.strerror})") from problem


def _wire_bytes(wire: object) -> int:
    if isinstance(wire, ListWire):
        return sum(_wire_bytes(item) for item in wire.items)
    if isinstance(wire, TensorWire) and wire.data is not None:
        return int(wire.data.nbytes)
    return 0


def _plain(wire: TensorWire | ListWire | ScalarWire) -> dict[str, Any]:
    match wire:
        case ListWire():
            return {"kind": "list", "name": wire.name, "items": [_plain(i) for i in wire.items]}
        case ScalarWire():
            return {
                "kind": "scalar", "name": wire.name, "value": wire.value, "dtype": wire.is_dtype,
            }  # fmt: skip
        case TensorWire():
            data = None
            if wire.data is not None:
                data = base64.b64encode(np.asarray(wire.data, order="C").tobytes()).decode()
            return {
                "kind": "tensor", "name": wire.name, "dtype": wire.dtype,
                "shape": list(wire.shape), "strides": list(wire.strides), "offset": wire.offset,
                "storage": wire.storage, "on_cpu": wire.on_cpu, "data": data,
            }  # fmt: skip


def _packed(args: list[dict[str, Any]]) -> str:
    raw = base64.b64encode(zlib.compress(json.dumps(args).encode(), 9)).decode()
    return "\n".join(raw[i : i + 96] for i in range(0, len(raw), 96))


def _variables(bound: BoundCase) -> Mapping[str, Any]:
    return {**bound.dims, **bound.dtypes}


def _tolerances(task: OpTask, record: CaseRecord) -> list[float]:
    """The largest allowance of each output in order; 0 for exact ones."""
    allowed = {
        c.output: (c.stats.worst_allowed if c.stats else 0.0) for c in record.judgement.comparisons
    }
    return [float(allowed.get(name, 0.0)) for name in judged_names(task)]


def judged_names(task: OpTask) -> list[str]:
    """Return the names of what is judged: returns that are not `is:`, then inout and out args."""
    names = [ret.name for ret in task.schema.returns if not ret.is_arg]
    names += [
        arg.name
        for arg in task.schema.args
        if getattr(arg, "io", None) is not None and arg.io.value in ("inout", "out")  # type: ignore[union-attr]
    ]
    return names


def _call_code(call: Call, order: list[str]) -> str:
    """Source of the entry's call: the schema's own words, names looked up in `names`."""
    target = f"load({call.target.module!r}, {call.target.name!r})"
    grid = f"[_eval({call.grid.text!r}, names)]" if call.grid is not None else ""
    if call.args is None:
        listed = ", ".join(f"names[{name!r}]" for name in order)
        return f"return {target}{grid}({listed})"
    parts = [f"_eval({arg.text!r}, names)" for arg in call.args]
    parts += [f"{key}=_eval({value.text!r}, names)" for key, value in call.kwargs]
    return f"return {target}{grid}({', '.join(parts)})"


def _reference_code(task: OpTask) -> str:
    reference = task.schema.reference
    if isinstance(reference, Call):
        return _call_code(reference, [arg.name for arg in task.schema.args])
    assert reference is not None
    return f"return _eval({reference.text!r}, names)"


def _outputs_code(task: OpTask) -> str:
    returns = [ret for ret in task.schema.returns if not ret.is_arg]
    names = judged_names(task)[len(returns) :]
    after = ", ".join(f"args[{name!r}]" for name in names)
    if returns:
        return f"flat(returned)[:{len(returns)}] + [{after}]" if after else "flat(returned)"
    return f"[{after}]"
