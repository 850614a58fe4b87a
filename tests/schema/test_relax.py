"""Every way in which a head schema demands less is listed; whatever demands more is not."""

from __future__ import annotations

import pytest
from schema_texts import BASE, changed, data_schemas, load

from gate.schema.config import load_config
from gate.schema.model import OpSchema
from gate.schema.relax import relaxations
from gate.schema.relaxconfig import config_relaxations

X = "x: {tensor: [M, N], dtype: T"
Y = "y: {tensor: [M, N], dtype: T"
IDS = "dtype: I, values: 0..N-1"


def listed(before: str, after: str) -> list[str]:
    found = relaxations([load(before)], [load(after)])
    assert all(text.startswith("op base: ") for text in found)
    return [text.removeprefix("op base: ") for text in found]


STEPS = [
    ("tolerance: 4", "tolerance: 2",
     "tolerance goes from the envelope times 2 to the envelope times 4"),
    ("tolerance: 4", "", "tolerance goes from the rounding envelope to the envelope times 4"),
    ("", "tolerance: 0.5", "tolerance goes from the envelope times 0.5 to the rounding envelope"),
    ("tolerance: {float16: native}", "",
     "tolerance for float16 goes from the rounding envelope to native"),
    ("tolerance: {float32: {rtol: 1e-2}}", "tolerance: {float32: {rtol: 1e-3, atol: 1}}",
     "tolerance for float32 goes from rtol 0.001, atol 1 to rtol 0.01, atol 0"),
    ("", "tolerance: {float32: {rtol: 1e-9}}",
     "tolerance for float32 goes from rtol 1e-09, atol 0 to the rounding envelope"),
    ("nonfinite: off", "", "nonfinite goes from note to off"),
    ("", "nonfinite: strict", "nonfinite goes from strict to note"),
    ("where: M < N", "", "where adds `M < N`"),
    ("raises: {ValueError: M > 3}", "", "raises adds ValueError when `M > 3`"),
    ("", "cases: [{M: 3}, {M: 4}]", "2 of its cases are dropped"),
    ("cases: [{M: 4}]", "cases: [{M: 3}, {M: 4}]", "1 of its cases is dropped"),
    ("nondeterministic: true", "nondeterministic: [y]", "nondeterministic covers every output"),
    ("nondeterministic: [y, x]", "nondeterministic: [y]", "nondeterministic covers x"),
    ("", "grad: [x]", "gradients of x are checked no more"),
    ("grad: {args: [x], clobbers: flag}", "grad: [x]",
     "incoming gradients may be overwritten when `flag`"),
    ("grad: {args: [x], layouts: contiguous}", "grad: [x]",
     "incoming gradients come contiguous only"),
    ("kernels: [k.py::a]", "kernels: [k.py::*]", "kernels change to k.py::a"),
]  # fmt: skip


@pytest.mark.parametrize(("head", "base", "words"), STEPS)
def test_a_looser_key_is_one_sentence_and_its_reverse_is_none(
    head: str, base: str, words: str
) -> None:
    assert listed(f"{BASE}{base}\n", f"{BASE}{head}\n") == [words]


