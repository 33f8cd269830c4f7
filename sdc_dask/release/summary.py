"""What a protection did: the figures that a person wants to see at the end."""

from __future__ import annotations

from dataclasses import dataclass

from sdc_dask.results import Result
from sdc_dask.risk.anonymity import Anonymity
from sdc_dask.utility.sse import SSE


@dataclass(frozen=True, repr=False)
class Summary(Result):
    """What was written, how well it is protected, what was lost, and how long it took."""

    target: str
    rows: int
    files: int
    size: int  # bytes
    masked: tuple[tuple[str, ...], ...]  # groups of columns
    kept: tuple[str, ...]
    dropped: tuple[str, ...]
    by: tuple[str, ...]
    k: int
    method: str
    blocks: tuple[int | None, ...]  # by group of columns; None if all records were put in order
    max_block: tuple[int | None, ...]
    anonymity: tuple[Anonymity, ...]  # by group of columns, counted on the files
    joint: Anonymity | None  # in all masked columns, if they are several groups
    sse: SSE  # between the source and the files
    seconds: dict[str, float]  # by stage

    def __repr__(self) -> str:
        lines = [
            f"Protected {self.rows:,} rows in {self.files:,} files "
            f"({self.size / 1e6:,.1f} MB): {self.target}"
        ]
        for group, blocks, size, reached in zip(
            self.masked, self.blocks, self.max_block, self.anonymity, strict=True
        ):
            lines += [
                f"  masked     {', '.join(group)}",
                f"    by       {self.method}, "
                + (f"{blocks:,} blocks (L = {size:,})" if blocks else "in one order, no blocks"),
                f"    groups   {reached.classes:,}, {reached.k_mean:.2f} records on average",
                f"    k        {reached.k_min:,} reached, {self.k:,} asked for; counted on the "
                "files",
            ]
        if self.joint:
            lines.append(
                f"  together   {self.joint.k_mean:.2f} a class, {self.joint.k_min:,} in the "
                "smallest: k holds in each group, not for all columns together"
            )
        if self.by:
            lines.append(f"  within     {', '.join(self.by)}")
        if self.kept:
            lines.append(f"  unmasked   {', '.join(self.kept)}")
        if self.dropped:
            lines.append(f"  dropped    {', '.join(self.dropped)}")
        lines.append(
            f"  lost       SSE / SST = {100 * self.sse.ratio:.4f} % "
            f"(SSE {self.sse.sse:,.4f}, SST {self.sse.sst:,.0f})"
        )
        stages = ", ".join(f"{stage} {seconds:.1f} s" for stage, seconds in self.seconds.items())
        lines.append(f"  time       {stages}")
        return "\n".join(lines)
