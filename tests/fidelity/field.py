"""The field's kernels as a table: tensors, a launch, and what must come out, on any device."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import field_forms as g
import field_kernels as f
import numpy as np
import torch
import triton
from values import numbers

Tensors = Mapping[str, torch.Tensor]
F = torch.nn.functional


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One launch of a correct kernel."""

    name: str
    """Unique name."""
    tensors: Callable[[], dict[str, torch.Tensor]]
    """The tensors of the call, on the CPU."""
    launch: Callable[[Tensors], None]
    """Launches the kernel on them, wherever they were moved."""
    want: Callable[[Tensors], torch.Tensor]
    """What `out` must hold, from the tensors as they were."""
    out: str = "y"
    """The tensor that is compared."""
    near: float = 1e-5
    """Allowed absolute distance."""
    fresh: tuple[str, ...] = ("y",)
    """Tensors that hold nothing before the launch."""
    since: tuple[int, int] = (3, 6)
    """The first Triton whose compiler takes the kernel."""


def real(seed: int, *shape: int) -> torch.Tensor:
    """Return values between -2 and 2."""
    return torch.from_numpy(numbers("normal", int(np.prod(shape)), seed) / 2).float().view(shape)


def whole(seed: int, high: int, *shape: int) -> torch.Tensor:
    """Return int32 values of 0 to high - 1."""
    values = numbers(f"index:{high}", int(np.prod(shape)), seed)
    return torch.from_numpy(values.astype(np.int32)).view(shape)


def ramp(n: int) -> torch.Tensor:
    return torch.arange(1, n + 1, dtype=torch.float32)


def recurrence(t: Tensors) -> torch.Tensor:
    state, made = torch.zeros(()), []
    for a, b in zip(t["a"], t["b"], strict=True):
        state = a * state + b
        made.append(state)
    return torch.stack(made)


def nibbles(t: Tensors) -> torch.Tensor:
    order = torch.tensor([0, 4, 1, 5, 2, 6, 3, 7]) * 4
    q = (t["q"].long().view(-1, 1) >> order) & 15
    group = torch.arange(128) // 16
    return (q.reshape(-1) - t["zero"][group]) * t["scale"][group]


def rotated(t: Tensors) -> torch.Tensor:
    c, s = t["cos"].repeat(2, 1), t["sin"].repeat(2, 1)
    low, high = t["q"][:, :8], t["q"][:, 8:]
    return torch.cat([low * c - high * s, high * c + low * s], 1)


def quantised(t: Tensors) -> torch.Tensor:
    scale = t["x"].abs().amax(1, keepdim=True) / 448
    return (t["x"] / scale).to(torch.float8_e4m3fn).float()


def routed(t: Tensors) -> torch.Tensor:
    best = t["x"].softmax(1).topk(3, 1).values
    return best / best.sum(1, keepdim=True)


def shared_exponent(t: Tensors) -> torch.Tensor:
    return t["x"] / 2.0 ** (torch.floor(torch.log2(t["x"].abs().max())) - 2)


def microscaled(t: Tensors) -> torch.Tensor:
    a = t["a"].float() * torch.exp2(t["sa"].float() - 127).repeat_interleave(32, 1)
    b = t["b"].float() * torch.exp2(t["sb"].float() - 127).repeat_interleave(32, 1).T
    return a @ b


def called(t: Tensors) -> torch.Tensor:
    x = t["x"]
    once = x.view(2, 4).sum(0).max() + x.half().float().min() + x.argmax() + 2
    return x.abs().sqrt().sigmoid() + once + x.cumsum(0)


def drop(t: Tensors) -> None:
    f.dropout[(4,)](t["x"], t["y"], 30, 0.0, 77, BLOCK=8)


def shuffled(t: Tensors) -> torch.Tensor:
    counts = torch.bincount(t["at"][:6], minlength=8)
    return t["x"][t["at"].long()] + counts


def scanned(t: Tensors) -> torch.Tensor:
    x = t["x"]
    return x.flip(0).cumsum(0).flip(0) + x.flip(1).cummax(1).values.flip(1)