ONE_WAY = [
    (X, f"{X}, layouts: contiguous", "layouts of x go from any to contiguous"),
    (f"{X}, layouts: inner", f"{X}, layouts: contiguous",
     "layouts of x go from inner to contiguous"),
    (X, f"{X}, io: clobbered", "io of x goes from in to clobbered"),
    (X, f"{X}, io: inout", "io of x goes from in to inout"),
    (X, f"{X}, live: {{M: n}}", "live of x declares dead elements"),
    (X, f"{X}, values: 0..1", "the values of x change and may be narrower"),
    (f"{X}, values: -2..2", f"{X}, values: -1..2", "the values of x change and may be narrower"),
    (f"{X}, values: {{also: [nan]}}", X, "the values of x change and may be narrower"),
    (X, f"{X}, values: {{except: [0]}}", "the values of x change and may be narrower"),
    (f"{X}, broadcast: true", X, "broadcast of x is narrowed"),
    (f"{X}, broadcast: [M, N]", f"{X}, broadcast: [M]", "broadcast of x is narrowed"),
    (f"{X}, list: 1..4", f"{X}, list: 2..4", "the list x has fewer lengths"),
    (X, f"{X}, device: cpu", "x stays on the host"),
    (X, "x: {tensor: [N, M], dtype: T", "the shape of x changes"),
    (X, "x: {tensor: [M, N], dtype: float32", "the dtype of x changes to float32"),
    ("dtype: T, optional: true", "dtype: T", "arg w is never left out any more"),
    (IDS, f"{IDS}, optional: false", ""),
    ("values: 1..4", "values: 1..3", "the values of n change and may be narrower"),
    ("values: 1..4", "values: [1, 2, 3, 4]", "the values of n change and may be narrower"),
    ("values: [mean, sum]", "values: [mean]", "the values of kind change and may be narrower"),
    ("scalar: int, values: 1..4", "scalar: float, values: 1..4",
     "arg n goes from a scalar int to a scalar float"),
    ("M: 1..64", "M: 1..63", "dim M goes from 1..64 to 1..63"),
    ("M: 1..64", "M: 2..64", "dim M goes from 1..64 to 2..64"),
    ("M: 1..64", "M: [1, 2, 64]", "dim M goes from 1..64 to [1, 2, 64]"),
    ("M: 1..64", "M: {range: 1..64, multiple_of: 2}",
     "dim M goes from 1..64 to 1..64, multiples of 2"),
    ("M: {range: 1..64, tile: 32}", "M: 1..64", "dim M goes from 1..64 with tile 32 to 1..64"),
    ("M: [1, 2, 3]", "M: [1, 2]", "dim M goes from [1, 2, 3] to [1, 2]"),
    ("M: [1, 2, 3]", "M: 2..9", "dim M goes from [1, 2, 3] to 2..9"),
    ("K: 2 * N", "K: 3 * N", "dim K goes from 2 * N to 3 * N"),
    ("[float32, float16]", "[float32]", "dtype variable T drops float16"),
    ("k.py::base(x, w, ids, n, flag, kind)\nref", "k.py::base(x, w, ids, n, flag, 'mean')\nref",
     "entry changes to `k.py::base(x, w, ids, n, flag, 'mean')`"),
    ("refs/k.py::base(", "refs/k.py::easier(",
     "reference changes from `refs/k.py::base(x, w, ids, n, flag, kind)` to "
     "`refs/k.py::easier(x, w, ids, n, flag, kind)`"),
    (Y, f"{Y}, tolerance: 3",
     "tolerance of y goes from the rounding envelope to the envelope times 3"),
    (Y, f"{Y}, compare: close", "y is compared in another way"),
    (Y, f"{Y}, order: any", "y may come in any order"),
    (Y, f"{Y}, when: flag", "y is expected under another condition"),
    (Y, f"{Y}, live: {{M: n}}", "less of y is compared"),
    (Y, "y: {dtype: T", "the shape of y changes"),
    (Y, "y: {tensor: [M, N], dtype: float32", "the dtype of y changes to float32"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "words"), ONE_WAY)
def test_a_loosened_arg_dim_or_return_is_one_sentence(old: str, new: str, words: str) -> None:
    base = BASE if old in BASE else _with(old)
    head = base.replace(old, new, 1)
    assert listed(base, head) == ([words] if words else [])


def _with(line: str) -> str:
    """Put a line that the base schema does not have in the place of the one that it has."""
    for start, held in (("x:", X), ("M:", "M: 1..64")):
        if line.startswith(start):
            return BASE.replace(held, line, 1)
    raise AssertionError(line)


WIDER = [
    ("M: 1..64", "M: 0..65"),
    ("M: 1..64", "M: {range: 1..64, tile: 16}"),
    ("[float32, float16]", "[float32, float16, bfloat16]"),
    ("values: 1..4", "values: 1..5"),
    ("values: [mean, sum]", "values: [mean, sum, none]"),
    (X, f"{X}, optional: true"),
    (X, f"{X}, broadcast: true"),
    (X, f"{X}, values: {{also: [inf]}}"),
    (Y, f"{Y}, compare: exact"),
    (Y, f"{Y}, tolerance: 0.5"),
    (X, f"{X}, values: {{also: [nan]}}"),
]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("values: [1, 3]", "values: 1..4"),
        ("values: [1, 3]", "values: [3, 1, 2]"),
        ("values: 2..3", "values: 1..4"),
    ],
)
def test_a_domain_that_holds_the_old_one_is_not_listed(old: str, new: str) -> None:
    base = changed("values: 1..4", old)
    assert listed(base, base.replace(old, new)) == []
    assert listed(base.replace(old, new), base) == ["the values of n change and may be narrower"]


