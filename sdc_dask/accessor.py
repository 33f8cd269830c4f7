"""The ``.sdc`` accessor of pandas and Dask frames: checks arguments and calls the layers below."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import pandas as pd
from dask.dataframe.extensions import register_dataframe_accessor

from sdc_dask import arguments
from sdc_dask.engine.blocks import METHODS as BLOCKINGS
from sdc_dask.engine.blocks import Blocks
from sdc_dask.engine.frames import Frame, is_dask
from sdc_dask.masking import microaggregation as ma
from sdc_dask.masking.request import microaggregation_request
from sdc_dask.risk.anonymity import Anonymity, anonymity
from sdc_dask.utility.sse import SSE, sse

Columns = Sequence[Hashable] | Sequence[Sequence[Hashable]]


@register_dataframe_accessor("sdc")
@pd.api.extensions.register_dataframe_accessor("sdc")
class SdcAccessor:
    """Statistical disclosure control of a DataFrame, as ``df.sdc``.

    Methods are the same for pandas and Dask frames, and so are their results. Masking methods
    return a frame of the kind of the input; for a Dask frame it is lazy, but the passes that plan
    the blocks run at once, as in ``set_index``. Measures are computed.
    """

    def __init__(self, frame: Frame) -> None:
        self._frame = frame

    def __repr__(self) -> str:
        kind = "Dask" if is_dask(self._frame) else "pandas"
        return (
            f"<sdc of a {kind} DataFrame with {len(self._frame.columns)} columns: "
            "microaggregate, blocks, sse, anonymity>"
        )

    def blocks(
        self,
        columns: Sequence[Hashable],
        k: int,
        *,
        max_block: int | str = "auto",
        method: str = "tree",
        standardize: bool = True,
        by: Hashable | Sequence[Hashable] | None = None,
        missing: str = "error",
    ) -> Blocks:
        """Plan how records are cut into blocks, without masking them.

        Takes one pass over the data to scan it and as many to count as ``Blocks.passes`` says,
        usually one or two. Only the columns that are named are read.

        Parameters
        ----------
        columns : list
            Numeric columns, masked together.
        k : int
            Smallest block; leaves with fewer records are fused with the leaf whose centroid is
            nearest.
        max_block : int or "auto", default "auto"
            L: a leaf with more records is split. "auto" takes the largest for which masking a
            record by MDAV costs about as much as moving it.
        method : {"tree", "univariate"}, default "tree"
            "tree" halves all dimensions of a box with more than L records. "univariate" cuts the
            range of the first column into n/L intervals of equal width.
        standardize : bool, default True
            Measure distances between leaves in units of the columns' deviations.
        by : name or list of names, optional
            Columns whose values blocks never mix.
        missing : {"error", "separate"}, default "error"
            As in :meth:`microaggregate`.

        Returns
        -------
        Blocks
            Small, without records; can be printed, pickled, and passed as ``blocking=``.

        Examples
        --------
        >>> import sdc_dask
        >>> df = sdc_dask.datasets.uniform(10_000, 2)
        >>> df.sdc.blocks(["x0", "x1"], k=3, max_block=1_000)
        Blocks by tree: 10,000 records in 16 blocks
          columns   x0, x1
          records   596 to 662 a block, median 621 (k = 3, L = 1,000)
          leaves    16, of which 0 were fused
          strata    1
          planned   in 1 pass over the data after the scan
        """
        arguments.one_of(method, "method", BLOCKINGS)
        request = microaggregation_request(
            self._frame,
            columns,
            k,
            blocking=method,
            max_block=max_block,
            standardize=standardize,
            by=by,
            missing=missing,
        )
        if len(request.groups) > 1:
            raise ValueError(
                f"blocks are made of one group of columns, received {len(request.groups)}: call "
                "this once for each."
            )
        return ma.plan(self._frame, request).placements[0].blocks

    def microaggregate(
        self,
        columns: Columns,
        k: int,
        *,
        method: str = "mdav",
        blocking: str | Blocks | None = "tree",
        max_block: int | str = "auto",
        standardize: bool = True,
        by: Hashable | Sequence[Hashable] | None = None,
        missing: str = "error",
        keep_order: bool = True,
    ) -> Frame:
        """Replace records by the centroids of groups of at least k similar ones.

        Parameters
        ----------
        columns : list, or list of lists
            Numeric columns to mask: one group, or several that are masked each on its own. k
            holds for every group of columns, not for their combination.
        k : int
            Smallest group, 2 or more.
        method : {"mdav"}, default "mdav"
            How groups are formed within a block.
        blocking : {"tree", "univariate", None} or Blocks, default "tree"
            How records are cut into blocks; groups never cross blocks. None masks all records of
            a stratum as one block, in the memory of one worker.
        max_block : int or "auto", default "auto"
            See :meth:`blocks`.
        standardize : bool, default True
            Measure distances in units of the columns' population deviations over the whole frame.
            Centroids are in the original units in any case.
        by : name or list of names, optional
            Strata: columns whose values groups never mix.
        missing : {"error", "separate"}, default "error"
            "error" names the columns with missing cells. "separate" groups records by their
            pattern of missing cells, which stay missing; each pattern needs k records.
        keep_order : bool, default True
            Return index, divisions, partitions, rows and columns as they were. With False, rows
            come in the order of their blocks: half the moving, for one group of columns.

        Returns
        -------
        DataFrame
            Of the kind of the input. Integer columns become float64, other numbers keep their
            dtype; columns that are not named are untouched.

        Notes
        -----
        The same records give the same bits, on pandas or Dask, for every number of workers and
        every partitioning: ties go to the row that comes first, and scales are computed without
        rounding.

        Examples
        --------
        >>> import pandas as pd, sdc_dask
        >>> df = pd.DataFrame({"age": [31, 33, 64, 62, 35, 60], "name": list("abcdef")})
        >>> df.sdc.microaggregate(["age"], k=3)
            age name
        0  33.0    a
        1  33.0    b
        2  62.0    c
        3  62.0    d
        4  33.0    e
        5  62.0    f
        """
        request = microaggregation_request(
            self._frame,
            columns,
            k,
            method=method,
            blocking=blocking,
            max_block=max_block,
            standardize=standardize,
            by=by,
            missing=missing,
            keep_order=keep_order,
        )
        return ma.microaggregate(self._frame, request)

    def sse(self, masked: Frame, columns: Sequence[Hashable] | None = None) -> SSE:
        """Measure the squared distance between these records and their masked versions.

        One pass over both frames, row by row.

        Parameters
        ----------
        masked : DataFrame
            Of the same kind, with the same rows in the same order and partitions.
        columns : list, optional
            Numeric columns; by default all that both frames have.

        Returns
        -------
        SSE
            ``sse``, ``sst``, ``ratio``, ``by_column``, in units of this frame's population
            deviations. The sums are exact: partitions do not change a bit of them.

        Examples
        --------
        >>> import pandas as pd, sdc_dask
        >>> df = pd.DataFrame({"age": [31, 33, 64, 62, 35, 60]})
        >>> df.sdc.sse(df.sdc.microaggregate(["age"], k=3))
        SSE
          sse        0.0751468             lower is better
          sst        6                     what one group for all records would give
          ratio      0.0125245             sse / sst: the share of variation that was lost
          rows       6                     records
          by_column  age: 0.0751468
        """
        return sse(self._frame, masked, arguments.compared_columns(self._frame, masked, columns))

    def anonymity(self, columns: Sequence[Hashable], k: int | None = None) -> Anonymity:
        """Count how many records share the same values in some columns.

        One pass; numbers are compared by their bits, missing cells are equal to each other.

        Parameters
        ----------
        columns : list
            Columns of any kind that an intruder may know.
        k : int, optional
            Count the classes with fewer records.

        Returns
        -------
        Anonymity
            ``k_min`` (the smallest class), ``k_mean`` (k', records over distinct records),
            ``classes``, ``rows``, ``below_k``.

        Examples
        --------
        >>> import pandas as pd, sdc_dask
        >>> df = pd.DataFrame({"age": [31, 31, 64, 64, 64, 60]})
        >>> df.sdc.anonymity(["age"], k=2)
        Anonymity
          rows       6                     records
          classes    3                     distinct records
          k_min      1                     records of the smallest class: higher is safer
          k_mean     2                     k', records over distinct records
          k          2                     the k that was asked for
          below_k    1                     classes with fewer records: 0 is safe
        """
        meta = arguments.unique_columns(self._frame)
        names = arguments.name_list(columns, "columns")
        if not names:
            raise ValueError("columns is empty: name the columns whose equal records are counted.")
        arguments.existing(meta, names, "columns")
        if k is not None:
            k = arguments.whole_number(k, "k", 1)
        return anonymity(self._frame, names, k)
