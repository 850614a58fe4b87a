"""How large a result file may be. The reader and the JSON Schema take their bounds from here."""

MAX_BYTES = 64 * 2**20
"""Bytes of a result file that is read."""
MAX_TEXT = 2**20
"""Characters of one string."""
MAX_ITEMS = 1_000_000
"""Members of one list."""
MAX_INTEGER = 2**64 - 1
"""Largest integer; none is negative."""
SHA256 = "[0-9a-f]{64}"
"""Pattern of a digest."""
SPECIAL_FLOATS = ("NaN", "Infinity", "-Infinity")
"""What stands for the floats that JSON has no number for."""
