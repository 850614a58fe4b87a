"""Compile specialisations for a GPU that is not there: the compile process.

Runs beside an interpreter worker, without `TRITON_INTERPRET`. One JSON object a line on standard
input, one a line on standard output, in order:

    {"id": 1, "path": [...], "module": "ops.softmax", "file": "/tree/ops/softmax.py",
     "function": "softmax_kernel", "signature": {"x": "*fp32", "n": "i32", "BLOCK": "constexpr"},
     "constants": {"BLOCK": 128}, "aligned": ["x"], "options": {"num_warps": 4},
     "targets": ["sm_90"], "whole": true}
    {"id": 1, "errors": [{"target": "sm_90", "kind": "CompilationError", "line": 12,
     "message": "..."}], "unknown": "", "share": 0.25}

Without `whole` the compiler's front end runs and its back end does not: milliseconds instead of
tenths of a second, and most of what does not compile stops there (types, the value 1, `tl.dot`).

`share` is of the shared memory that a program may use. `unknown` says why a specialisation could
not be tried (its module cannot be imported here, a constant has no text form); that is no error of
the kernel.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import json
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from types import SimpleNamespace
from typing import Any, TextIO

_NOT_THE_KERNEL = (OSError, MemoryError, ImportError)
"""What a compiler raises that is not there or has no room: a missing `ptxas`, a full disk."""
_SHARED_MEMORY = {80: 166912, 86: 101376, 89: 101376, 90: 232448, 100: 232448}
"""Bytes of shared memory that a program may use, by compute capability."""


class NotHere(Exception):
    """A specialisation that this process cannot try."""


def serve(requests: Iterable[str], replies: TextIO) -> None:
    """Answer requests until the input ends."""
    stub_driver()
    for line in requests:
        request = json.loads(line)
        reply: dict[str, Any] = {"id": request["id"], "errors": [], "unknown": "", "share": 0.0}
        try:
            reply["errors"], reply["share"] = compile_all(request)
        except NotHere as error:
            reply["unknown"] = str(error)
        replies.write(json.dumps(reply) + "\n")
        replies.flush()


def compile_all(request: dict[str, Any]) -> tuple[list[dict[str, Any]], float]:
    """Compile one specialisation for each target; return its errors, and the largest share of a
    target's shared memory that it needs (1 where that is not known, 0 without the back end).

    Raises
        NotHere  the kernel or one of its constants cannot be had here
    """
    kernel = kernel_of(request)
    constants = {name: constant_of(value) for name, value in request["constants"].items()}
    errors, share = [], 0.0
    for target in request["targets"]:
        try:
            found, needed = _compile(kernel, request, constants, target)
        except _NOT_THE_KERNEL as error:
            raise NotHere(
                f"no compiler for {target} here: {type(error).__name__}: {error}"
            ) from None
        share = max(share, needed)
        if found is not None:
            errors.append({"target": target, **found})
    return errors, share


def _compile(
    kernel: Any, request: dict[str, Any], constants: dict[str, Any], target: str
) -> tuple[dict[str, Any] | None, float]:
    import triton  # noqa: PLC0415 - this process exists to pay for it
    from triton.compiler import ASTSource  # noqa: PLC0415 - see above

    names = list(kernel.arg_names)
    attrs = {(names.index(name),): [["tt.divisibility", 16]] for name in request["aligned"]}
    source = ASTSource(kernel, dict(request["signature"]), constants, attrs)
    said = ""
    try:
        with _heard() as noise:
            if not request["whole"]:
                _front_end(source, target, request["options"])
                return None, 0.0
            made = triton.compile(source, target=target_of(target), options=request["options"])
    except _NOT_THE_KERNEL:
        raise
    except Exception as error:  # noqa: BLE001 - whatever the compiler raises is the answer
        said = noise.text
        found = {
            "kind": type(error).__name__,
            "line": _line(kernel, error),
            "message": _message(error, said),
        }
        return found, 1.0
    need, have = int(made.metadata.shared), _shared(target)
    if have and need > have:
        text = f"needs {need} bytes of shared memory, {target} has {have}"
        return {"kind": "OutOfResources", "line": 0, "message": text}, 1.0
    return None, need / have if have else 1.0


def _front_end(source: Any, target: str, options: dict[str, Any]) -> None:
    """Translate a specialisation to the compiler's first language and check it there."""
    from triton._C.libtriton import ir  # noqa: PLC0415 - see above
    from triton.compiler.compiler import make_backend  # noqa: PLC0415 - see above

    backend = make_backend(target_of(target))
    parsed = backend.parse_options(dict(options))
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    generated = backend.get_codegen_implementation(parsed)
    source.make_ir(target_of(target), parsed, generated, backend.get_module_map(), context)


def target_of(name: str) -> Any:
    """Return Triton's target of `sm_90` or `gfx942`."""
    from triton.backends.compiler import GPUTarget  # noqa: PLC0415 - see above

    if name.startswith("sm_"):
        return GPUTarget("cuda", int(name[3:]), 32)
    return GPUTarget("hip", name, 64)


def _shared(target: str) -> int:
    return _SHARED_MEMORY.get(int(target[3:]), 0) if target.startswith("sm_") else 65536


