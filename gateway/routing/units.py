"""Units of policy and config fields: markers that tell the config loader which spellings a field takes.

A marked field holds a plain number; `2s` or `20MiB` become one when a file is read.
"""

from enum import Enum
from typing import Annotated

from annotated_types import Ge


class Unit(Enum):
    """What a number counts; the loader accepts the unit's suffixes and stores the base unit."""

    SECONDS = "seconds"
    BYTES = "bytes"


Seconds = Annotated[float, Unit.SECONDS, Ge(0)]
Bytes = Annotated[int, Unit.BYTES, Ge(0)]
