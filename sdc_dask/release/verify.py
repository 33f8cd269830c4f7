"""Look at a release again, by its files alone: whether all are there, unchanged, and k is kept."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from sdc_dask.engine.combinations import count_combinations
from sdc_dask.engine.frames import Calls, Frame
from sdc_dask.errors import SdcFileNotFoundError, SdcValueError
from sdc_dask.release.directory import entries_of
from sdc_dask.release.manifest import (
    NAME,
    Manifest,
    MatchPromise,
    Promise,
    ReleasedFile,
    types_of,
)
from sdc_dask.release.object_store import digest_of, leftovers, manifest_of, objects_of
from sdc_dask.release.places import Place
from sdc_dask.release.promises import matches_of
from sdc_dask.release.source import open_source
from sdc_dask.results import Result, several
from sdc_dask.risk.anonymity import anonymity
from sdc_dask.stages import staged


@dataclass(frozen=True, repr=False)
class Verification(Result):
    """What was found of a release: nothing failed, or what did."""

    target: str
    rows: int
    files: int
    checked: tuple[str, ...]
    failed: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing failed."""
        return not self.failed

    def __repr__(self) -> str:
        lines = [
            f"{'Verified' if self.ok else 'NOT as released'}: {several(self.rows, 'row')} in "
            f"{several(self.files, 'file')}: {self.target}"
        ]
        lines += [f"  ok         {each}" for each in self.checked]
        lines += [f"  FAILED     {each}" for each in self.failed]
        return "\n".join(lines)


@staged("Looking at the files again")
def verify(
    target: str | os.PathLike[str], *, storage_options: Mapping[str, Any] | None = None
) -> Verification:
    """Check a release against its manifest, and count k again, by the files alone.

    The work runs where Dask runs it, as that of :func:`sdc_dask.protect`.

    Parameters
    ----------
    target : path or URL
        A directory or prefix that :func:`sdc_dask.protect` made, or a copy of one.
    storage_options : dict, optional
        Of a URL, for fsspec.

    Returns
    -------
    Verification
        ``ok``, and what was checked and what failed, in words. Files are compared with their size
        and SHA-256; rows and schema with what their footers say; and classes of equal records, or
        records that match where a missing cell may be any value, are counted anew for each k that
        was promised. Where k counts persons or households (`unit`),
        records are counted all the same, and the text says so: units are no part of a release, and
        were counted when it was made.

    Raises
    ------
    SdcFileNotFoundError
        If there is no such directory, or no manifest in it: it is no release then.
    SdcValueError
        If the manifest is not whole.

    Examples
    --------
    >>> import tempfile, pathlib, sdc_dask
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> sdc_dask.datasets.survey(1_000, seed=1)[["income", "age"]].to_parquet(
    ...     folder / "survey", write_index=False
    ... )
    >>> spec = sdc_dask.Microaggregation(["income", "age"], k=5)
    >>> summary = sdc_dask.protect(folder / "survey", folder / "release", spec)
    >>> sdc_dask.verify(folder / "release").ok
    True
    """
    place = Place.of(target, storage_options)
    manifest = release_manifest(place)
    found = _entries(place)
    checked: list[str] = []
    failed = list(_strangers(found, manifest))
    if failed and not place.is_local:
        failed += [each.described for each in leftovers(place)]
    there = [file for file in manifest.everything if found.get(file.name)]
    if not failed:
        checked.append(f"there: {several(len(there), 'file')} of the manifest, and no others")
    changed = _changed(place, there)
    failed += changed
    if not changed and there:
        checked.append("sizes and SHA-256 of files")
    shapes = [] if changed else list(_shapes(place, manifest, there))
    failed += shapes
    if not failed:
        checked.append("rows and schema")
        for text, kept in _promises(place, manifest):
            (checked if kept else failed).append(text)
    return Verification(
        place.url, manifest.rows, len(manifest.files), tuple(checked), tuple(failed)
    )


def release_manifest(target: Place) -> Manifest:
    """Read the manifest of a release; raise an error if there is none, or not a whole one."""
    if not target.is_local:
        return manifest_of(target)
    if not os.path.isdir(target.path):
        raise SdcFileNotFoundError(f"{target.url!r} is no directory: name a release.")
    return Manifest.read(Path(target.path))


def _entries(target: Place) -> dict[str, bool]:
    """Return what is there besides the manifest, and whether it is a file."""
    if not target.is_local:
        return {name: True for name in objects_of(target) if name != NAME}
    found = entries_of(Path(target.path))
    return {name: is_file for name, is_file in found.items() if name != NAME}


