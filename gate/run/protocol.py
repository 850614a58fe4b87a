"""What crosses between the judge and its workers: data with declared sizes, never pickle.

These are the messages; `gate.run.frames` says how they travel.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gate.dtypes import Array
from gate.run.argwire import ArgWire, ChosenWire, GradWire

FRAME_VERSION = 1
"""Version of this page; a worker that speaks another is refused."""


# --- to a kernel worker -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadRequest:
    """Import an entry and find the kernels that it gates. Answer: `LoadReply`."""

    root: str
    """Folder of the tree that holds the code."""
    pythonpath: tuple[str, ...]
    """Folders under root to import from, longest match wins."""
    entry: str
    """The entry call as written in the schema."""
    setup: str = ""
    """A file under root that is run once before, empty for none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """Call the loaded entry once (or more often). Answer: `Observation`."""

    load: LoadRequest
    """What to call; a worker loads it on first sight and keeps it."""
    args: tuple[ArgWire, ...]
    """Every arg of the schema that is present or None, in schema order."""
    variables: Mapping[str, Any]
    """dims (ints, `...` a list) and dtype variables (names) for the call's expressions."""
    returns: tuple[str, ...]
    """Names of the declared returns, in order."""
    grad: GradWire | None = None
    """Run backward too; None: forward only."""
    guard: str = "nan"
    """Fill of gaps and guards: `nan`, `large` or `zero` (integers: a pattern each)."""
    poison: int = 0
    """Which poison pattern fills fresh memory (0 or 1)."""
    calls: int = 1
    """Calls on fresh copies of the args; more than one compares their bits."""
    reuse: bool = False
    """After the first call, call again on the same buffers: inputs restored, outputs and scratch as
    the first call left them."""
    order: str = "forward"
    """Program order in the interpreter: `forward`, `reversed` or `shuffled`."""
    config: int | None = None
    """Index of the autotune config to force; None: the kernel's own choice."""
    dry: bool = False
    """Record every launch and run none, on sparse memory that nothing paints: for grids of cases
    that are far too large to run."""
    sample: int = 0
    """In a dry run of the interpreter, so many programs of each launch are run all the same, those
    at its ends first, and what their addresses come to is looked at."""
    chosen: ChosenWire | None = None
    """Which slices of what comes back are wanted; None: everything."""
    checks: tuple[str, ...] = ()
    """Further checks: `bounds`, `wrap`, `race`, `compile` (interpreter); `specialise` (interpreter:
    `Observation.specialisations`); `memcheck` (a worker under compute-sanitizer, which sets it
    itself: tensors without guards, `Observation.regions`)."""
    other: tuple[ArgWire, ...] = ()
    """Args of one more call, with values of its own and tensors of the same form: what it makes of
    what the first call returned is seen, and nothing else of it. Empty: no such call."""
    other_grad: GradWire | None = None
    """Its backward call."""
    seconds: float = 60.0
    """Time limit; the supervisor kills the worker after it."""


# --- from a kernel worker -----------------------------------------------------------------------


