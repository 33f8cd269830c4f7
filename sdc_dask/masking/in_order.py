"""Microaggregation along the order of all records, however many partitions it runs through."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sdc_dask.engine.scan import NOT_THE_SAME
from sdc_dask.engine.sort import Order, OrderMask, Piece
from sdc_dask.errors import SdcRuntimeError
from sdc_dask.kernels.coordinates import Coordinates
from sdc_dask.kernels.ordered import cuts, extend
from sdc_dask.masking.centroids import centroids


@dataclass(frozen=True)
class Ahead:
    """What a piece leaves to the next: the end of a stratum that may go on there."""

    stratum: int
    rank: int  # records of the stratum so far
    lead: NDArray[np.float64]  # the values of the last 2k - 2 of them
    costs: NDArray[np.float64]  # of groups that end before each of them, and after the last


@dataclass(frozen=True)
class Crossing:
    """What a piece leaves to the one before: a group that began there."""

    stratum: int
    count: int  # its records in pieces before
    centroid: NDArray[np.float64]


@dataclass(frozen=True)
class MaskInOrder(OrderMask):
    """Cut the order of records into the cheapest groups of k to 2k - 1, stratum by stratum."""

    k: int
    coordinates: Coordinates
    order: Order
    decimals: int | None = None

    def forward(
        self, piece: Piece, state: Ahead | None
    ) -> tuple[tuple[NDArray[np.int32], NDArray[np.float64]], Ahead | None]:
        """Find the cheapest group that ends with each record."""
        none = np.empty((0, piece.values.shape[1]))
        choices = np.zeros(len(piece.values), np.int32)
        first_lead = none
        points = self.coordinates.points(piece.values)
        for number, (begin, end) in enumerate(itertools.pairwise(piece.bounds)):
            stratum = int(piece.strata[number])
            lead, costs, rank = none, np.zeros(1), 0
            if number == 0 and state is not None and state.stratum == stratum:
                lead, costs, rank = state.lead, state.costs, state.rank
                first_lead = lead
            costs, choices[begin:end] = extend(
                self.coordinates.points(lead), points[begin:end], costs, rank, self.k
            )
            tail = np.vstack([lead, piece.values[begin:end]])[-(2 * self.k - 2) :]
            state = Ahead(stratum, rank + int(end - begin), tail, costs)
        return (choices, first_lead), state

    def backward(
        self,
        piece: Piece,
        kept: tuple[NDArray[np.int32], NDArray[np.float64]],
        state: Crossing | None,
    ) -> tuple[NDArray[np.float64], Crossing | None]:
        """Walk back along the cheapest groups and replace them by their centroids."""
        choices, first_lead = kept
        masked = np.empty_like(piece.values)
        segments = list(enumerate(itertools.pairwise(piece.bounds)))
        for number, (begin, end) in reversed(segments):
            stratum = int(piece.strata[number])
            crossing = state if state is not None and state.stratum == stratum else None
            state = None
            if crossing is not None and crossing.count:
                taken = min(crossing.count, end - begin)
                masked[end - taken : end] = crossing.centroid
                end -= taken
                if begin == end:
                    count = crossing.count - int(taken)
                    state = Crossing(stratum, count, crossing.centroid)
                    continue
            if choices[end - 1] == 0:
                raise SdcRuntimeError(f"no groups of k={self.k} end a stratum. {NOT_THE_SAME}")
            begins = cuts(choices[begin:end], end - begin)
            before = max(0, -int(begins[0]))
            lead = first_lead[len(first_lead) - before :]
            values = np.vstack([lead, piece.values[begin:end]])
            sizes = np.diff(np.append(begins, end - begin))
            labels = np.repeat(np.arange(len(begins)), sizes)
            values = centroids(values, labels, self.coordinates, self.k, self.decimals)
            masked[begin:end] = values[before:]
            state = Crossing(stratum, before, values[0].copy())
        return masked, state
