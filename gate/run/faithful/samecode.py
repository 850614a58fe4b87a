"""Whether two versions of a kernel become the same code: a process beside a study.

One JSON object a line on standard input, one a line on standard output, in order:

    {"specialisations": [{"path": [...], "module": "ops.softmax", "file": "/tree/ops/softmax.py",
     "function": "softmax_kernel", "signature": {...}, "constants": {...}, "aligned": [...],
     "options": {...}}, ...],
     "other": "/other/ops/softmax.py", "target": "sm_90", "question": "whole"}
    {"yes": true, "unknown": ""}

Equal code of one specialisation is proof that no input which leads to it can tell the versions
apart. The compiler's first language is compared first, behind its own simplifications (common
subexpressions, folded constants), since it takes milliseconds; where that differs, the assembly.
Questions are `whole`, `first` (the first language alone) and `compiles` (whether the other version
gets so far at all).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, TextIO

from gate.run.faithful.compilecheck import (
    NotHere,
    constant_of,
    kernel_of,
    on_a_private_output,
    stub_driver,
    target_of,
)

FIRST, LAST = "ttir", ("ptx", "amdgcn")
"""Stages of the compiler whose results are compared: the first that simplifies, the last that is
text."""


class Codes:
    """Compiles and compares; keeps the code of the first file, which is asked for often."""

    def __init__(self) -> None:
        self._kept: dict[str, str] = {}

    def answer(self, request: Mapping[str, Any]) -> bool:
        """Answer a request.

        Raises
            NotHere  a version cannot be compiled here
        """
        if request["question"] != "compiles":
            return self.same(request)
        for made in request["specialisations"]:
            code({**made, "file": request["other"]}, request["target"], to_the_end=False)
        return True

    def same(self, request: Mapping[str, Any]) -> bool:
        """Return whether every specialisation of a request is the same code in both files.

        Raises
            NotHere  a version cannot be compiled here
        """
        whole, target = request["question"] == "whole", request["target"]
        unlike = []
        for made in request["specialisations"]:
            if not self._alike(made, request["other"], target, to_the_end=False):
                if not whole:
                    return False
                unlike.append(made)
        return all(self._alike(made, request["other"], target, to_the_end=True) for made in unlike)

    def _alike(self, made: Mapping[str, Any], other: str, target: str, *, to_the_end: bool) -> bool:
        key = json.dumps([made, target, to_the_end], sort_keys=True)
        if key not in self._kept:
            self._kept[key] = code(made, target, to_the_end=to_the_end)
        return self._kept[key] == code({**made, "file": other}, target, to_the_end=to_the_end)


def serve(requests: TextIO, replies: TextIO) -> None:
    """Answer requests until the input ends."""
    stub_driver()
    codes = Codes()
    for line in requests:
        reply: dict[str, Any] = {"yes": False, "unknown": ""}
        try:
            reply["yes"] = codes.answer(json.loads(line))
        except NotHere as error:
            reply["unknown"] = str(error)
        replies.write(json.dumps(reply) + "\n")
        replies.flush()


def code(described: Mapping[str, Any], target: str, *, to_the_end: bool) -> str:
    """Return the code of a specialisation, without the places of the source that it came from.

    Raises
        NotHere  it does not compile here
    """
    kernel = kernel_of(dict(described))
    constants = {name: constant_of(value) for name, value in described["constants"].items()}
    try:
        return _code(kernel, described, constants, target, to_the_end=to_the_end)
    except Exception as error:
        raise NotHere(f"{type(error).__name__}: {error}") from error


def _code(
    kernel: Any, described: Mapping[str, Any], constants: dict[str, Any], target: str,
    *, to_the_end: bool,
) -> str:  # fmt: skip
    from triton._C.libtriton import ir  # noqa: PLC0415 - this process exists to pay for it
    from triton.compiler import ASTSource  # noqa: PLC0415 - see above
    from triton.compiler.compiler import make_backend  # noqa: PLC0415 - see above

    names = list(kernel.arg_names)
    attrs = {(names.index(name),): [["tt.divisibility", 16]] for name in described["aligned"]}
    source = ASTSource(kernel, dict(described["signature"]), constants, attrs)
    backend = make_backend(target_of(target))
    options = backend.parse_options(dict(described["options"]))
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    stages: dict[str, Any] = {}
    backend.add_stages(stages, options, source.language)
    metadata: dict[str, Any] = {"target": target_of(target), **options.__dict__}
    generated = backend.get_codegen_implementation(options)
    made: Any = source.make_ir(
        target_of(target), options, generated, backend.get_module_map(), context
    )
    for name, stage in stages.items():
        made = stage(made, metadata)
        if name in LAST or (name == FIRST and not to_the_end):
            break
    return without_places(str(made))


def without_places(text: str) -> str:
    """Return the compiler's text without what says where in the source an operation came from."""
    kept = (line for line in text.splitlines() if not re.match(r"\s*(#loc|\.loc|\.file)", line))
    return "\n".join(re.sub(r" loc\([^()]*(\([^()]*\)[^()]*)*\)", "", line) for line in kept)


def main() -> None:
    """Serve the study that started this process."""
    on_a_private_output(serve)


if __name__ == "__main__":
    main()
