"""`python -m gate`: the same as `kernel-gate`."""

from gate.cli.main import entry

if __name__ == "__main__":
    entry()
