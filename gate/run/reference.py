"""Evaluate references, `make` rules and properties with torch on the CPU.

The truth is float64 (DESIGN: the gate oracle); the same reference in the inputs' own dtypes and in
float32 says what torch itself loses, and over perturbed inputs what rounding can explain.
"""

from __future__ import annotations

import contextlib
import dataclasses
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from gate.case.model import DtypeScalar
from gate.dtypes import DTYPES, Array, encode
from gate.run.autograd import evaluate_with_gradients
from gate.run.errorfacts import error_fact
from gate.run.host import TorchHost
from gate.run.imports import Importer
from gate.run.moving import MovedIntegers, moved
from gate.run.protocol import (
    MakeRequest,
    Mode,
    PropertyRequest,
    ReferenceReply,
    ReferenceRequest,
)
from gate.run.values import dtype_name, to_array, to_tensor, torch_dtype
from gate.schema.expr import (
    DtypeName,
    Level,
    call_arguments,
    evaluate,
    looks_like_call,
    parse_call,
    parse_expr,
)
from gate.seed import Seed

Env = dict[str, Any]


class Evaluator:
    """Evaluates for one tree; imported modules are kept, one importer for each search path."""

    def __init__(self) -> None:
        torch.set_num_threads(1)
        self._importers: dict[tuple[str, tuple[str, ...]], Importer] = {}

    def describe(self) -> dict[str, Any]:
        """Return the fields of the greeting."""
        versions = (
            ("python", platform.python_version()), ("torch", torch.__version__),
            ("numpy", np.__version__),
        )  # fmt: skip
        return {"device": "reference", "versions": versions}

    def answer(self, message: object) -> tuple[object, str]:
        """Answer one request; this process never asks to be replaced.

        Raises
            TypeError  the message is none that a reference worker answers
        """
        match message:
            case ReferenceRequest():
                return self.reference(message), ""
            case MakeRequest():
                return self.make(message), ""
            case PropertyRequest():
                return self.property(message), ""
        raise TypeError(f"a reference worker does not answer {type(message).__name__}")

    def reference(self, request: ReferenceRequest) -> ReferenceReply:
        """Evaluate a reference in the mode that is asked; never raises."""
        try:
            if request.mode in (Mode.SPREAD, Mode.INTEGERS):
                return self._spread(request)
            env = _environment(request.inputs, request.variables, _WIDEN[request.mode])
            values, names = self._values(request, env)
        except BaseException as error:  # noqa: BLE001 - a reference may raise anything
            return ReferenceReply(error=error_fact(error, request.root, "reference"))
        return _reply(values, names)

    def make(self, request: MakeRequest) -> ReferenceReply:
        """Compute one `make` arg; never raises."""
        try:
            env = _environment(request.inputs, request.variables, _to_float64)
            value = self._evaluate(
                request.make, request.root, request.pythonpath, env, list(request.inputs)
            )
            made = _cast(value, request.dtype) if request.dtype else _scalar(value)
        except BaseException as error:  # noqa: BLE001 - a `make` may raise anything
            return ReferenceReply(error=error_fact(error, request.root, "make"))
        return ReferenceReply(values=(made,))

    def property(self, request: PropertyRequest) -> ReferenceReply:
        """Evaluate a property; the values are the pairs that its close() and equal() compare.

        A call of `op` beyond those that the request answers ends the evaluation: the reply asks
        for it, and the caller asks again with its result.
        """
        pairs: list[Any] = []

        def compare(kind: str) -> Callable[[Any, Any], bool]:
            def note(left: Any, right: Any) -> bool:
                pairs.extend([kind, left, right])
                return True

            return note

        calls = iter(request.calls)
        extra = {"close": compare("close"), "equal": compare("equal"), "op": _op(calls)}
        try:
            env = _environment(request.inputs, request.variables, _to_float64)
            expr = parse_expr(request.property, level=Level.PROPERTY)
            with torch.no_grad():
                holds = evaluate(expr, env, TorchHost("cpu", extra))
        except _Again as call:
            return ReferenceReply(again=True, names=call.names, values=call.values)
        except BaseException as error:  # noqa: BLE001 - a property may raise anything
            return ReferenceReply(error=error_fact(error, request.root, "property"))
        if holds is not True or not pairs:
            pairs += ["equal", torch.as_tensor(holds), torch.tensor(True)]
        values = [p if isinstance(p, str) else _sent(p) for p in pairs]
        return ReferenceReply(values=tuple(values))

    # --- one evaluation -------------------------------------------------------------------------

    def _values(self, request: ReferenceRequest, env: Env) -> tuple[list[Any], tuple[str, ...]]:
        def evaluated(seen: Mapping[str, Any]) -> tuple[list[Any], tuple[str, ...]]:
            return _flat(
                self._evaluate(
                    request.reference, request.root, request.pythonpath, dict(seen),
                    request.arg_order,
                )
            )  # fmt: skip

        if request.grad is not None:
            with _arithmetic(request.mode):
                return evaluate_with_gradients(evaluated, env, request.grad)
        with _arithmetic(request.mode), torch.no_grad():
            return evaluated(env)

    def _evaluate(
        self, text: str, root: str, pythonpath: tuple[str, ...], env: Env, order: Sequence[str]
    ) -> Any:
        host = TorchHost("cpu")
        if not looks_like_call(text):
            return evaluate(parse_expr(text, level=Level.TORCH), env, host)
        call = parse_call(text, level=Level.TORCH)
        key = (root, pythonpath)
        importer = self._importers.get(key)
        if importer is None:
            importer = self._importers[key] = Importer(root, pythonpath)
        args, kwargs = call_arguments(call, env, order, host)
        return importer.find(call.target)(*args, **kwargs)

    def _spread(self, request: ReferenceRequest) -> ReferenceReply:
        """Return s: the largest deviation, element by element, over perturbed inputs, or over what
        integers become as floats."""
        env = _environment(request.inputs, request.variables, _to_float64)
        centre, names = self._values(request, dict(env))
        reach = [_zero_like(value) for value in centre]
        # Other signs for another u, so that asking again tells more; mirrored ones for -u.
        base = Seed(request.seed).child("spread").child(repr(abs(request.roundoff)))
        for copy in range(request.copies):
            changed = dict(env)
            if request.mode is Mode.INTEGERS:
                with MovedIntegers(request.roundoff, base.child("integers").child(str(copy))):
                    values, _ = self._values(request, changed)
            else:
                for name in request.inputs:
                    changed[name] = _moved(env[name], request.roundoff, base.child(name), copy)
                values, _ = self._values(request, changed)
            reach = [_widest(r, v, c) for r, v, c in zip(reach, values, centre, strict=True)]
        return ReferenceReply(values=tuple(reach), names=names)


