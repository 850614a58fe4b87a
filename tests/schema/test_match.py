"""Which ops cover which kernels: ids, globs, dotted modules, defaults and near misses."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from schema_texts import BASE, changed, load

from gate.errors import SchemaError
from gate.schema import paths
from gate.schema.match import asks_for, check_kernels, covered, match, names_kernel, patterns
from gate.schema.paths import glob_match


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    kernels: dict[str, object] = field(default_factory=dict)


def index(*kernels: str) -> Index:
    return Index(kernels=dict.fromkeys(kernels))


TREE = index(
    "k.py::base_kernel", "k.py::other_kernel", "src/pkg/ops/norm.py::norm_fwd",
    "src/pkg/ops/norm.py::norm_bwd", "src/pkg/ops/__init__.py::shared", "vendor/k.py::base_kernel",
    "a-b/c d[1].py::odd",
)  # fmt: skip


@pytest.mark.parametrize(
    ("pattern", "kernels"),
    [
        ("k.py::base_kernel", ["k.py::base_kernel"]),
        ("k.py::*_kernel", ["k.py::base_kernel", "k.py::other_kernel"]),
        ("**/k.py::base_*", ["k.py::base_kernel", "vendor/k.py::base_kernel"]),
        ("*.py::base_kernel", ["k.py::base_kernel"]),
        ("src/**::*", ["src/pkg/ops/__init__.py::shared", "src/pkg/ops/norm.py::norm_bwd",
                       "src/pkg/ops/norm.py::norm_fwd"]),
        ("pkg.ops.norm::norm_fwd", ["src/pkg/ops/norm.py::norm_fwd"]),
        ("pkg.ops.norm::*", ["src/pkg/ops/norm.py::norm_bwd", "src/pkg/ops/norm.py::norm_fwd"]),
        ("ops.norm::norm_[fb]wd", ["src/pkg/ops/norm.py::norm_bwd",
                                   "src/pkg/ops/norm.py::norm_fwd"]),
        ("pkg.ops::shared", ["src/pkg/ops/__init__.py::shared"]),
        ("kg.ops.norm::norm_fwd", []),
        ("k.py::base", []),
        ("a-b/c d[1].py::odd", ["a-b/c d[1].py::odd"]),
    ],
)  # fmt: skip
def test_ids_and_globs_name_kernels_in_paths_and_in_modules(
    pattern: str, kernels: list[str]
) -> None:
    assert sorted(k for k in TREE.kernels if names_kernel(pattern, k)) == kernels


def test_without_kernels_an_op_gates_every_kernel_of_its_entrys_file() -> None:
    assert covered(load(BASE), TREE) == ("k.py::base_kernel", "k.py::other_kernel")


def test_without_kernels_a_raw_launch_gates_the_kernel_that_it_launches() -> None:
    raw = changed("entry: k.py::base(x,", "entry: k.py::other_kernel[(M,)](x,")
    raw = changed("  y: {tensor: [M, N], dtype: T}\n", "", raw).replace("returns:\n", "")
    raw = changed("x: {tensor: [M, N], dtype: T}", "x: {tensor: [M, N], dtype: T, io: inout}", raw)
    assert patterns(load(raw)) == ("k.py::other_kernel",)
    assert covered(load(raw), TREE) == ("k.py::other_kernel",)


def test_a_dotted_entry_gates_the_file_of_its_module() -> None:
    schema = load(changed("entry: k.py::base(", "entry: pkg.ops.norm::base("))
    assert covered(schema, TREE) == (
        "src/pkg/ops/norm.py::norm_bwd",
        "src/pkg/ops/norm.py::norm_fwd",
    )


def test_two_ops_may_cover_one_kernel() -> None:
    one, two = load(BASE), load(BASE.replace("op: base", "op: second"))
    assert match([two, one], TREE, "k.py::base_kernel").ops == ("base", "second")


def test_a_kernel_without_an_op_is_told_the_nearest_miss() -> None:
    schema = load(BASE + "kernels: [k.py::base_kernel]\n")
    found = match([schema], TREE, "k.py::other_kernel")
    assert found.ops == ()
    assert found.near == "base in a.op.yaml gates k.py::base_kernel"
    dotted = load(BASE + "kernels: [pkg.ops.norm::norm_fwd]\n")
    near = match([dotted], TREE, "src/pkg/ops/norm.py::norm_bwd").near
    assert near == "base in a.op.yaml gates pkg.ops.norm::norm_fwd"
    assert match([schema], TREE, "src/q/zzz.py::yyy").near == ""


def test_a_glob_that_names_no_kernel_is_an_error_with_the_nearest_kernel() -> None:
    schema = load(BASE + "kernels: [k.py::base_kernal, k.py::*]\n")
    with pytest.raises(SchemaError) as caught:
        check_kernels([schema], TREE)
    (problem,) = caught.value.problems
    assert problem.path == "$.kernels[0]"
    assert "names no kernel of the tree (did you mean k.py::base_kernel?)" in problem.what
    assert check_kernels([load(BASE)], TREE) is None


def test_a_default_that_gates_nothing_asks_for_kernels() -> None:
    with pytest.raises(SchemaError, match="name those that it gates"):
        check_kernels([load(BASE)], index("q.py::kernel"))


_NAMES = st.text(alphabet="ab_", min_size=1, max_size=4)
_PATHS = st.lists(_NAMES, min_size=1, max_size=4).map(lambda parts: "/".join(parts) + ".py")


@given(_PATHS, _NAMES)
def test_an_id_names_itself_and_a_module_names_its_file(path: str, name: str) -> None:
    kernel = f"{path}::{name}"
    assert names_kernel(kernel, kernel)
    module = path.removesuffix(".py").replace("/", ".")
    assert names_kernel(f"{module}::{name}", kernel)
    assert names_kernel(f"{module}::*", f"src/{kernel}")


@given(st.text(max_size=30), st.text(alphabet="ab*?[]!^-/\\:.", max_size=20))
def test_any_glob_matches_or_does_not_and_raises_nothing(path: str, pattern: str) -> None:
    assert glob_match(path, pattern) in (True, False)


_GLOBS = st.lists(
    st.sampled_from(["*", "**", "**/", "?", "a", "b", "/", ":", "[ab]", "[!a]", "[^b-c]", "[a-"]),
    max_size=6,
).map("".join)


@settings(max_examples=400, deadline=None)
@given(st.text(alphabet="ab/:", max_size=8), _GLOBS)
def test_the_two_ways_of_matching_agree(path: str, pattern: str) -> None:
    by_regex = paths._regex(pattern).fullmatch(path) is not None
    assert paths._walk(path, paths._tokens(pattern)) is by_regex


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("path", "pattern"),
    [("a/" * 90 + "b", "**/" * 90 + "x"), ("a" * 300, "*a" * 150 + "b"), ("a" * 99, "a" * 2000)],
)
def test_a_pattern_of_many_stars_ends_soon(path: str, pattern: str) -> None:
    assert not glob_match(path, pattern)


@pytest.mark.parametrize(
    ("pattern", "asked"),
    [
        ("src/ops/softmax.py::fused_kernel", True),
        ("**/*.py::*fused*", True),
        ("*fused*", True),
        ("fused_kernel", True),
        ("softmax.py", True),
        ("softmax*", True),
        ("soft*.py::fused*", True),
        ("src/ops/softmax.py", True),
        ("./src/ops/softmax.py::fused_kernel", True),
        ("src/ops/*.py", True),
        ("**/softmax.py", True),
        ("src/ops", False),
        ("src/softmax.py", False),
        ("src/ops/softmax.py::other", False),
        ("*soft", False),
        ("ops", False),
        ("*/softmax.py::fused_kernel", False),
        ("soft*.py::other", False),
    ],
)
def test_a_pattern_asks_by_id_by_file_or_by_function(pattern: str, asked: bool) -> None:
    assert asks_for(pattern, "src/ops/softmax.py::fused_kernel") is asked