def _strangers(found: Mapping[str, bool], manifest: Manifest) -> Iterator[str]:
    """Say which files are missing, and how many there are that do not belong there."""
    known = {file.name for file in manifest.everything}
    for name in sorted(known - set(found)):
        yield f"file {name!r} is missing"
    others = set(found) - known
    if others:
        what = "entry is" if len(others) == 1 else "entries are"
        yield f"{len(others):,} {what} not in the manifest, such as {min(others)!r}"
    for name in sorted(name for name in known & set(found) if not found[name]):
        yield f"file {name!r} is a link, or no file"


def _changed(target: Place, files: list[ReleasedFile]) -> list[str]:
    """Compare files with what was written, side by side where there are workers."""
    call = Calls(lazy=True)
    tasks = [call(_difference, target / file.name, file) for file in files]
    found = call.compute(call(list, tasks)) if tasks else []
    return [text for text in found if text is not None]


def _difference(place: Place, file: ReleasedFile) -> str | None:
    size = (place.info() or {})["size"]
    if size != file.size:
        return f"file {file.name!r} has {size:,} bytes, and had {file.size:,}"
    if digest_of(place) != file.sha256:
        return f"file {file.name!r} has other contents: its SHA-256 differs"
    return None


def _shapes(target: Place, manifest: Manifest, files: list[ReleasedFile]) -> Iterator[str]:
    """Compare rows and schemas of footers with the manifest."""
    for file in files:
        if file == manifest.log:
            continue
        with (target / file.name).open() as opened:
            metadata = pq.read_metadata(opened)
        if metadata.num_rows != file.rows:
            yield f"file {file.name!r} has {metadata.num_rows:,} rows, and had {file.rows:,}"
        types = types_of(metadata.schema.to_arrow_schema())
        if list(types.items()) != list(manifest.stored.items()):
            yield f"file {file.name!r} has other columns or types than the manifest"
    rows = sum(file.rows for file in manifest.files)
    if rows != manifest.rows:
        yield f"files have {rows:,} rows, and the manifest says {manifest.rows:,}"


def _promises(target: Place, manifest: Manifest) -> Iterator[tuple[str, bool]]:
    """Count classes again, and records that match."""
    for promise in manifest.promises:
        found = anonymity(_frame(target, manifest, promise), promise.columns, promise.k)
        text = (
            f"k = {promise.k:,} in {', '.join(promise.columns)}: the smallest of "
            f"{found.classes:,} classes has {found.k_min:,} records"
        )
        if _is_by_unit(manifest, promise):
            text += " (records, not units, which are no part of a release)"
        same = (found.k_min, found.classes) == (promise.smallest, promise.classes)
        if not same:
            text += f"; {promise.smallest:,} of {promise.classes:,} classes in the manifest"
        yield text, same and found.k_min >= promise.k
    for match in manifest.matches:
        frame = _frame(target, manifest, match)
        matching = matches_of(count_combinations(frame, match.columns))
        text = (
            f"k = {match.k:,} in {', '.join(match.columns)}, where a missing cell matches any "
            f"value: {matching.smallest:,} records match each; where it does not, "
            f"{matching.smallest_class:,} are equal in the smallest class"
        )
        same = astuple(matching) == (match.smallest, match.smallest_class)
        if not same:
            text += f"; {match.smallest:,} and {match.smallest_class:,} in the manifest"
        yield text, same and matching.smallest >= match.k


def _frame(target: Place, manifest: Manifest, promise: Promise | MatchPromise) -> Frame:
    """Return the columns of a promise as they are in the files."""
    columns = promise.columns
    if any(name not in manifest.schema for name in columns):
        raise SdcValueError(
            f"the manifest promises k for columns that it has not: {', '.join(columns)}."
        )
    # What is in paths alone has no type there.
    types = {name: manifest.schema[name] for name in manifest.partition_by}
    return open_source(target, cast=types).frame([], columns)


def _is_by_unit(manifest: Manifest, promise: Promise) -> bool:
    """Whether k was promised for units, which only whoever made the release could count."""
    for spec in manifest.specs:
        if "unit" not in spec:
            continue
        columns = spec["columns"]
        sets = columns if columns and isinstance(columns[0], list) else [columns]
        if any(set(each) <= set(promise.columns) for each in sets):
            return True
    return False
