"""Show the results of two runs of a benchmark side by side.

python benchmarks/compare.py NAME        the last two runs of a benchmark, such as refinement
python benchmarks/compare.py A.json B.json

Numbers that differ are shown as both and their ratio, the later over the earlier; what is equal in
both says which row it is.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from common import RESULTS, show

Row = dict[str, Any]


def main(arguments: list[str]) -> int:
    """Compare two runs."""
    if len(arguments) == 1:
        paths = sorted((RESULTS / arguments[0]).glob("*.json"))[-2:]
    else:
        paths = [Path(each) for each in arguments]
    if len(paths) != 2 or not all(path.exists() for path in paths):
        known = ", ".join(sorted(path.name for path in RESULTS.glob("*") if path.is_dir()))
        print(f"name two files, or a benchmark of which there are two runs: {known or 'none yet'}.")
        return 2
    before, after = (json.loads(path.read_text()) for path in paths)
    for which, found in (("before", before), ("after", after)):
        run = found["run"]
        print(f"{which:7} {run['commit'][:9]}  {run['time']}  {run['machine']}")
    if before["run"]["machine"] != after["run"]["machine"]:
        print("The machines differ: compare ratios within each run, not times.")
    tables = dict(_tables(before))
    for name, rows in _tables(after):
        others = tables.get(name, [])
        if len(others) != len(rows):
            print(f"\n{name}: {len(others)} rows before, {len(rows)} after")
            continue
        show(name, [_side_by_side(*pair) for pair in zip(others, rows, strict=True)])
    return 0


def _tables(found: Any, name: str = "") -> Iterator[tuple[str, list[Row]]]:
    """Give all lists of rows, with the names that lead to them."""
    if isinstance(found, list) and found and all(isinstance(row, dict) for row in found):
        yield name, found
    elif isinstance(found, dict):
        for key, value in found.items():
            if key != "run":
                yield from _tables(value, f"{name}, {key}" if name else key)


def _side_by_side(before: Row, after: Row) -> Row:
    row: Row = {}
    for name in dict.fromkeys([*before, *after]):
        old, new = before.get(name), after.get(name)
        if old == new:
            row[name] = new
            continue
        row[f"{name} before"], row[f"{name} after"] = old, new
        if all(isinstance(each, (int, float)) and each for each in (old, new)):
            row[f"{name} ratio"] = new / old  # type: ignore[operator]
    return row


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
