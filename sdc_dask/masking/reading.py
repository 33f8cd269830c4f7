"""How values of masked columns are read, by what their maskings say of them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from sdc_dask.engine.mixed import Reading
from sdc_dask.masking.microaggregation import Microaggregation
from sdc_dask.masking.pram import Pram
from sdc_dask.masking.recode import Recode
from sdc_dask.masking.spec import Spec
from sdc_dask.masking.suppress import Suppress


def reading_of(specs: Sequence[Spec], *, recoded: bool = False) -> Reading:
    """Return how columns are read that specs mask.

    Parameters
    ----------
    specs : sequence of specs
    recoded : bool, default False
        Whether the original is recoded as the masked frame is. Otherwise orders of coarser values
        say nothing of it.

    Examples
    --------
    >>> from sdc_dask import Microaggregation, Suppress
    >>> specs = [Microaggregation(["age", "zone"], k=5, nominal="zone"), Suppress(["job"], k=5)]
    >>> found = reading_of(specs)
    >>> found.nominal, found.open
    (('zone',), ('job',))
    """
    coarser = {name for spec in specs if isinstance(spec, Recode) for name in spec.masked}
    orders: dict[Hashable, tuple[Any, ...]] = {}
    nominal: list[Hashable] = []
    open_: list[Hashable] = []
    for spec in specs:
        if isinstance(spec, Microaggregation):
            orders |= {name: tuple(order) for name, order in dict(spec.orders or ()).items()}
            nominal += spec.nominal
        elif isinstance(spec, Pram):
            nominal += spec.columns  # of whose values none is near another
        elif isinstance(spec, Suppress):
            open_ += spec.columns
    if not recoded:
        orders = {name: order for name, order in orders.items() if name not in coarser}
    return Reading(orders, tuple(nominal), tuple(open_))
