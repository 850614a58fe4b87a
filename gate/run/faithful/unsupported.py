"""What the interpreter cannot emulate, told apart from what a kernel does wrong."""

from __future__ import annotations


class Unsupported(Exception):
    """The device cannot run this kernel as a GPU would; no defect of the kernel.

    The worker turns it into `Outcome.UNSUPPORTED` with `reason`.

    reason  one sentence: what cannot be emulated, and where.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)

    @property
    def reason(self) -> str:
        """Why the kernel cannot be run here."""
        return str(self.args[0])


class Refused(Exception):
    """What the compiler or the device refuses as well; `KernelFailed` once it leaves a launch."""


class KernelFailed(Exception):
    """The kernel's own code is wrong in a way that the compiler or the device would refuse too.

    message  the text of the error that the kernel's code raised.
    kind     class name of that error.
    kernel   id of the kernel.
    line     1-based line in the kernel's file, 0 when unknown.
    """

    def __init__(self, message: str, kind: str = "", kernel: str = "", line: int = 0) -> None:
        super().__init__(message, kind, kernel, line)

    @property
    def message(self) -> str:
        """The text of the error."""
        return str(self.args[0])

    @property
    def kind(self) -> str:
        """Class name of the error that the kernel's code raised."""
        return str(self.args[1])

    @property
    def kernel(self) -> str:
        """Id of the kernel."""
        return str(self.args[2])

    @property
    def line(self) -> int:
        """1-based line in the kernel's file, 0 when unknown."""
        return int(self.args[3])

    def __str__(self) -> str:
        place = f" (line {self.line})" if self.line else ""
        return f"{self.kind}: {self.message}{place}" if self.kind else f"{self.message}{place}"
