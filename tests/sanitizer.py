"""A stand-in for compute-sanitizer: it starts its target, and watches nothing."""

TOOL = """#!/bin/sh
while [ "$1" != "{python}" ]; do
    if [ "$1" = "--log-file" ]; then echo "started" > "$2"; fi
    shift
done
exec "$@"
"""
"""A shell script; `{python}` is the interpreter that the target begins with."""
