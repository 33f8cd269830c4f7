"""A source in long layout, made wide for a run: a row for each record is what can be masked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from sdc_dask import arguments
from sdc_dask.engine.frames import Calls, map_partitions
from sdc_dask.errors import SdcTypeError, SdcValueError
from sdc_dask.release.progress import compute
from sdc_dask.release.source import Source
from sdc_dask.series.layouts import to_wide


@dataclass(frozen=True)
class Long:
    """Says that a source has a row for each record and time, and which columns say which.

    Parameters
    ----------
    id : str
        Column that says which record a row belongs to.
    time : str
        Column that says when.
    values : str or list of str, optional
        Numeric columns, one for each series: by default all others that are numeric.
    length : int, optional
        Resample series to so many points; needed if records have different times. See
        :func:`sdc_dask.series.to_wide`, which also says how columns of the wide layout are named.

    Examples
    --------
    >>> import sdc_dask
    >>> sdc_dask.Long("firm", "month", values="sales")
    Long(id='firm', time='month', values=('sales',), length=None)
    """

    id: str
    time: str
    values: str | Sequence[str] | None = None
    length: int | None = None

    def __post_init__(self) -> None:
        for name in ("id", "time"):
            if not isinstance(getattr(self, name), str):
                raise SdcTypeError(
                    f"{name} must be the name of a column, received "
                    f"{type(getattr(self, name)).__name__}."
                )
        if self.values is not None:
            values = arguments.name_list(self.values, "values")
            if not values or not all(isinstance(each, str) for each in values):
                raise SdcTypeError("values must be names of columns: pass texts, one at least.")
            object.__setattr__(self, "values", values)
        if self.length is not None:
            arguments.whole_number(self.length, "length", 2)

    def to_dict(self) -> dict[str, Any]:
        """Return the layout as a dict of plain Python objects, ready for JSON or TOML."""
        found = {name: value for name, value in asdict(self).items() if value is not None}
        return found | ({"values": list(self.values)} if self.values is not None else {})

    @classmethod
    def from_dict(cls, values: Any) -> Long:
        """Make a layout from what :meth:`to_dict` returned, or what a file says."""
        known = [each.name for each in fields(cls)]
        if not isinstance(values, Mapping):
            raise SdcTypeError(f"long must be a table, received {type(values).__name__}.")
        unknown = [str(name) for name in values if name not in known]
        if unknown:
            raise SdcValueError(f"long has no {', '.join(unknown)}. It has: {', '.join(known)}.")
        lacking = [name for name in ("id", "time") if name not in values]
        if lacking:
            raise SdcValueError(f"long needs {', '.join(lacking)}: name it.")
        return cls(**values)


def write_wide(source: Source, directory: Path, long: Long, show: bool) -> None:
    """Write the wide layout of a source into a directory. It holds original values."""
    everything = source.schema.empty_table().to_pandas()
    values = [
        field.name
        for field in source.schema
        if (pa.types.is_floating(field.type) or pa.types.is_integer(field.type))
        and field.name not in (long.id, long.time, *source.unnamed_index)
    ]
    values = values if long.values is None else list(long.values)
    arguments.existing(everything, [long.id, long.time, *values], "long", "the source")
    frame = source.frame(values, [long.id, long.time])
    wide = to_wide(frame, long.id, long.time, values, long.length)
    call = Calls.of(wide)
    files = map_partitions([wide], _write, str(directory))
    rows = compute(call(sum, files), show)
    source.check_unchanged()
    if not rows:
        raise SdcValueError("the source has no records: there is nothing to mask.")


def _write(part: pd.DataFrame, number: int, directory: str) -> int:
    """Write a partition, and return the number of its rows."""
    table = pa.Table.from_pandas(part, preserve_index=False)
    pq.write_table(table.replace_schema_metadata(None), f"{directory}/part-{number:06d}.parquet")
    return len(part)