def test_ranges_that_cannot_be_compared_are_listed() -> None:
    base = changed("M: 1..64", 'M: "1..min(N, 64)"')
    head = base.replace("min(N, 64)", "min(N, 65)")
    assert listed(base, head) == ["dim M goes from 1..min(N, 64) to 1..min(N, 65)"]


def test_a_result_that_need_not_be_the_arg_any_more_is_listed() -> None:
    base = changed(Y + "}", "y: {is: x}").replace(X, f"{X}, io: inout")
    found = listed(base, changed(X, f"{X}, io: inout"))
    assert "y need not be x any more" in found
    base = changed(X, f"{X}, list: 2..4, vary: [M, N]")
    assert "the tensors of x vary in fewer dims" in listed(base, base.replace("[M, N]}", "[M]}"))


@pytest.mark.parametrize(("old", "new"), WIDER)
def test_a_schema_that_demands_more_is_not_listed(old: str, new: str) -> None:
    assert listed(BASE, changed(old, new)) == []


def test_a_deleted_schema_is_listed_and_a_new_one_is_not() -> None:
    one, two = load(BASE), load(BASE.replace("op: base", "op: second"))
    assert relaxations([one], [two]) == ("op base: its schema a.op.yaml is deleted",)


def test_a_narrower_dim_group_and_a_weaker_compare_are_listed() -> None:
    base = data_schemas()
    text = BASE.replace("dims: {", 'dims: {"...": {rank: 0..3, range: 1..9}, ')
    text = text.replace("x: {tensor: [M", "x: {tensor: [..., M")
    assert listed(text, text.replace("0..3", "0..2")) == [
        "the dim group `...` has fewer ranks or extents"
    ]
    assert listed(text, text.replace("0..3", "0..4")) == []
    assert relaxations(list(base.values()), list(base.values())) == ()


def test_dropped_args_returns_dims_and_properties_are_listed() -> None:
    before = BASE.replace("returns:", "returns:\n  z: {tensor: [M], dtype: float32}")
    before += "properties: close(y, y)\nindependent: M\n"
    after = BASE.replace("w, ids", "ids").replace(
        "  w: {tensor: [K], dtype: T, optional: true}\n", ""
    )
    found = listed(before, after.replace("w, ids", "ids").replace(", K: 2 * N", ""))
    for words in ("dim K is gone", "arg w is gone", "return z is gone", "independent drops M",
                  "property `close(y, y)` is dropped"):  # fmt: skip
        assert words in found


def test_every_sample_lists_something_when_its_tolerance_becomes_huge() -> None:
    def loose(schema: OpSchema) -> list[str]:
        raw = f"{BASE.replace('op: base', f'op: {schema.op}')}tolerance: 99999\n"
        return list(relaxations([schema], [load(raw)]))

    for schema in data_schemas().values():
        assert loose(schema)


def test_a_weaker_configuration_is_listed() -> None:
    strong = load_config(
        b"schemas: [a.op.yaml, b.op.yaml]\nfail-on: [defect, relaxed]\nunmatched: fail\n"
        b"budget: {cases: 200, seconds: 60, ops: {a: 9, b: 9}}\nprotected-paths: [refs/**]\n",
        "c",
    )
    weak = load_config(
        b"schemas: [a.op.yaml]\nfail-on: [never]\nunmatched: ignore\ndevice: interpreter\n"
        b"budget: {cases: 2, seconds: 6, ops: {a: 3}}\nignore: {'a.py::k': flaky}\n",
        "c",
    )
    assert config_relaxations(strong, strong) == ()
    assert config_relaxations(strong, weak) == tuple(
        f"configuration: {text}"
        for text in (
            "schemas are no longer read from b.op.yaml",
            "a.py::k is ignored: flaky",
            "fail-on drops defect, relaxed",
            "fail-on is never: nothing blocks",
            "unmatched goes from fail to ignore",
            "cases an op go from 200 to 2",
            "the budget goes from 60 to 6 seconds",
            "cases of op a go from 9 to 3",
            "op b loses its 9 cases",
            "device goes from auto to interpreter",
            "protected-paths drops refs/**",
        )
    )