class Outcome(enum.Enum):
    """How a call ended: a fact, not a judgement."""

    RETURNED = "returned"
    """The entry returned."""
    RAISED = "raised"
    """The entry raised a Python exception."""
    DIED = "died"
    """The worker process ended (signal, exit)."""
    HUNG = "hung"
    """The time limit ran out."""
    NOT_LOADED = "not loaded"
    """The entry could not be imported or found."""
    UNSUPPORTED = "unsupported"
    """The device cannot emulate what the kernel does (interpreter only)."""
    GARBLED = "garbled"
    """The worker sent what the protocol does not allow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorFact:
    """An exception as seen by the worker, or a process end as seen by the supervisor."""

    type: str
    """Class name, `signal` or `exit`."""
    bases: tuple[str, ...] = ()
    """Names of its base classes."""
    message: str = ""
    """Its text, at most 4,000 characters."""
    trace: str = ""
    """The last lines of the traceback, paths from the root."""
    file: str = ""
    """Path from the root of the innermost frame inside the tree."""
    line: int = 0
    """Its 1-based line."""
    stage: str = ""
    """`import`, `launcher` (before any launch), `compile`, `launch`, `device` or `after`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchFact:
    """One launch: the receipt that a kernel ran."""

    kernel: str
    """Kernel id `path/from/root.py::function` (or `module::function` outside the tree)."""
    grid: tuple[int, int, int]
    """Programs on each axis."""
    constexprs: tuple[tuple[str, Any], ...] = ()
    """Constexpr name -> value (numbers, strings, bools; else its repr)."""
    specials: tuple[tuple[str, str], ...] = ()
    """Integer arg -> `1`, `16` (divisible) or `` (neither)."""
    options: tuple[tuple[str, Any], ...] = ()
    """num_warps, num_stages and the like."""
    backward: bool = False
    """Whether the backward call launched it."""

    @property
    def programs(self) -> int:
        """How many programs ran; with none, this is no receipt that the kernel did."""
        return max(0, math.prod(self.grid))


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputFact:
    """One value that came back, or a judged arg after the call."""

    name: str
    """Return or arg name; `#i` for a value beyond the declared ones."""
    dtype: str = ""
    """dtype name as returned; the Python type's name for what is not a tensor."""
    shape: tuple[int, ...] = ()
    """Its shape as returned."""
    device: str = ""
    """`cuda`, `cpu`: where it lies; `host`: sent there from a GPU that was emulated."""
    is_none: bool = False
    """Whether it is None."""
    is_arg: str = ""
    """The arg whose very tensor it is (same storage, shape, strides)."""
    overlaps: tuple[str, ...] = ()
    """Args whose storage it shares."""
    data: Array | None = None
    """Values in C order; None when there are none to send."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TouchFact:
    """A place that changed although nothing may change there."""

    arg: str
    """The tensor."""
    where: str
    """`value` (an input), `before`, `after` (guards), `gap`, `object` (the caller's tensor), or
    `list` (the caller's list)."""
    count: int
    """Number of changed elements (bytes for guards; of an object what `detail` lists)."""
    first: int
    """Flat index in an input, element of the storage in a gap, byte from its start in guards; 0
    for an object."""
    detail: str = ""
    """Of an object or list: what it is now and was, such as `shape [0], was [5]`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A fault that the device saw while the kernel ran."""

    kind: str
    """`oob_read`, `oob_write`, `uninitialised`, `int_wrap`, `race`, `grid`, `compile`."""
    kernel: str
    """Kernel id."""
    line: int = 0
    """1-based line in the kernel's file, 0 when unknown."""
    program: tuple[int, ...] = ()
    """Program ids."""
    tensor: str = ""
    """The arg that is nearest."""
    message: str = ""
    """What happened, one sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """Where a tensor of the call lay, for the reports of other tools."""

    name: str
    """Arg name."""
    address: int
    """Device address of its storage."""
    nbytes: int
    """Bytes of its storage."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """Everything that was seen of one case on a kernel worker."""

    outcome: Outcome
    """How it ended."""
    error: ErrorFact | None = None
    """Present unless it returned."""
    outputs: tuple[OutputFact, ...] = ()
    """Returns in order, then each inout/out arg by name."""
    launches: tuple[LaunchFact, ...] = ()
    """In order; at most 256, the rest counted in `launch_count`."""
    launch_count: int = 0
    """All launches."""
    touched: tuple[TouchFact, ...] = ()
    """Inputs, gaps and guards that changed."""
    faults: tuple[Fault, ...] = ()
    """Faults seen by the device's checks."""
    differs: tuple[str, ...] = ()
    """Outputs whose bits differ between the calls of one request."""
    second: tuple[OutputFact, ...] = ()
    """What another call on equal inputs gave, when any bit of it differs from the first."""
    reused: bool = False
    """Whether that call had the very buffers of the first."""
    second_error: ErrorFact | None = None
    """Why that second call did not return."""
    held: tuple[str, ...] = ()
    """Returned tensors, in the memory of no arg, that are still there once the caller dropped them:
    the code under test holds them."""
    overwritten: tuple[str, ...] = ()
    """Returned tensors of the first call that `RunRequest.other` changed."""
    configs: tuple[str, ...] = ()
    """Autotune configs of the launched kernel that has most of them, in order, as text; those that
    its own pruning leaves out are empty. None: not autotuned."""
    forced: bool = False
    """Whether the config of the request was forced on a kernel."""
    seconds: float = 0.0
    """Wall time of the request, compile included; of one that hung, its limit at least."""
    kernel_seconds: float = 0.0
    """Of it, inside the entry and the device's checks of its launches, compile included."""
    compile_seconds: float = 0.0
    """Of it, compiling."""
    output: str = ""
    """What it printed, at most 4,000 characters, as text."""
    device: str = ""
    """`cuda` or `interpreter`: where the kernel really ran."""
    notes: tuple[str, ...] = ()
    """What the device could not look at, and why, by no fault of the kernel."""
    regions: tuple[Region, ...] = ()
    """Where the tensors lay; with the check `memcheck` only."""
    specialisations: tuple[str, ...] = ()
    """What the JIT would compile for the launches, each once, as `gate.run.samecode` takes it; with
    the check `specialise` only. One that has no text form is an empty string."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadReply:
    """What loading an entry found."""

    error: ErrorFact | None = None
    """Why it could not be loaded; None when it was."""
    kernels: tuple[str, ...] = ()
    """Ids of the jit functions in the entry's module."""
    parameters: tuple[str, ...] = ()
    """Parameter names of the entry."""


# --- the reference process ----------------------------------------------------------------------


class Mode(enum.Enum):
    """In which arithmetic a reference is evaluated."""

    FLOAT64 = "float64"
    """Every float tensor as float64: the truth."""
    NATIVE = "native"
    """torch in the dtypes of the inputs: error B."""
    FLOAT32 = "float32"
    """Every float tensor as float32, results rounded to the output dtype: error B32."""
    SPREAD = "spread"
    """s: the largest deviation, element by element, of float64 over perturbed inputs."""
    INTEGERS = "integers"  # what integer tensors become as floats is perturbed, and nothing else


@dataclass(frozen=True, slots=True, kw_only=True)
class GradRequest:
    """Gradients of the reference, by autograd. They follow the values of the returns."""

    args: tuple[str, ...]
    """Args whose gradients are wanted, in order; None is given for one that is not passed."""
    through: tuple[tuple[str, int], ...]
    """(return, its place among the values); its incoming gradient is the input `grad of` it."""
    returns: int
    """Values that are returns; gradients are put behind them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceRequest:
    """Evaluate the reference. Answer: `ReferenceReply`."""

    root: str
    """Folder of the trusted tree that holds reference files."""
    pythonpath: tuple[str, ...]
    """Folders under root to import from."""
    reference: str
    """The reference as written."""
    arg_order: tuple[str, ...]
    """Schema args in order (a file reference without parentheses gets them all)."""
    inputs: Mapping[str, Any]
    """arg or given return -> ndarray, list of ndarrays, scalar, `DtypeScalar` or None."""
    variables: Mapping[str, Any]
    """dims and dtype variables."""
    grad: GradRequest | None = None
    """Which gradients to give beside the values."""
    mode: Mode = Mode.FLOAT64
    """Arithmetic."""
    roundoff: float = 0.0
    """u of SPREAD and INTEGERS: what is perturbed is multiplied by 1 +- u."""
    copies: int = 4
    """Perturbed copies of SPREAD and INTEGERS."""
    seed: int = 0
    """Stream of the signs of SPREAD and INTEGERS."""
    seconds: float = 120.0
    """Time limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceReply:
    """Values of the reference, or why there are none."""

    values: tuple[Any, ...] = ()
    """One a value: ndarray (float64, int64, bool ... ), list of ndarrays, or None."""
    names: tuple[str, ...] = ()
    """Names when the reference gave a dict, else empty."""
    dtypes: tuple[str, ...] = ()
    """torch dtype of each value before it was sent."""
    error: ErrorFact | None = None
    """Why it failed."""
    again: bool = False
    """A property needs the entry run once more first, with the args `names` as `values`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MakeRequest:
    """Compute one `make` arg. Answer: `ReferenceReply` with one value, cast to `dtype`."""

    root: str
    """Folder of the trusted tree."""
    pythonpath: tuple[str, ...]
    """Folders under root to import from."""
    make: str
    """The call or expression as written."""
    inputs: Mapping[str, Any]
    """Earlier args (float tensors become float64)."""
    variables: Mapping[str, Any]
    """dims and dtype variables."""
    dtype: str
    """dtype name of the result; empty for a scalar."""
    seconds: float = 60.0
    """Time limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PropertyRequest:
    """Evaluate one property. Answer: `ReferenceReply`, pairs to compare or `again`."""

    root: str
    """Folder of the trusted tree."""
    pythonpath: tuple[str, ...]
    """Folders under root to import from."""
    property: str
    """The expression as written."""
    inputs: Mapping[str, Any]
    """Args and returns as seen."""
    variables: Mapping[str, Any]
    """dims and dtype variables."""
    calls: tuple[tuple[Any, ...], ...] = field(default=())
    """Results of `op(...)`, in order of evaluation, when the entry was run again."""
    seconds: float = 60.0
    """Time limit."""
