"""kernel-gate: the CI gate that a GPU kernel must pass before it is merged."""

__version__ = "0.1.0"