def dotted(how: str) -> Field:
    """Return a product that starts from an accumulator, in one precision."""
    return Field(
        name=f"dot_acc_{how}",
        tensors=lambda: {"a": real(1, 16, 32), "b": real(2, 32, 16), "y": torch.zeros(16, 16)},
        launch=lambda t: g.dot_acc[(1,)](t["a"], t["b"], t["y"], M=16, N=16, K=32, PREC=how),
        want=lambda t: 2 * (t["a"] @ t["b"]) + 1,
        near=0.1 if how == "tf32" else 1e-4,
    )


def plain(name: str, launch: Callable[[Tensors], None], want: Callable[[Tensors], torch.Tensor],
          n: int = 8, near: float = 1e-5) -> Field:  # fmt: skip
    """Return a field of one ramp in and one block out."""
    return Field(
        name=name, tensors=lambda: {"x": ramp(n), "y": torch.zeros(n)}, launch=launch, want=want,
        near=near,
    )  # fmt: skip


def gated(name: str, act: object, want: Callable[[torch.Tensor], torch.Tensor]) -> Field:
    """Return a gated unit whose activation is an argument of the kernel."""
    return Field(
        name=name,
        tensors=lambda: {"a": real(1, 20), "b": real(2, 20), "y": torch.zeros(20)},
        launch=lambda t: f.glu[(3,)](f.Pair(t["a"], t["b"]), t["y"], 20, ACT=act, BLOCK=8),
        want=lambda t: want(t["a"]) * t["b"],
    )


NORMS = (
    Field(
        name="group_norm",
        tensors=lambda: {
            "x": real(1, 3, 50), "w": real(2, 50), "b": real(3, 50), "y": torch.zeros(3, 50)
        },
        launch=lambda t: f.group_norm[(3,)](t["x"], t["w"], t["b"], t["y"], 50, 1e-5, BLOCK=64),
        want=lambda t: torch.layer_norm(t["x"], (50,), t["w"], t["b"], 1e-5),
    ),
    Field(
        name="linear_attention",
        tensors=lambda: {"a": real(1, 37) / 2, "b": real(2, 37), "y": torch.zeros(37)},
        launch=lambda t: f.linear_attention_scan[(1,)](t["a"], t["b"], t["y"], 37, BT=16),
        want=recurrence,
    ),
    Field(
        name="rotary",
        tensors=lambda: {"q": real(1, 6, 16), "cos": real(2, 3, 8), "sin": real(3, 3, 8)},
        launch=lambda t: f.rope_inplace[(6,)](
            t["q"], t["cos"], t["sin"], 3, D=16, BACKWARD=False
        ),
        want=rotated, out="q", fresh=(),
    ),
    Field(
        name="router",
        tensors=lambda: {
            "x": real(1, 5, 16), "y": torch.zeros(5, 3), "ids": torch.zeros(5, 3).int()
        },
        launch=lambda t: f.topk_router[(5,)](t["x"], t["y"], t["ids"], E=16, K=3),
        want=routed, fresh=("y", "ids"),
    ),
    gated("gated_silu", f.silu_mul, F.silu),
    gated("gated_gelu", f.gelu_mul, F.gelu),
)  # fmt: skip

