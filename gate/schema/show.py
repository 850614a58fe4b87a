"""thin"""

from gate.schema.model import OpSchema


def render(schema: OpSchema) -> str:
    return repr(schema)
