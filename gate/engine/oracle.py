"""The oracle of one case: the reference in every arithmetic that the judge asks for, cached.

References are shared between head, base, shrinking and layouts of the same values: the key is
made of what the reference sees, never of the case.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import numpy as np

from gate.case.bound import BoundCase
from gate.case.model import DtypeScalar
from gate.engine.clock import REFERENCE, Clock
from gate.engine.context import case_variables
from gate.engine.task import OpTask
from gate.judge.oracle import ReferenceFault, by_name
from gate.run.pool import ReferenceWorker
from gate.run.protocol import GradRequest, Mode, ReferenceReply, ReferenceRequest
from gate.schema.gradients import own_args

CACHE_BYTES = 256 * 2**20
"""References kept at most, in bytes of their arrays."""
SPREAD_COPIES = 4
"""Perturbed copies behind s: the trial that chose the rule used four."""


class ReferenceCache:
    """Replies by what was asked, least recently used first out; safe to share between threads."""

    def __init__(self, limit: int = CACHE_BYTES) -> None:
        self._limit = limit
        self._size = 0
        self._lock = threading.Lock()
        self._held: OrderedDict[str, tuple[ReferenceReply, int]] = OrderedDict()

    def get(self, key: str) -> ReferenceReply | None:
        """Return the reply for this key, or None."""
        with self._lock:
            entry = self._held.get(key)
            if entry is None:
                return None
            self._held.move_to_end(key)
            return entry[0]

    def put(self, key: str, reply: ReferenceReply) -> None:
        """Keep a reply, dropping the oldest ones beyond the limit."""
        size = _nbytes(reply.values)
        with self._lock:
            if key in self._held or size > self._limit:
                return
            self._held[key] = (reply, size)
            self._size += size
            while self._size > self._limit:
                _, (_, dropped) = self._held.popitem(last=False)
                self._size -= dropped


class CaseOracle:
    """Answers the judge's questions about one case from a reference worker."""

    def __init__(
        self,
        task: OpTask,
        bound: BoundCase,
        inputs: Mapping[str, Any],
        *,
        worker: ReferenceWorker,
        cache: ReferenceCache,
        clock: Clock,
        grad: GradRequest | None = None,
    ) -> None:
        self._task = task
        self._bound = bound
        self._inputs = inputs
        self._worker = worker
        self._cache = cache
        self._clock = clock
        self._grad = grad
        self._own_digest = inputs_digest(inputs)

    def values(
        self,
        mode: Mode,
        roundoff: float = 0.0,
        inputs: Mapping[str, Any] | None = None,
        given: Mapping[str, Any] | None = None,
    ) -> tuple[Any, ...]:
        """Return the reference's values in order of returns, then inout and out args.

        inputs  other inputs than the case's own (specials replaced), by arg name
        given   the kernel's own values of `given` returns

        Raises
            ReferenceFault  the reference failed; carries its error
        """
        schema = self._task.schema
        assert schema.reference is not None
        seen = dict(self._inputs if inputs is None else inputs)
        digest = self._own_digest if inputs is None else inputs_digest(seen)
        if given:
            seen.update(given)
            digest += inputs_digest(given)
        variables = case_variables(self._bound.dims, self._bound.dtypes)
        sizes = repr(sorted(variables.items()))
        text = schema.reference.text
        key = "|".join(
            [self._task.trusted_root, schema.file, text, sizes, mode.value, repr(roundoff), digest]
        )
        reply = self._cache.get(key)
        if reply is None:
            request = ReferenceRequest(
                root=self._task.trusted_root,
                pythonpath=self._task.pythonpath,
                reference=schema.reference.text,
                arg_order=tuple(arg.name for arg in own_args(schema)),
                inputs=seen,
                variables=variables,
                grad=self._grad,
                mode=mode,
                roundoff=roundoff,
                copies=SPREAD_COPIES,
                seed=self._bound.case.seed,
            )
            with self._clock.phase(REFERENCE):
                reply = self._worker.evaluate(request)
            self._cache.put(key, reply)
        if reply.error is not None:
            raise ReferenceFault(reply.error)
        if reply.names:
            return by_name(schema, reply.names, reply.values)
        return reply.values


def inputs_digest(values: Mapping[str, Any]) -> str:
    """Return a digest of everything that a reference sees."""
    digest = hashlib.sha256()
    for name in sorted(values):
        digest.update(f"\0{name}=".encode())
        _feed(digest, values[name])
    return digest.hexdigest()


def _feed(digest: Any, value: Any) -> None:
    if isinstance(value, np.ndarray):
        digest.update(f"{value.dtype}{value.shape}".encode())
        digest.update(np.asarray(value, order="C").tobytes())
    elif isinstance(value, (list, tuple)):
        digest.update(f"[{len(value)}".encode())
        for item in value:
            _feed(digest, item)
    elif isinstance(value, DtypeScalar):
        digest.update(f"dtype:{value.name}".encode())
    else:
        digest.update(repr(value).encode())


def _nbytes(values: Any) -> int:
    if isinstance(values, np.ndarray):
        return int(values.nbytes)
    if isinstance(values, (list, tuple)):
        return sum(_nbytes(value) for value in values)
    return 64