QUANTISED = (
    Field(
        name="awq",
        tensors=lambda: {
            "q": (whole(1, 2**31 - 1, 16) * 2), "scale": real(2, 8), "zero": ramp(8),
            "y": torch.zeros(128),
        },
        launch=lambda t: f.int4_dequant[(2,)](t["q"], t["scale"], t["zero"], t["y"], 0, G=16, BK=8),
        want=nibbles,
    ),
    Field(
        name="fp8_groups",
        tensors=lambda: {
            "x": real(1, 4, 30), "y": torch.zeros(4, 30).to(torch.float8_e4m3fn),
            "s": torch.zeros(4),
        },
        launch=lambda t: f.fp8_quant_group[(4,)](
            t["x"], t["y"], t["s"], 30, FP8_MAX=448.0, BLOCK=32
        ),
        want=quantised, near=32.0, fresh=("s",),
    ),
    Field(
        name="e8m0",
        tensors=lambda: {
            "x": real(1, 32), "y": torch.zeros(32), "e": torch.zeros(1, dtype=torch.uint8)
        },
        launch=lambda t: f.e8m0_scale[(1,)](t["x"], t["y"], t["e"], BLOCK=32),
        want=shared_exponent, fresh=("y", "e"),
    ),
    Field(
        name="microscaled_dot",
        tensors=lambda: {
            "a": real(1, 16, 64).to(torch.float8_e4m3fn), "sa": (whole(2, 5, 16, 2) + 125).byte(),
            "b": real(3, 64, 16).to(torch.float8_e4m3fn), "sb": (whole(4, 5, 16, 2) + 125).byte(),
            "y": torch.zeros(16, 16),
        },
        launch=lambda t: g.scaled_product[(1,)](
            t["a"], t["sa"], t["b"], t["sb"], t["y"], M=16, N=16, K=64
        ),
        want=microscaled, near=0.05,
    ),
    Field(
        name="narrow_integers",
        tensors=lambda: {
            "x": torch.tensor([127, -128, 100, -1], dtype=torch.int8),
            "y": torch.zeros(16, dtype=torch.int8),
        },
        launch=lambda t: g.narrow_ints[(1,)](t["x"], t["y"], N=4),
        want=lambda t: torch.tensor(
            [-2, 0, -56, -2, 63, 64, 50, 127, 71, 72, 44, -57, -44, 0, 48, -44]
        ),
    ),
)  # fmt: skip

SHARED = (
    Field(
        name="spin_lock",
        tensors=lambda: {"x": ramp(30), "y": torch.zeros(1), "lock": torch.zeros(1).int()},
        launch=lambda t: f.spin_lock_sum[(4,)](t["x"], t["y"], t["lock"], 30, BLOCK=8),
        want=lambda t: torch.tensor([465.0]), fresh=(),
    ),
    Field(
        name="float_atomic_max",
        tensors=lambda: {"x": real(1, 30), "y": torch.full((4,), -9.0)},
        launch=lambda t: f.float_atomic_max[(4,)](t["x"], t["y"], 30, BLOCK=8),
        want=lambda t: torch.stack([t["x"][k::4].max() for k in range(4)]), fresh=(),
    ),
    *(
        Field(
            name=f"half_atomics_{str(dtype)[6:]}",
            tensors=lambda dtype=dtype: {
                "x": ramp(8).to(dtype), "y": torch.zeros(4, dtype=dtype)
            },
            launch=lambda t: g.half_atomics[(1,)](t["x"], t["y"], N=8),
            want=lambda t: torch.tensor([6.0, 8, 10, 12]), fresh=(),
        )
        for dtype in (torch.float16, torch.bfloat16)
    ),
    Field(
        name="float_exchange",
        tensors=lambda: {"x": ramp(8), "z": torch.full((8,), 5.0), "y": torch.zeros(8)},
        launch=lambda t: g.float_exchange[(1,)](t["x"], t["z"], t["y"], N=8),
        want=lambda t: torch.full((8,), 5.0),
    ),
    Field(
        name="descriptor_atomics",
        tensors=lambda: {"x": ramp(240).view(12, 20), "y": torch.zeros(12, 20)},
        launch=lambda t: g.tma_tile[(2, 2)](t["x"], t["y"], 12, 20, BM=8, BN=16),
        want=lambda t: 2 * t["x"], fresh=(),
    ),
    Field(
        name="tuned_sum",
        tensors=lambda: {"x": ramp(20), "y": torch.zeros(20)},
        launch=lambda t: g.tuned_sum[lambda meta: (triton.cdiv(20, meta["BLOCK"]),)](
            t["x"], t["y"], 20
        ),
        want=lambda t: t["x"], fresh=(),
    ),
)  # fmt: skip