def kernel_of(request: dict[str, Any]) -> Any:
    """Return the jit function that a request names."""
    for folder in reversed(request["path"]):
        if folder not in sys.path:
            sys.path.insert(1, folder)
    from gate.run.faithful.torchface import TorchFace  # noqa: PLC0415 - see above

    with TorchFace():
        module = _module(request["module"], request["file"])
    thing: Any = module
    for part in request["function"].split("."):
        thing = getattr(thing, part, None)
    while thing is not None and not hasattr(thing, "cache_key") and hasattr(thing, "fn"):
        thing = thing.fn
    if thing is None or not hasattr(thing, "arg_names"):
        raise NotHere(f"`{request['function']}` is no kernel of `{request['module']}`")
    return thing


def _module(name: str, file: str) -> Any:
    try:
        module = importlib.import_module(name)
        if os.path.realpath(getattr(module, "__file__", "") or "") == os.path.realpath(file):
            return module
    except Exception:  # noqa: BLE001 - the file is tried next
        pass
    try:
        spec = importlib.util.spec_from_file_location(name, file)
        if spec is None or spec.loader is None:
            raise NotHere(f"{file} cannot be imported")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    except Exception as error:
        sys.modules.pop(name, None)
        raise NotHere(f"{file} cannot be imported: {type(error).__name__}: {error}") from error
    return module


def constant_of(value: Any) -> Any:
    """Return a constant from its JSON form."""
    if not isinstance(value, dict):
        return value
    import triton.language as tl  # noqa: PLC0415 - see above

    if "dtype" in value:
        return getattr(tl, value["dtype"])
    if "kernel" in value:
        return kernel_of({"path": [], **value["kernel"]})
    if "float" in value:
        return float(value["float"])
    if "tuple" in value:
        return tuple(constant_of(part) for part in value["tuple"])
    raise NotHere(f"a constant of an unknown form: {value}")


def _line(kernel: Any, error: BaseException) -> int:
    """Return the line in the kernel's file that an error points at, 0 when it does not."""
    first = getattr(kernel, "def_file_line_number", None)
    if first is None:
        with contextlib.suppress(Exception):
            from triton.runtime.jit import get_jit_fn_file_line  # noqa: PLC0415 - before 3.7 only

            first = get_jit_fn_file_line(kernel)[1]
    node = getattr(error, "node", None)
    if node is None or first is None or not hasattr(node, "lineno"):
        return 0
    return int(first) + int(node.lineno) - 1


_ASSEMBLER = re.compile(r"^ptxas.*?(?:error|fatal)\s*:\s*(.+)$", re.MULTILINE)
"""What ptxas says first; its line and file are those of a temporary text."""


def _message(error: BaseException, noise: str) -> str:
    """Return the innermost reason of a compile error in one line."""
    inner: BaseException = error
    while inner.__cause__ is not None:
        inner = inner.__cause__
    texts = [getattr(one, "error_message", None) or str(one) for one in (inner, error)]
    text = next((t for t in texts if t and not t.startswith("at ")), texts[0])
    hints = [line.split("error: ", 1)[1] for line in noise.splitlines() if "error: " in line]
    if hints and (not text or "failed" in text.lower()):
        text = f"{text}: {hints[0]}" if text else hints[0]
    refused = _ASSEMBLER.search(text)
    if refused is not None:
        return f"the assembler refuses it: {refused[1].strip()}"[:600]
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    useful = [line for line in lines if not line.startswith(("at ", "^"))] or lines
    if not useful:
        return type(error).__name__
    said = " ".join(useful[-1].split())
    quoted = re.fullmatch(r"\w+\((['\"])(.*)\1,?\)", said)  # Triton quotes other exceptions so
    return (quoted[2] if quoted else said)[:600]


@contextlib.contextmanager
def _heard() -> Iterator[SimpleNamespace]:
    """Collect what the compiler's C++ side writes on standard error."""
    noise = SimpleNamespace(text="")
    sys.stderr.flush()
    kept = os.dup(2)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 2)
        try:
            yield noise
        finally:
            os.dup2(kept, 2)
            os.close(kept)
            file.seek(0)
            noise.text = file.read(100_000).decode("utf-8", "replace")


def stub_driver() -> None:
    """Compiling asks the active driver for little, and modules ask torch when they are imported; a
    stand-in answers."""
    from triton.runtime.driver import driver  # noqa: PLC0415 - see above

    from gate.run.faithful import torchcuda, torchops  # noqa: PLC0415 - see above
    from gate.run.faithful.driver import StubDriver  # noqa: PLC0415 - see above

    driver.set_active(StubDriver(90))
    torchcuda.install(90)
    torchops.install()


def on_a_private_output(serve_on: Callable[[TextIO, TextIO], None]) -> None:
    """Serve on a private copy of standard output; what modules print goes to standard error."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    serve_on(sys.stdin, out)


def main(first: str = "") -> None:
    """Serve the interpreter that started this process.

    first  the first question, where it was read already
    """
    on_a_private_output(
        lambda requests, replies: serve(chain(filter(None, [first]), requests), replies)
    )


if __name__ == "__main__":
    main()