class _Again(BaseException):
    """Unwinds the evaluation of a property: the entry must run again first."""

    def __init__(self, replaced: Mapping[str, Any]) -> None:
        super().__init__()
        self.names = tuple(replaced)
        self.values = tuple(_replacement(value) for value in replaced.values())


def _op(calls: Iterator[tuple[Any, ...]]) -> Callable[..., Any]:
    """Return what `op(...)` stands for: the next call's values, one alone or a tuple.

    Where no call is left it raises `_Again`, with the values that it was called with.
    """

    def op(**replaced: Any) -> Any:
        for made in calls:
            values = [_to_float64(_in(value)) for value in made]
            return values[0] if len(values) == 1 else tuple(values)
        raise _Again(replaced)

    return op


def _replacement(value: Any) -> Any:
    """Return a value for an arg as it can be sent: arrays, lists of them, Python values."""
    if isinstance(value, torch.dtype):
        return DtypeScalar(name=dtype_name(value))
    if isinstance(value, (list, tuple)):
        return [_replacement(item) for item in value]
    return to_array(value) if isinstance(value, torch.Tensor) else value


# --- inputs -------------------------------------------------------------------------------------


def _environment(
    inputs: Mapping[str, Any], variables: Mapping[str, Any], widen: Callable[[Any], Any]
) -> Env:
    env: Env = {}
    for name, value in variables.items():
        known = isinstance(value, str) and value in DTYPES
        env[name] = (
            DtypeName(value) if known else tuple(value) if isinstance(value, list) else value
        )
    for name, value in inputs.items():
        env[name] = widen(_in(value))
    return env