FORMS = (
    replace(
        plain("keyworded", lambda t: g.keyworded[(1,)](t["x"], t["y"], n=8, BLOCK=8),
              lambda t: 2 * t["x"]),
        since=(3, 9),  # an argument that is given by its name only
    ),
    plain("not_inlined", lambda t: g.calls_not_inlined[(1,)](t["x"], t["y"], 8, BLOCK=8),
          lambda t: 3 * t["x"] + 1),
    plain("static_text", lambda t: g.static_text[(1,)](t["x"], t["y"], BLOCK=8, KIND="b"),
          lambda t: t["x"] + 1),
    plain("optional", lambda t: g.optional[(1,)](t["x"], t["y"], None, None, True),
          lambda t: 2 * t["x"] + 1),
    replace(
        plain("nested", lambda t: g.nested[(1,)](t["x"], t["y"], BLOCK=8), lambda t: 9 * t["x"]),
        since=(3, 7),  # a helper that returns None in a tuple
    ),
    plain("power_and_floor", lambda t: g.power_and_floor[(1,)](t["x"], t["y"], 7, N=8),
          lambda t: t["x"]),
    plain("persistent", lambda t: f.persistent_copy[(3,)](t["x"], t["y"], 45, NUM=3, BLOCK=8),
          lambda t: t["x"], n=45),
    Field(
        name="tuple_of_pointers", tensors=lambda: {"x": ramp(16), "y": torch.zeros(8)},
        launch=lambda t: g.strided_sum[(1,)](
            (t["x"], t["x"]), (1, 2), t["y"], N=8, BLOCK=8
        ),
        want=lambda t: t["x"][:8] + t["x"][::2],
    ),
    plain("kept_by_dropout", drop, lambda t: t["x"], n=30),
    plain("doubled", lambda t: g.doubled[(2,)](t["x"], t["y"], 9, BLOCK=8), lambda t: 2 * t["x"],
          n=9),
    Field(
        name="methods", tensors=lambda: {"x": real(1, 8), "y": torch.zeros(8)},
        launch=lambda t: g.methods[(1,)](t["x"], t["y"], BLOCK=8), want=called,
    ),
    Field(
        name="gathers",
        tensors=lambda: {"x": ramp(8), "at": whole(1, 8, 8), "y": torch.zeros(8)},
        launch=lambda t: g.gathers[(1,)](t["x"], t["at"], t["y"], N=8), want=shuffled,
    ),
    Field(
        name="scans", tensors=lambda: {"x": real(1, 4, 8), "y": torch.zeros(4, 8)},
        launch=lambda t: g.block_scan_2d[(1,)](t["x"], t["y"], M=4, N=8), want=scanned,
    ),
    Field(
        name="sorted",
        tensors=lambda: {"x": real(1, 16), "y": torch.zeros(16), "z": torch.zeros(16)},
        launch=lambda t: g.sorter[(1,)](t["x"], t["y"], t["z"], N=16),
        want=lambda t: t["x"].sort(descending=True).values, fresh=("y", "z"),
        since=(3, 9),  # tl.flip without its dim
    ),
    dotted("ieee"), dotted("tf32"), dotted("tf32x3"),
    Field(
        name="batched_dot",
        tensors=lambda: {"a": real(1, 2, 16, 16), "b": real(2, 2, 16, 16),
                         "y": torch.zeros(2, 16, 16)},
        launch=lambda t: g.batched_dot[(1,)](t["a"], t["b"], t["y"], B=2, M=16),
        want=lambda t: t["a"] @ t["b"], near=1e-4,
    ),
)  # fmt: skip

LAUNCHES: tuple[Field, ...] = (*NORMS, *QUANTISED, *SHARED, *FORMS)
"""Every launch."""
_HERE = tuple(int(part) for part in triton.__version__.split(".")[:2])
FIELDS = tuple(one for one in LAUNCHES if one.since <= _HERE)
"""The launches that this Triton compiles."""
