"""The interpreter's side of the compile process: ask, go on, collect.

The process starts with the first question. It shares the worker's fences, being its child, and
imports the kernel's module once more, with compilation on.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from gate.run.faithful import compilefork
from gate.run.faithful.compilefork import ForkedCompiler
from gate.run.faithful.depth import Depth
from gate.run.faithful.place import kernel_id
from gate.run.faithful.specialise import specialisation
from gate.run.faithful.unsupported import Unsupported
from gate.run.protocol import Fault

_RESOURCES = frozenset({"OutOfResources", "PTXASError", "CompileTimeAssertionFailure"})
"""What a tuner takes as the end of one config, not of the kernel."""

_CODE = (
    "import sys; sys.path.insert(0, {0!r});"
    " from gate.run.faithful import compilecheck as check; check.main()"
)


class Compiling:
    """Compiles each specialisation once, in a process of its own."""

    def __init__(
        self, root: str, targets: Sequence[str], seconds: float, *, complete: bool = False
    ) -> None:
        self.root = root
        self.targets = list(targets)
        self.seconds = seconds
        self.depth = Depth(complete=complete)
        self.notes: list[str] = []
        self._process: subprocess.Popen[str] | ForkedCompiler | None = None
        self._replies: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._answers: dict[int, dict[str, Any]] = {}
        self._numbers: dict[str, int] = {}
        self._whole: dict[int, dict[str, Any]] = {}
        self._pending: list[tuple[int, str, bool]] = []
        self._unanswered: dict[int, dict[str, Any]] = {}
        self._open: dict[int, str] = {}
        self._restarted = False

    def submit(
        self, kernel: Any, arguments: Mapping[str, Any], options: Mapping[str, Any], tuned: bool
    ) -> int | None:
        """Ask for the specialisation of a launch; None when it cannot be described."""
        described = specialisation(kernel, arguments, options)
        if described is None:
            name = kernel_id(kernel.fn, self.root)
            self.notes.append(f"not compiled: an argument or constant of {name} has no text form")
        if described is None:
            return None
        key = json.dumps(described, sort_keys=True)
        known = self._numbers.get(key)
        number = self._numbers[key] = known or len(self._numbers) + 1
        self._pending.append((number, kernel_id(kernel.fn, self.root), tuned))
        if known is None:
            whole = self.depth.whole(described)
            if whole:
                self._whole[number] = described
            self._ask({
                "id": number, "path": _path(), "targets": self.targets, "whole": whole,
                **described,
            })  # fmt: skip
        return number

    @staticmethod
    def text(kernel: Any, arguments: Mapping[str, Any], options: Mapping[str, Any]) -> str:
        """Return the specialisation of a launch as `samecode` takes it; empty when there is none
        that can be described."""
        described = specialisation(kernel, arguments, options)
        if described is None:
            return ""
        return json.dumps({**described, "path": _path()}, sort_keys=True)

    def collect(self) -> list[Fault]:
        """Wait for what was asked since the last time and return it as faults.

        Raises
            Unsupported  the compile process ended, and the one after it, too; or its time was up
        """
        faults = {}
        for number, kernel, tuned in self._pending:
            if number in self._open:
                raise Unsupported(self._open[number])
            for error in self._answer(number).get("errors", ()):
                if tuned and error["kind"] in _RESOURCES:
                    continue
                text = f"does not compile for {error['target']}: {error['message']}"
                faults[kernel, error["line"], text] = Fault(
                    kind="compile", kernel=kernel, line=error["line"], message=text
                )
        self._pending.clear()
        return list(faults.values())

    def refusal(
        self, kernel: Any, arguments: Mapping[str, Any], options: Mapping[str, Any]
    ) -> str | None:
        """Compile now: the compiler's message, None when it compiles.

        A specialisation that cannot be tried counts as refused, so that the kernel's own error
        stands.
        """
        complete, self.depth.complete = self.depth.complete, True
        number = self.submit(kernel, arguments, options, tuned=False)
        self.depth.complete = complete
        if number is None:
            return "it could not be compiled here"
        self._pending.pop()
        answer = self._answer(number)
        if answer["unknown"]:
            return str(answer["unknown"])
        errors = answer["errors"]
        return str(errors[0]["message"]) if errors else None

    def forget(self) -> None:
        """Drop questions whose answers nobody waits for."""
        self._pending.clear()
        self._restarted = False

    @property
    def processes(self) -> tuple[int, ...]:
        """Process id of the compile process, while it runs or waits to be asked."""
        return compilefork.spare() if self._process is None else (self._process.pid,)

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            if self._process.stdin is not None:
                with contextlib.suppress(OSError):  # a question that was not sent
                    self._process.stdin.close()
            self._process = None

    def _ask(self, request: dict[str, Any]) -> None:
        self._unanswered[request["id"]] = request
        if not self._said(request):
            self._restart()

    def _said(self, request: dict[str, Any]) -> bool:
        """Send a question; return whether anybody was there."""
        try:
            process = self._process or self._start()
            assert process.stdin is not None
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
        except OSError:
            return False
        return True

    def _restart(self) -> None:
        """Ask another process what the one that ended did not answer; once a call.

        Raises
            Unsupported  it is the second that ended
        """
        again, self._restarted = self._restarted, True
        self.close()
        if again or not all(map(self._said, list(self._unanswered.values()))):
            self._give_up("the compile process ended twice")

    def _give_up(self, why: str) -> NoReturn:
        """Leave open what was asked and not answered: what was not checked is no pass.

        Raises
            Unsupported  always
        """
        self.close()
        why = f"{why}: whether this launch compiles is not known"
        self._open.update(dict.fromkeys(self._unanswered, why))
        self._unanswered.clear()
        raise Unsupported(why)

    def _start(self) -> subprocess.Popen[str] | ForkedCompiler:
        process = compilefork.take() or self._program()
        self._process = process
        self._replies = queue.Queue()
        heard = (process, self._replies)
        threading.Thread(target=self._listen, args=heard, daemon=True).start()
        return process

    @staticmethod
    def _program() -> subprocess.Popen[str]:
        env = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
        home = str(Path(__file__).resolve().parents[3])
        return subprocess.Popen(
            [sys.executable, "-P", "-c", _CODE.format(home)], env=env, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    @staticmethod
    def _listen(
        process: subprocess.Popen[str] | ForkedCompiler, replies: queue.Queue[dict[str, Any] | None]
    ) -> None:
        assert process.stdout is not None
        with process.stdout, contextlib.suppress(ValueError, OSError):
            for line in process.stdout:
                replies.put(json.loads(line))
        replies.put(None)

    def _answer(self, number: int) -> dict[str, Any]:
        """Return the reply to a question.

        Raises
            Unsupported  none came
        """
        while number not in self._answers:
            try:
                reply = self._replies.get(timeout=self.seconds)
            except queue.Empty:
                self._give_up(f"the compiler took more than {self.seconds:g} s")
            if reply is None:
                self._restart()
                continue
            self._unanswered.pop(int(reply["id"]), None)
            self._answers[int(reply["id"])] = reply
            described = self._whole.pop(int(reply["id"]), None)
            if described is not None:
                self.depth.learn(described, float(reply["share"]))
            if reply["unknown"]:
                self.notes.append(f"not compiled: {reply['unknown']}")
        return self._answers[number]


def _path() -> list[str]:
    """Return where this process imports from, for the other one to do the same."""
    return [folder for folder in sys.path if folder and Path(folder).is_dir()]