def _in(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return to_tensor(value)
    if isinstance(value, (list, tuple)):
        return [_in(item) for item in value]
    if isinstance(value, DtypeScalar):
        return torch_dtype(value.name)
    return value


def _to_float64(value: Any) -> Any:
    return _converted(value, torch.float64)


def _to_float32(value: Any) -> Any:
    return _converted(value, torch.float32)


def _as_it_is(value: Any) -> Any:
    return value


def _converted(value: Any, dtype: torch.dtype) -> Any:
    if isinstance(value, list):
        return [_converted(item, dtype) for item in value]
    if isinstance(value, torch.Tensor) and value.dtype.is_floating_point:
        return value.to(dtype)
    return value


_WIDEN: Mapping[Mode, Callable[[Any], Any]] = {
    Mode.FLOAT64: _to_float64,
    Mode.FLOAT32: _to_float32,
    Mode.NATIVE: _as_it_is,
}


@contextlib.contextmanager
def _arithmetic(mode: Mode) -> Iterator[None]:
    """Let what a reference makes of nothing (`torch.arange(n) / n`) be float64 where the truth is
    asked for: torch's own default is float32."""
    usual = torch.get_default_dtype()
    wide = mode in (Mode.FLOAT64, Mode.SPREAD, Mode.INTEGERS)
    torch.set_default_dtype(torch.float64 if wide else usual)
    try:
        yield
    finally:
        torch.set_default_dtype(usual)


def _moved(value: Any, roundoff: float, seed: Seed, copy: int) -> Any:
    """Return a float64 tensor with each element multiplied by 1 + u or 1 - u at random."""
    if isinstance(value, list):
        items = enumerate(value)
        return [_moved(item, roundoff, seed.child(str(i)), copy) for i, item in items]
    if not (isinstance(value, torch.Tensor) and value.dtype is torch.float64):
        return value
    return moved(value, roundoff, seed.child(str(copy)))


# --- results ------------------------------------------------------------------------------------


def _flat(value: Any) -> tuple[list[Any], tuple[str, ...]]:
    """Return a reference's values in order, and their names when it gave a dict."""
    if isinstance(value, dict):
        return [_settled(v) for v in value.values()], tuple(str(k) for k in value)
    if isinstance(value, tuple):
        return [_settled(v) for v in value], ()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        pairs = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
        return _flat(pairs)
    return [_settled(value)], ()


def _settled(value: Any) -> Any:
    if isinstance(value, (bool, int, float)):
        dtype = torch.float64 if isinstance(value, float) else None
        return torch.as_tensor(value, dtype=dtype)
    if isinstance(value, np.ndarray):
        return torch.from_numpy(np.array(value, order="C"))
    return value


def _reply(values: Sequence[Any], names: tuple[str, ...]) -> ReferenceReply:
    kinds = tuple(
        dtype_name(v.dtype) if isinstance(v, torch.Tensor) else type(v).__name__ for v in values
    )
    return ReferenceReply(values=tuple(_sent(v) for v in values), names=names, dtypes=kinds)


def _sent(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return to_array(value)
    if isinstance(value, (list, tuple)):
        return [_sent(item) for item in value]
    if isinstance(value, (bool, int, float)):
        return np.asarray(value)
    if value is None:
        return None
    raise TypeError(f"the reference gave a {type(value).__name__}, not a tensor, number or None")


def _zero_like(value: Any) -> Any:
    if isinstance(value, list):
        return [_zero_like(item) for item in value]
    if isinstance(value, torch.Tensor):
        return np.zeros(tuple(value.shape), dtype=np.float64)
    return None


def _widest(reach: Any, value: Any, centre: Any) -> Any:
    if isinstance(reach, list):
        return [_widest(r, v, c) for r, v, c in zip(reach, value, centre, strict=True)]
    if reach is None:
        return None
    if value.shape != centre.shape:
        return np.full_like(reach, np.inf)
    left, right = value.to(torch.float64).numpy(), centre.to(torch.float64).numpy()
    with np.errstate(invalid="ignore"):
        away = np.abs(left - right)
    same = (left == right) | (np.isnan(left) & np.isnan(right))
    away = np.where(same, 0.0, np.where(np.isnan(away), np.inf, away))
    return np.maximum(reach, away)


def _cast(value: Any, dtype: str) -> Array | None:
    """Return a made tensor in its dtype, rounded by our own rule so that every machine agrees."""
    if value is None:
        return None
    tensor = value if isinstance(value, torch.Tensor) else torch.as_tensor(value)
    kind = DTYPES[dtype]
    if kind.is_float:
        return encode(tensor.to(torch.float64).numpy(), dtype)
    return to_array(tensor.to(torch_dtype(dtype)))


def _scalar(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.item()
    if isinstance(value, torch.dtype):
        return DtypeScalar(name=dtype_name(value))
    return value
