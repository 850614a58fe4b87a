"""The builder that Triton's language calls instead of MLIR's: the mixins put together."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from gate.run.faithful.arithmetic import Arithmetic
from gate.run.faithful.block import Block
from gate.run.faithful.descriptors import Descriptors
from gate.run.faithful.dots import Dots
from gate.run.faithful.externs import function
from gate.run.faithful.formats import numpy_of
from gate.run.faithful.maths import Maths
from gate.run.faithful.memory import Spins
from gate.run.faithful.model import FaithfulOptions
from gate.run.faithful.shapes import Shapes
from gate.run.faithful.storage import Storages
from gate.run.faithful.unsupported import Unsupported
from gate.run.faithful.watch import Faults, Watch


def _smallest_dot(lhs: Any, rhs: Any) -> tuple[int, int, int]:
    """Return the least M, N and K of a dot on NVIDIA's tensor cores, by the operands' width."""
    depth = {8: 32, 16: 16, 32: 8, 64: 4}
    return (1, 1, depth.get(lhs.scalar.primitive_bitwidth, 1))


def _options(arch: int) -> SimpleNamespace:
    """Return compile options as the CUDA backend sets them for this capability."""
    floats = ("fp8e4b15", "fp8e5", "fp8e4nv") if arch >= 89 else ("fp8e4b15", "fp8e5")
    return SimpleNamespace(
        debug=False, sanitize_overflow=False, arch=f"sm{arch}", backend_name="cuda",
        supported_fp8_dtypes=floats, deprecated_fp8_dot_operand_dtypes=(),
        default_dot_input_precision="tf32",
        allowed_dot_input_precisions=("tf32", "tf32x3", "ieee", "bf16x3", "bf16x6"),
        max_num_imprecise_acc_default=2**30 if arch == 90 else 0, num_warps=4, num_ctas=1,
        num_stages=3, enable_fp_fusion=True, enable_iisan=False, extern_libs=None,
    )  # fmt: skip


class FaithfulBuilder(Shapes, Arithmetic, Maths, Dots, Descriptors):
    """Executes each operation at once on NumPy arrays, as the GPU would."""

    def __init__(self, settings: FaithfulOptions) -> None:
        self.arch = settings.arch
        self.options = _options(settings.arch)
        self.codegen_fns = {
            "convert_custom_types": self._custom_types,
            "min_dot_size": _smallest_dot,
        }
        self.grid_idx = (0, 0, 0)
        self.grid_dim = (1, 1, 1)
        self.storages = Storages()
        self.watch = Watch(Faults(limit=settings.max_faults), frozenset())
        self.spins = Spins(settings.spin_limit)
        self.watch_wraps = False
        self.fuses = True
        self.addresses_escaped = False

    def _custom_types(
        self, source: Any, dst_type: Any, rounding: Any = None, _semantic: Any = None
    ) -> Any:
        made = self.create_fp_to_fp(source.handle, dst_type, rounding)
        return _semantic.tensor(made, dst_type)

    def get_cache_policy(self, *_: Any) -> None:
        """Caches do not change results."""

    def create_cache_policy(self, *_: Any, **__: Any) -> None:
        """Caches do not change results."""

    def create_extern_elementwise(
        self, library: str, path: str, symbol: str, args: Sequence[Any], ret_type: Any, pure: bool
    ) -> Block:
        """Call a function of the device library on blocks.

        Raises
            Unsupported  the function is not emulated
        """
        if path and "libdevice" not in path and not symbol.startswith(("__nv_", "__ocml_")):
            raise Unsupported(f"the external function `{symbol}` cannot run in the interpreter")
        data = [arg.data if isinstance(arg, Block) else np.asarray(arg) for arg in args]
        held = numpy_of(ret_type)
        made = np.asarray(function(symbol)(*data))
        return Block(made if made.dtype == held else made.astype(held), ret_type.scalar)

    def create_inline_asm(self, assembly: str, *_: Any) -> Block:
        """Refuse: NumPy runs no PTX.

        Raises
            Unsupported  always
        """
        text = " ".join(str(assembly).split())[:60]
        raise Unsupported(f"inline assembly cannot run in the interpreter: {text}")
