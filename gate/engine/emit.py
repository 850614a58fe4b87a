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
from gate.engine.gradients import grad_wire
from gate.engine.lanes import Crew
from gate.engine.task import OpTask
from gate.errors import UsageError
from gate.run.argwire import ArgWire, GradWire, ListWire, ScalarWire, TensorWire
from gate.run.wire import wire_args
from gate.schema.expr import Call
from gate.schema.gradients import PREFIX, own_args, own_returns
from gate.schema.model import Io, TensorArg

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
            once = tuple(slice(None if stride else 1) for stride in arg["strides"])
            data = torch.frombuffer(raw, dtype=torch.uint8).view(dtype).view(arg["shape"])
            view[once].copy_(data[once])
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

{backward}
def test_{op}_case():
    args = {{arg["name"]: build(arg, DEVICE) for arg in ARGS}}
{body}
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


_FORWARD = """\
    truth = flat(reference({name: widened(value) for name, value in args.items()}))
    returned = call(args, DEVICE)
    outputs = OUTPUTS"""

_BACKWARD = '''
# Args whose gradients are checked; places of the returns that gradients flow back through, among
# our returns and among the reference's values.
GRAD = {args!r}
THROUGH = {through!r}
INCOMING = json.loads(zlib.decompress(base64.b64decode("""
{incoming}
""")))


def leaves(args):
    """The tensors that require gradients from now on."""
    held = [args[name] if isinstance(args[name], list) else [args[name]] for name in GRAD]
    return [tensor.requires_grad_(True) for tensors in held for tensor in tensors]


def copied(args):
    """The args of GRAD as copies that a reference may change in place."""
    def copy(value):
        return [copy(item) for item in value] if isinstance(value, list) else value.clone()

    return dict(args, **{{name: copy(args[name]) for name in GRAD}})


def gradients(values, tensors, incoming):
    """What flows back to `tensors` when `incoming` comes in from behind `values`."""
    pairs = [pair for pair in zip(values, incoming) if pair[0].requires_grad]
    if not pairs:
        return [None] * len(tensors)
    outs, seeds = [v for v, _ in pairs], [g.to(v.dtype) for v, g in pairs]
    return list(torch.autograd.grad(outs, tensors, seeds, allow_unused=True))

'''

_BOTH_WAYS = """\
    incoming = [build(arg, DEVICE) for arg in INCOMING]
    wide = {name: widened(value) for name, value in args.items()}
    wide_leaves = leaves(wide)
    truth = flat(reference(copied(wide)))
    behind = [truth[place] for _, place in THROUGH]
    found = gradients(behind, wide_leaves, [widened(g) for g in incoming])
    truth = [t if t is None else t.detach() for t in [*truth[:COUNT], *found, *truth[COUNT:]]]
    tensors = leaves(args)
    returned = call(args, DEVICE)
    outputs = [x if x is None else x.detach().clone() for x in OUTPUTS]
    behind = [flat(returned)[place] for place, _ in THROUGH]
    outputs[COUNT:COUNT] = gradients(behind, tensors, incoming)"""


def emit_test(task: OpTask, case: Case, crew: Crew, record: CaseRecord, path: Path) -> None:
    """Write the case as a pytest file.

    The tolerance of each output is the largest allowance that the judge worked out for it.

    Raises
        UsageError  the op has no reference, the inputs are too large to carry, or the file cannot
                    be written
    """
    if task.schema.reference is None:
        raise UsageError(
            f"--emit-test: op {task.schema.op} has no reference, which a stand-alone test compares "
            "with; replay the case without it to judge its properties"
        )
    ready = crew.call(lambda lane: prepare(task, case, lane))
    bound = ready.bound
    wires = wire_args(bound, ready.inputs)
    backward = grad_wire(bound, ready.inputs)
    size = sum(_wire_bytes(wire) for wire in (*wires, *(backward.incoming if backward else ())))
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
        tolerance=_tolerances(task, record, backward, wires),
        op=task.schema.op,
        call=_call_code(task.schema.entry, [arg.name for arg in own_args(task.schema)]),
        reference=_reference_code(task),
        backward=_backward_code(task, backward),
        body=_body(task, backward),
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


def _tolerances(
    task: OpTask, record: CaseRecord, backward: GradWire | None, wires: tuple[ArgWire, ...]
) -> list[float]:
    """The largest allowance of each output in order, 0 for exact ones; gradients follow the
    returns, one for each tensor."""
    allowed = {
        c.output: (c.stats.worst_allowed if c.stats else 0.0) for c in record.judgement.comparisons
    }
    names = [ret.name for ret in own_returns(task.schema) if not ret.is_arg]
    lists = {wire.name: len(wire.items) for wire in wires if isinstance(wire, ListWire)}
    for name in backward.args if backward else ():
        count = lists.get(name)
        whole = PREFIX + name
        names += [whole] if count is None else [f"{whole}[{i}]" for i in range(count)]
    return [float(allowed.get(name, 0.0)) for name in (*names, *_changed_args(task))]


def _changed_args(task: OpTask) -> list[str]:
    return [
        arg.name
        for arg in task.schema.args
        if isinstance(arg, TensorArg) and arg.io in (Io.INOUT, Io.OUT)
    ]


def _backward_code(task: OpTask, backward: GradWire | None) -> str:
    if backward is None:
        return ""
    own = own_returns(task.schema)
    ours = [ret.name for ret in own]
    theirs = [ret.name for ret in own if not ret.is_arg]
    return _BACKWARD.format(
        args=list(backward.args),
        through=[(ours.index(name), theirs.index(name)) for name in backward.through],
        incoming=_packed([_plain(wire) for wire in backward.incoming]),
    )


def _body(task: OpTask, backward: GradWire | None) -> str:
    count = sum(not ret.is_arg for ret in own_returns(task.schema))
    body = _FORWARD if backward is None else _BOTH_WAYS.replace("COUNT", str(count))
    return body.replace("OUTPUTS", _outputs_code(task))


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
        return _call_code(reference, [arg.name for arg in own_args(task.schema)])
    assert reference is not None
    return f"return _eval({reference.text!r}, names)"


def _outputs_code(task: OpTask) -> str:
    returns = [ret for ret in own_returns(task.schema) if not ret.is_arg]
    after = ", ".join(f"args[{name!r}]" for name in _changed_args(task))
    if returns:
        return f"flat(returned)[:{len(returns)}] + [{after}]" if after else "flat(returned)"
    return f"[{after}]"
