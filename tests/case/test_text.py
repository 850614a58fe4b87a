from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate.case.model import Case, DtypeScalar, TensorChoice
from gate.case.text import SEED_LIMIT, format_case, parse_case
from gate.dtypes import DTYPES
from gate.errors import CaseTextError

NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True).filter(
    lambda name: name not in ("True", "False", "null", "inf", "nan")
)
RULES = st.from_regex(r"[a-z][a-z0-9_]{0,8}(\((-?[0-9]{1,3}(,-?[0-9]{1,3})?)?\))?", fullmatch=True)
EXTENTS = st.integers(0, 2**40)
TENSORS = st.builds(
    TensorChoice,
    layout=RULES,
    fill=RULES,
    ones=st.lists(st.integers(0, 7), max_size=3).map(tuple),
    dropped=st.integers(0, 4),
    count=st.none() | st.integers(0, 6),
    vary=st.dictionaries(
        NAMES, st.lists(EXTENTS, min_size=1, max_size=3).map(tuple), max_size=2
    ).map(lambda d: tuple(d.items())),
)
DTYPE_NAMES = st.sampled_from(sorted(DTYPES))
CHOICES = (
    TENSORS
    | st.builds(DtypeScalar, name=DTYPE_NAMES)
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False)
    | st.booleans()
    | st.none()
    | st.text(st.characters(codec=None), max_size=12)
)
DIMS = st.dictionaries(NAMES, EXTENTS, max_size=4).map(lambda d: tuple(d.items()))
GROUPS = st.lists(st.integers(0, 99), max_size=4).map(lambda e: (("...", tuple(e)),))


@st.composite
def cases(draw: st.DrawFn) -> Case:
    group = draw(st.just(()) | GROUPS)
    return Case(
        op=draw(NAMES),
        dims=group + draw(DIMS),
        dtypes=tuple(draw(st.dictionaries(NAMES, DTYPE_NAMES, max_size=3)).items()),
        args=tuple(draw(st.dictionaries(NAMES, CHOICES, max_size=5)).items()),
        seed=draw(st.integers(0, SEED_LIMIT - 1)),
    )


@given(cases())
def test_a_case_survives_its_text(case: Case) -> None:
    text = format_case(case)
    again = parse_case(text)
    assert again == case
    assert format_case(again) == text
    assert [type(c) for _, c in again.args] == [type(c) for _, c in case.args]


@given(cases())
def test_a_case_text_is_one_line_of_plain_characters(case: Case) -> None:
    text = format_case(case)
    assert text.isascii() and text.isprintable()


def test_the_text_of_a_case_with_everything_is_this_one() -> None:
    case = Case(
        op="op",
        dims=(("...", (2, 3)), ("N", 513)),
        dtypes=(("T", "float16"),),
        args=(
            ("x", TensorChoice(layout="row_gap", fill="needle(127,0)", ones=(0, 2), dropped=2)),
            ("xs", TensorChoice(fill="ramp", count=3, vary=(("N", (4, 7, 1)),))),
            ("eps", 1e-05),
            ("flag", True),
            ("n", -3),
            ("mode", 'a "b"; ]'),
            ("out", DtypeScalar(name="float16")),
            ("w", None),
        ),
        seed=0x9F3C01,
    )
    expected = (
        "op[...=2x3 N=513; T=float16; x=row_gap/needle(127,0)~0,2~d2 "
        'xs=contiguous/ramp*3{N=4,7,1} eps=1e-05 flag=True n=-3 mode="a \\"b\\"; ]" '
        "out=dtype:float16 w=null; seed=9f3c01]"
    )
    assert format_case(case) == expected
    assert parse_case(expected) == case


def test_empty_sections_are_written_as_a_dash() -> None:
    assert format_case(Case(op="f")) == "f[-; -; -; seed=000000]"
    assert format_case(Case(op="f", dims=(("...", ()),))) == "f[...=(); -; -; seed=000000]"


@pytest.mark.parametrize(
    ("text", "column", "expected"),
    [
        ("", 1, "the op's name"),
        ("softmax", 8, "`[`"),
        ("softmax[B=1; T=float32; x=contiguous/normal]", 44, "`; `"),
        ("softmax[B=one; -; -; seed=000000]", 11, "an extent"),
        ("softmax[B=1 B=2; -; -; seed=000000]", 13, "another name than B"),
        ("softmax[-; T=flaot32; -; seed=000000]", 14, "did you mean float32"),
        ("softmax[-; -; x=contiguous; seed=000000]", 17, "`layout/fill`"),
        ("softmax[-; -; x=contiguous/; seed=000000]", 28, "a fill"),
        ("softmax[-; -; x=a/b~; seed=000000]", 21, "an axis"),
        ('softmax[-; -; s="abc; seed=000000]', 17, "a string"),
        ("softmax[-; -; -; seed=12345]", 23, "six hexadecimal"),
        ("softmax[-; -; -; seed=000000] ", 30, "the end of the text"),
    ],
)
def test_an_error_points_at_the_column_and_says_what_was_expected(
    text: str, column: int, expected: str
) -> None:
    with pytest.raises(CaseTextError) as caught:
        parse_case(text)
    message = caught.value.message
    assert f"column {column}:" in message
    assert expected in message.splitlines()[0]
    assert message.splitlines()[-1] == " " * (4 + column - 1) + "^"


@given(cases(), st.data())
def test_a_damaged_text_is_an_error_of_the_case_text_or_another_case(
    case: Case, data: st.DataObject
) -> None:
    text = format_case(case)
    at = data.draw(st.integers(0, len(text) - 1))
    other = text[:at] + data.draw(st.sampled_from("[];=~* x0\x1b")) + text[at + 1 :]
    try:
        parse_case(other)
    except CaseTextError as problem:
        assert "column" in problem.message
        assert "\x1b" not in problem.message


def test_a_seed_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="below"):
        format_case(Case(op="f", seed=SEED_LIMIT))
