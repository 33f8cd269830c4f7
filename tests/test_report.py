"""Reports: what they show, what they must never show, and that a page is well made."""

from __future__ import annotations

import html
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

import sdc_dask
from sdc_dask.engine.moments import co_moments
from sdc_dask.errors import SdcImportError
from sdc_dask.report.categories import categories_of
from sdc_dask.report.roles import roles_of
from sdc_dask.report.shapes import counts_on, grids_of, merged, shape_of

XY = ["x", "<b>y"]  # names are text of users
EXTREME = 98765432.125
UNIQUE = "canary-7f3a"
SPEC = sdc_dask.Microaggregation(XY, k=4)
RISK = re.compile(r"risk|link|intruder|attack|disclos|certain|classes", re.IGNORECASE)
VOID = {"meta", "br"}


@pytest.fixture(scope="module")
def original() -> pd.DataFrame:
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(
        {
            "id": [f"person {number}" for number in range(300)],
            "x": rng.normal(50, 10, 300),
            "<b>y": rng.lognormal(3, 1, 300),
            "wealth": rng.normal(size=300),
            "secret": "common",
        }
    )
    frame.loc[17, "wealth"] = EXTREME
    frame.loc[17, "secret"] = UNIQUE
    return frame


@pytest.fixture(scope="module")
def masked(original: pd.DataFrame) -> pd.DataFrame:
    return original.drop(columns="id").sdc.mask(SPEC)


def _report(path: Path, *args: Any, **options: Any) -> str:
    made = sdc_dask.report(*args, path, **options)
    assert made == path
    return path.read_text(encoding="utf-8")


class _Page(HTMLParser):
    """What a page holds: tags, pictures with titles, and rows of tables as text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.titled: list[bool] = []  # by picture
        self.tables: list[list[list[str]]] = []
        self.headed: list[bool] = []  # by table
        self.text = text
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "table":
            self.tables.append([])
            self.headed.append(False)
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("th", "td"):
            self.tables[-1][-1].append("")
            if tag == "th":
                assert dict(attrs).get("scope") in ("col", "row")
                self.headed[-1] = True
        elif tag == "svg":
            self.titled.append(False)
        elif tag == "title" and "svg" in self.open:
            self.titled[-1] = True
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("th", "td"):
            self.tables[-1][-1][-1] += data

    def rows(self, first: str) -> list[list[str]]:
        """Return the rows of all tables that begin with a text."""
        return [row for table in self.tables for row in table if row and row[0] == first]


@pytest.mark.parametrize("edition", ["internal", "external"])
def test_a_page_is_well_made(
    tmp_path: Path, original: pd.DataFrame, masked: pd.DataFrame, edition: str
) -> None:
    text = _report(tmp_path / "page.html", original, masked, knows=SPEC, edition=edition)
    page = _Page(text)
    names = [tag for tag, _ in page.tags]
    assert not {"script", "link", "img", "iframe", "object"} & set(names)
    assert not any(
        name.startswith("on") or name in ("src", "href") for _, a in page.tags for name in a
    )
    assert "http:" not in text and "https:" not in text and "url(" not in text
    assert dict(page.tags)["html"] == {"lang": "en"}
    assert names.count("h1") == 1 and names.count("title") == 1 + names.count("svg")
    assert page.tables and all(page.headed)
    assert all(page.titled)
    # A histogram and quantiles of both columns, and correlations.
    assert len(page.titled) == (5 if edition == "internal" else 0)
    # Names of columns are text, wherever they are shown.
    assert "<b>" not in text
    assert "&lt;b&gt;y" in text


def _luminance(colour: str) -> float:
    digits = "".join(2 * each for each in colour) if len(colour) == 3 else colour
    parts = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_colours_have_contrast(
    tmp_path: Path, original: pd.DataFrame, masked: pd.DataFrame
) -> None:
    text = _report(tmp_path / "page.html", original, masked, knows=SPEC)
    (style,) = re.findall("<style>(.*?)</style>", text, re.DOTALL)
    found = {
        kind: set(re.findall(rf"[{{; ]{kind}: #([0-9a-f]+)", style))
        for kind in ("color", "background", "fill", "stroke")
    }
    assert len(found["color"]) >= 2 and len(found["background"]) >= 3

    def contrast(one: str, other: str) -> float:
        dark, light = sorted(_luminance(each) + 0.05 for each in (one, other))
        return light / dark

    # As the guidelines for accessible pages ask: 4.5 for text, 3 for shapes.
    for ground in found["background"]:
        assert min(contrast(each, ground) for each in found["color"]) >= 4.5
    shapes = (found["fill"] | found["stroke"]) - {"fff"}
    assert min(contrast(each, "fff") for each in shapes) >= 3


CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")


# Shows a page in frames of several widths, since a window cannot be as narrow as a phone, and says
# whether it is wider than the frame, and what is wider and does not lie in a box that scrolls.
FRAMES = """<body><script>
function look(frame) {
  const page = frame.contentDocument, width = frame.clientWidth;
  const beyond = page.documentElement.scrollWidth > width;
  const lost = [...page.querySelectorAll("table, svg, pre, p")].filter(
    each => each.getBoundingClientRect().right > width && !each.closest(".scroll"));
  document.body.append(`[${width}: ${beyond}, ${lost.length}]`);
}
</script>"""
FRAME = '<iframe width="%d" height="800" style="border:0" onload="look(this)" srcdoc="%s"></iframe>'


def _browse(page: Path, profile: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    common = (
        "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-sync "
        "--disable-background-networking --disable-component-update --enable-logging=stderr"
    )
    return subprocess.run(
        [
            *(str(CHROMIUM), *common.split(), f"--user-data-dir={profile}", *flags),
            *("--dump-dom", page.as_uri()),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium is installed to look at a page with")
@pytest.mark.parametrize("kinds", ["numbers", "mixed"])
@pytest.mark.parametrize("edition", ["internal", "external"])
def test_a_browser_finds_nothing_wrong(
    tmp_path: Path,
    original: pd.DataFrame,
    masked: pd.DataFrame,
    mixed: pd.DataFrame,
    edition: str,
    kinds: str,
) -> None:
    pair, specs = (original, masked), [SPEC]
    if kinds == "mixed":
        pair, specs = (mixed, mixed.sdc.mask(MIXED)), MIXED
    text = _report(tmp_path / "page.html", *pair, knows=specs, edition=edition)
    logged = tmp_path / "net.json"
    shown = _browse(tmp_path / "page.html", tmp_path / "profile", f"--log-net-log={logged}")
    expected = "Risk before and after" if edition == "internal" else "What to expect"
    assert expected in shown.stdout
    assert "CONSOLE" not in shown.stderr  # where errors and refused requests are told
    hosts = set(re.findall(r'"url":"(?:http|https|ws|wss)://([^/"]*)', logged.read_text()))
    # Some flag or other always leaves a browser some business with its maker.
    own = re.compile(r"(.*\.)?(google|googleapis|gvt1|gstatic)\.com")
    assert not [host for host in hosts if not own.fullmatch(host)]
    frames = "".join(FRAME % (width, html.escape(text)) for width in (1280, 390))
    (tmp_path / "frames.html").write_text(FRAMES + frames, encoding="utf-8")
    seen = _browse(tmp_path / "frames.html", tmp_path / "profile", "--hide-scrollbars").stdout
    assert "[1280: false, 0]" in seen and "[390: false, 0]" in seen


@pytest.mark.parametrize("edition", ["internal", "external"])
def test_dask_as_pandas(
    tmp_path: Path, original: pd.DataFrame, masked: pd.DataFrame, edition: str
) -> None:
    one = _report(tmp_path / "pandas.html", original, masked, knows=SPEC, edition=edition)
    frames = [dd.from_pandas(frame, npartitions=3) for frame in (original, masked)]
    with dask.config.set(scheduler="threads"):
        other = _report(tmp_path / "dask.html", *frames, knows=SPEC, edition=edition)
    assert one == other


def test_rows_are_paired_by_the_index(
    tmp_path: Path, original: pd.DataFrame, masked: pd.DataFrame
) -> None:
    one = _report(tmp_path / "1.html", original, masked, knows=SPEC)
    assert _report(tmp_path / "2.html", original, masked.iloc[::-1], knows=SPEC) == one
    with pytest.raises(ValueError, match="other rows"):
        sdc_dask.report(original, masked.iloc[1:], tmp_path / "3.html", knows=SPEC)
    assert not (tmp_path / "3.html").exists()


def test_masking_lowers_the_risk(
    tmp_path: Path, original: pd.DataFrame, masked: pd.DataFrame
) -> None:
    page = _Page(_report(tmp_path / "page.html", original, masked, knows=SPEC))
    before, after = page.rows("x, <b>y")[:2]
    assert before[1:] == ["before", "300", "1", "300", "300"]
    assert after[1] == "after" and after[4:] == ["0", "0"] and int(after[3]) >= 4
    (distance,) = page.rows("distance")
    assert distance[2] == "100.00 %" and float(distance[3].split()[0]) < 50
    assert distance[5:] == ["300", "0", "300"]
    # Who knows the masking has nothing to make use of where there is none.
    assert {row[2] for row in page.rows("intersection")} == {"–"}  # noqa: RUF001
    (parameters,) = re.findall("<pre>(.*)</pre>", (tmp_path / "page.html").read_text())
    assert parameters.startswith("Microaggregation(columns=")
    (gap,) = page.rows("SSE over its bound")
    assert float(gap[1]) >= 1


def test_nothing_changes_if_nothing_is_masked(tmp_path: Path, original: pd.DataFrame) -> None:
    page = _Page(_report(tmp_path / "page.html", original, original.copy(), columns=XY))
    before, after = page.rows("x, <b>y")[:2]
    assert before[2:] == after[2:]
    for attack in ("distance", "probabilistic"):
        ((_, _, linked, still, _, certain, as_certain, _),) = page.rows(attack)
        assert (linked, certain) == (still, as_certain)
    for name in XY:
        statistics, before, after = page.rows(name)[-3:]
        assert statistics[1] == statistics[2] and statistics[3] == statistics[4]
        assert statistics[5:] == ["0.00 %", "100.00 %"]
        assert before[2:] == after[2:]
    assert page.rows("x")[0] == ["x", "kept", ""]


@pytest.mark.parametrize("edition", ["internal", "external"])
def test_no_value_is_shown(
    tmp_path: Path, original: pd.DataFrame, masked: pd.DataFrame, edition: str
) -> None:
    path = tmp_path / "page.html"
    columns = [*XY, "wealth"]
    page = _report(path, original, masked, knows=SPEC, edition=edition, columns=columns)
    plain = page.replace(",", "")
    assert UNIQUE not in page and "common" not in page and "person 1" not in page
    for digits in ("9876", f"{EXTREME:.3g}", f"{EXTREME:.4g}"):
        assert digits not in plain
    if edition == "external":  # nor can what is left out be told from a figure of all columns
        assert _Page(page).rows("wealth")[1][1:] == ["–"] * 4  # noqa: RUF001
        assert "% was lost on average" in page
    # A single value is nearly all of the mean and of the deviation.
    wealth = original["wealth"]
    for value in (wealth.mean(), wealth.std(ddof=0), wealth.sum()):
        assert f"{value:.3g}" not in plain and f"{value:.0f}"[:3] not in _in_tables(page)
    for frame in (original, masked):
        for column in XY:
            shown = re.findall(r"[0-9.]{5,}", plain)
            assert not set(shown) & {f"{value:.4f}" for value in frame[column]}
            for value in (frame[column].min(), frame[column].max()):
                assert f"{value:.4g}" not in shown
    if edition == "internal":
        found = _Page(page)
        assert found.rows("wealth")[0] == ["wealth", "kept", ""]
        quantiles = found.rows("wealth")[2]
        assert -3 < float(quantiles[2]) < -1 < 1 < float(quantiles[-1]) < 3
        assert (path.stat().st_mode & 0o777) == 0o600


def _in_tables(page: str) -> str:
    return " ".join(cell for table in _Page(page).tables for row in table for cell in row[1:])


def test_an_external_edition_says_nothing_of_risk(
    tmp_path: Path, original: pd.DataFrame, masked: pd.DataFrame
) -> None:
    text = _report(tmp_path / "page.html", original, masked, knows=SPEC, edition="external")
    assert not RISK.search(text)
    page = _Page(text)
    assert page.rows("x")[0] == ["x", "microaggregation by mdav, k = 4"]
    assert page.rows("secret") == [["secret", "as collected"]]
    assert page.rows("id") == []  # what was dropped is nobody's business
    lost = [float(page.rows(name)[1][4].split()[0]) for name in XY]
    (mean,) = re.findall(r"([0-9.]+) % was lost on average", text)
    assert float(mean) == pytest.approx(sum(lost) / 2, abs=0.01)
    assert len(page.rows("x")[1]) == 5


def test_several_maskings(tmp_path: Path, original: pd.DataFrame, masked: pd.DataFrame) -> None:
    swap = sdc_dask.RankSwap(XY, p=10)
    frames = {"<mean>": masked, "swap": original.sdc.mask(swap, random_state=987654321)}
    options = {"knows": {"<mean>": SPEC, "swap": swap}, "sample": 50, "random_state": 123454321}
    text = _report(tmp_path / "page.html", original, frames, **options)
    page = _Page(text)
    assert page.rows("<mean>")[0][1] == "0" and page.rows("swap")[0][1] != "0"
    assert "123454321" not in text and "987654321" not in text
    assert len(page.titled) == 10
    assert page.rows("rank_swap")[0][-1] == "50"


def test_small_bins_are_merged(original: pd.DataFrame) -> None:
    rng = np.random.default_rng(1)
    for least in (3, 20, 120, 301):
        before = pd.DataFrame({"x": rng.choice([rng.normal(), rng.normal(1)], 300)})
        before["x"] = np.where(rng.random(300) < 0.3, before["x"], rng.standard_t(2, 300))
        after = before.sdc.microaggregate(["x"], k=3)
        grids = grids_of(before, co_moments(before, ["x"]))
        counts = [counts_on(frame, grids)["x"] for frame in (before, after)]
        shape = shape_of(grids["x"], *counts, least)
        bins = shape.histogram
        if least == 301:
            assert bins is None and not any(each.before for each in shape.quantiles)
            continue
        if bins is not None:
            assert min(*bins.before, *bins.after) >= least
            assert sum(bins.before) == sum(bins.after) == 300
            assert len(bins.edges) == len(bins.widths) - 1
        for each in shape.quantiles:
            for value, frame in ((each.before, before), (each.after, after)):
                # As many lie beyond it, or share its cell, whose width is what it is rounded by.
                if value is not None:
                    near = 0.05 * max(1, abs(value))
                    assert (frame["x"] <= value + near).sum() >= least
                    assert (frame["x"] >= value - near).sum() >= least
    assert merged([1, 1, 1], [5, 0, 5], least=4) == []


def test_quantiles_are_those_of_the_values(original: pd.DataFrame) -> None:
    for column in [*XY, "wealth"]:  # an outlier does not hide the others
        grids = grids_of(original, co_moments(original, [column]))
        counts = counts_on(original, grids)[column]
        middle = original[column].quantile([0.05, 0.95])
        width = middle.iloc[1] - middle.iloc[0]
        for each in shape_of(grids[column], counts, counts, 3).quantiles:
            exact = original[column].quantile(each.percent / 100, interpolation="higher")
            assert each.before == pytest.approx(exact, abs=0.03 * width)


def test_roles(original: pd.DataFrame) -> None:
    changed = original.drop(columns="id").assign(secret="other", lists=[[1]] * 300)
    roles = {each.column: each.role for each in roles_of(original, changed, [SPEC])}
    assert roles == {
        "id": "dropped",
        "x": "masked",
        "<b>y": "masked",
        "wealth": "kept",
        "secret": "changed",
        "lists": "added",
    }
    lists = original.assign(secret=[[1]] * 300)
    assert {each.column: each.role for each in roles_of(lists, lists, [])}["secret"] == (
        "not compared"
    )


def test_missing_cells_are_no_obstacle(tmp_path: Path, original: pd.DataFrame) -> None:
    frame = original.assign(x=original["x"].where(original.index % 10 != 3))
    text = _report(tmp_path / "page.html", frame, frame, columns=["x"])
    assert "Links could not all be measured: all columns that intruders know" in text
    assert len(_Page(text).titled) == 2
    page = _Page(_report(tmp_path / "page.html", frame, frame, columns=["x", "wealth"]))
    assert "Links were measured without x: cells are missing" in page.text
    assert page.rows("distance")[0][3] == "100.00 %"  # by wealth alone


def test_no_jinja(
    tmp_path: Path,
    original: pd.DataFrame,
    masked: pd.DataFrame,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(SdcImportError, match=r"pip install 'sdc-dask\[report\]'"):
        sdc_dask.report(original, masked, tmp_path / "page.html", knows=SPEC)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"edition": "public"}, ValueError, "edition must be one of 'internal', 'external'"),
        ({"k": 1}, ValueError, "k must be at least 2"),
        ({"k": 400}, ValueError, "fewer than the 400"),
        ({"columns": ["wealth"]}, ValueError, "none that the specs mask"),
        ({"columns": ["nobody"]}, KeyError, "does not have: 'nobody'"),
        ({"columns": ["secret"]}, ValueError, "none that the specs mask"),
        ({"knows": {"a": SPEC}}, TypeError, "knows is a dict, and masked is a single frame"),
        ({"knows": "mdav"}, TypeError, "what masks must be a spec"),
        ({"knows": sdc_dask.RankSwap(["id"], p=5)}, KeyError, "the masked frame does not have"),
        ({"masked": {}}, ValueError, "masked is an empty dict"),
        ({"masked": 3}, TypeError, "masked must be a frame of the kind of the original"),
        ({"original": [1]}, TypeError, "original must be a pandas or Dask DataFrame"),
        ({"edition": "external", "sample": 10}, ValueError, "no meaning for an external report"),
        ({"edition": "external", "confidential": "secret"}, ValueError, "have no meaning for an"),
        ({"confidential": ["x"]}, ValueError, "that intruders are taken to know: 'x'"),
        ({"confidential": ["id"]}, KeyError, "the masked frame does not have: 'id'"),
        ({"sample": "some"}, ValueError, "sample must be a whole number"),
        ({"path": "."}, ValueError, "path is a directory"),
        ({"path": "nowhere/page.html"}, FileNotFoundError, "no directory for the report"),
        ({"path": 3}, TypeError, "path must be a path of a file, received int"),
    ],
)
def test_wrong_arguments(
    tmp_path: Path,
    original: pd.DataFrame,
    masked: pd.DataFrame,
    monkeypatch: pytest.MonkeyPatch,
    options: dict[str, Any],
    error: type[Exception],
    words: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = {"original": original, "masked": masked, "knows": SPEC, **options}
    with pytest.raises(error, match=re.escape(words)) as found:
        sdc_dask.report(**arguments)
    assert isinstance(found.value, sdc_dask.SdcError)
    assert not list(tmp_path.iterdir())


def test_an_external_edition_is_of_one_release(
    tmp_path: Path, original: pd.DataFrame, masked: pd.DataFrame
) -> None:
    frames = {"one": masked, "other": masked}
    with pytest.raises(ValueError, match="about one release, received 2"):
        sdc_dask.report(original, frames, tmp_path / "page.html", edition="external")
    with pytest.raises(ValueError, match="knows names frames"):
        sdc_dask.report(original, frames, tmp_path / "page.html", knows={"third": SPEC})
    assert not list(tmp_path.iterdir())


def test_columns_of_a_smaller_k_are_named(tmp_path: Path, original: pd.DataFrame) -> None:
    specs = [sdc_dask.Microaggregation(["x"], k=7), sdc_dask.Microaggregation(["wealth"], k=3)]
    page = _Page(_report(tmp_path / "page.html", original, original.sdc.mask(specs), knows=specs))
    assert "wealth: k = 3 was asked for, and classes are counted below 7" in page.text
    assert "k = 7 was asked for" not in page.text


def test_what_columns_are_used_for(tmp_path: Path, original: pd.DataFrame) -> None:
    df = original.assign(home=original.index // 2, side=original.index % 2)
    df = df.drop(columns="id").assign(code=original.index, job="a")
    spec = sdc_dask.Microaggregation(XY, k=4, by="side", unit="home")
    masked = df.sdc.mask(spec)
    options = {"knows": [sdc_dask.Noise(XY[::-1], sd=0.1), spec], "confidential": "job"}
    page = _Page(_report(tmp_path / "page.html", df, masked, **options))
    roles = {row[0]: row[1] for row in page.tables[0]}
    assert roles["side"] == "kept; values are never mixed (by)"
    assert roles["home"] == "kept; counted by k (unit)"
    assert roles["job"] == "kept; confidential"
    assert (
        "code is unique or nearly so: 100 % of its records have a value of their own" in page.text
    )
    assert "home is unique" not in page.text  # two records have each value
    assert "wealth is unique" in page.text and "side is unique" not in page.text
    # Both specs have the same columns: they are one set, of which k counts units.
    assert not page.rows("x, <b>y (different home, not records)")
    before, after = page.rows("<b>y, x (different home, not records)")
    assert before[1:4] == ["before", "300", "1"] and after[4] == "0"
    found = masked.sdc.anonymity(XY, k=4, unit="home")
    assert after[3] == str(found.k_min) and after[5] == "–"  # noqa: RUF001
    gone = masked.drop(columns="home")
    page = _Page(_report(tmp_path / "page.html", df, gone, knows=spec))
    assert page.rows("x, <b>y") and "although k counts different home" in page.text
    outer = _report(tmp_path / "page.html", df, masked, knows=spec, edition="external")
    assert "<li>x, &lt;b&gt;y</li>" in outer and "unique" not in outer


def test_series_are_reported(tmp_path: Path) -> None:
    df = sdc_dask.datasets.panel(120, 12, seed=1).compute()
    series = {"x": list(df.columns[:6]), "y": list(df.columns[6:])}
    spec = sdc_dask.SeriesMicroaggregation(series, k=4)
    masked = df.sdc.mask(spec)
    options = {"knows": spec, "columns": series["x"]}
    page = _Page(_report(tmp_path / "page.html", df, masked, random_state=1, **options))
    risk, lost = page.rows("x, y")
    found = df.sdc.series_risk(masked, series)
    assert risk[1:4] == [f"{each:.2f} %" for each in (found.euld, found.stsld, found.interval)]
    loss = df.sdc.series_loss(masked, series)
    assert lost[1:] == [f"{each:.2f} %" for each in (loss.il1, loss.il2, loss.il3, loss.il)]
    outer = _report(tmp_path / "page.html", df, masked, edition="external", **options)
    assert _Page(outer).rows("x, y") == [lost] and not RISK.search(outer)
    short = sdc_dask.SeriesMicroaggregation(series["x"][:4], k=4)
    text = _report(tmp_path / "page.html", df, df.sdc.mask(short), knows=short)
    assert "What was lost of series could not be measured: series must have" in text
    assert len(_Page(text).rows("t0 to t3")) == 1


def test_what_classes_reveal(tmp_path: Path, original: pd.DataFrame, masked: pd.DataFrame) -> None:
    path = tmp_path / "page.html"
    page = _Page(_report(path, original, masked, knows=SPEC, confidential="secret"))
    before, after = page.rows("secret")[1:]
    found = masked.sdc.anonymity(XY, confidential="secret")
    assert before[:5] == ["secret", "before", "1", "1", "300 of 300"]
    assert after[4] == f"{found.diversity[0].homogeneous} of {found.classes}"
    assert "Attribute disclosure was not measured" not in page.text


# Columns of every kind

RARE = ["canary-mayor", "canary-judge"]  # which one record has, and two
JOBS = ["cook", "nurse", "clerk", *RARE]
MIXED = [
    sdc_dask.Recode(["age"], bins=[0, 30, 60, 120], labels=["young", "<i>middle", "old"]),
    sdc_dask.Suppress(["age", "job"], k=4),
    sdc_dask.Microaggregation(["x"], k=4),
]


@pytest.fixture(scope="module")
def mixed() -> pd.DataFrame:
    rng = np.random.default_rng(9)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 90, 300),
            "job": pd.Series(rng.choice(JOBS[:3], 300, p=[0.5, 0.3, 0.2]), dtype=object),
            "x": rng.normal(50, 10, 300),
        }
    )
    frame.loc[5, "job"] = RARE[0]
    frame.loc[[7, 8], "job"] = RARE[1]
    return frame


@pytest.mark.parametrize("edition", ["internal", "external"])
def test_columns_of_every_kind(tmp_path: Path, mixed: pd.DataFrame, edition: str) -> None:
    masked = mixed.sdc.mask(MIXED)
    options = {"knows": MIXED, "edition": edition}
    text = _report(tmp_path / "page.html", mixed, masked, **options)
    assert not [name for name in RARE if name in text]
    assert "<i>" not in text
    page = _Page(text)
    suppressed = int(masked["job"].isna().sum())
    assert suppressed >= 3
    frames = [dd.from_pandas(frame, npartitions=3) for frame in (mixed, masked)]
    with dask.config.set(scheduler="threads"):
        assert _report(tmp_path / "dask.html", *frames, **options) == text
    if edition == "external":
        assert not RISK.search(text) and not page.titled
        assert page.rows("job")[1][-1] == str(suppressed)
        assert page.rows("age")[0][1] == "recoding, 3 ranges; then local suppression, k = 4"
        return
    cells = next(row for row in page.rows("job") if row[1] == "nominal")
    assert cells[4:6] == ["0", str(suppressed)]
    before, after = page.rows("age, job")[:2]
    assert int(before[4]) > 0 and after[4:] == ["0", "0"]
    (links,) = page.rows("Gower distance")
    found = mixed.sdc.mask(MIXED[0]).sdc.linkage(masked, "gower", columns=["x", "age", "job"])
    assert links[3] == f"{found.rate:.2f} %" and links[1].endswith("how columns were recoded")
    (jobs,) = re.findall(r"Frequencies of job before and after masking: ([^<]*)", text)
    assert "cook" in jobs
    (ages,) = re.findall(r"Frequencies of age after masking: ([^<]*)", text)
    assert ages.startswith("young") and "&lt;i&gt;middle" in ages


def test_no_numbers_at_all(tmp_path: Path, mixed: pd.DataFrame) -> None:
    spec = sdc_dask.Suppress(["job"], k=4)
    page = _Page(_report(tmp_path / "page.html", mixed, mixed.sdc.mask(spec), knows=spec))
    assert page.rows("Gower distance") and not page.rows("IL1")
    assert not [name for name in RARE if name in page.text]


def test_rare_categories_are_pooled() -> None:
    rng = np.random.default_rng(2)
    for least in (3, 10):
        for _ in range(100):
            counts = {
                value: tuple(map(int, rng.choice([0, 1, 2, 5, 12, 40], 2)))
                for value in [*"abcdefghijklmnopq", None]
            }
            short = [sum(each) for each in zip(*counts.values(), strict=True)]
            counts["z"] = (60 + max(short) - short[0], 60 + max(short) - short[1])
            found = categories_of(counts, [], least)
            if found is None:
                continue
            assert sum(each.after for each in found.shown) == found.rows == 60 + max(short)
            assert sum(each.before for each in found.shown) == (0 if found.renamed else found.rows)
            for each in found.shown:
                assert all(number == 0 or number >= least for number in (each.before, each.after))
    assert categories_of({value: (5, 5) for value in range(40)}, [], 3) is None  # most are pooled


# Of a release


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory, original: pd.DataFrame) -> Path:
    path = tmp_path_factory.mktemp("source") / "source.parquet"
    original.drop(columns="secret").assign(group=original.index % 3).to_parquet(path, index=False)
    return path


PLAN = [sdc_dask.Microaggregation(["x"], k=4), sdc_dask.RankSwap(["<b>y"], p=10)]
KEPT = {"drop": ["id"], "keep": "*"}


def test_a_release_is_reported(tmp_path: Path, source: Path) -> None:
    internal, external = tmp_path / "internal.html", tmp_path / "external.html"
    with dask.config.set(scheduler="threads"):
        summary = sdc_dask.protect(
            source,
            tmp_path / "release",
            PLAN,
            **KEPT,
            random_state=987654321,
            report=internal,
            external_report=external,
            confidential="group",
        )
    assert sdc_dask.verify(tmp_path / "release").ok
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "external.html",
        "internal.html",
        "release",
    ]
    assert [path.stat().st_mode & 0o777 for path in (internal, external)] == [0o600, 0o644]
    page = _Page(internal.read_text())
    roles = {row[0]: row[1] for row in page.tables[0]}
    assert roles["id"] == "dropped" and roles["wealth"] == "kept" and roles["x"] == "masked"
    swapped = page.rows("intersection")[0]
    assert swapped[-1] == "300"
    before, after = page.rows("x")[1:3]
    assert before[3] == "1" and after[3] == str(summary.anonymity[0].k_min)
    assert page.rows("group")[-1][1] == "after"
    assert f"the smallest has {summary.anonymity[0].k_min} records, 4 were asked for" in page.text
    assert not RISK.search(external.read_text())
    for text in (page.text, external.read_text()):
        assert "987654321" not in text and "9876" not in text.replace(",", "")
        assert "person 1" not in text and str(tmp_path) not in text


def test_a_release_of_every_kind_is_reported(tmp_path: Path, mixed: pd.DataFrame) -> None:
    mixed.to_parquet(tmp_path / "source.parquet", index=False)
    pages = {"report": tmp_path / "in.html", "external_report": tmp_path / "ex.html"}
    with dask.config.set(scheduler="threads"):
        sdc_dask.protect(tmp_path / "source.parquet", tmp_path / "release", MIXED, **pages)
    released = pd.read_parquet(tmp_path / "release")
    internal, external = (path.read_text() for path in pages.values())
    assert not [name for name in RARE if name in internal + external]
    assert not RISK.search(external)
    suppressed = str(int(released["job"].isna().sum()))
    assert _Page(external).rows("job")[1][-1] == suppressed
    page = _Page(internal)
    assert page.rows("Gower distance") and len(page.titled) >= 4
    masked = mixed.sdc.mask(MIXED)
    found = mixed.sdc.mask(MIXED[0]).sdc.linkage(masked, "gower", columns=["x", "age", "job"])
    assert page.rows("Gower distance")[0][3] == f"{found.rate:.2f} %"


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"report": "release/page.html"}, FileNotFoundError, "no directory for the report"),
        ({"report": "old/page.html"}, ValueError, "lies in the source or the target"),
        ({"report": "."}, ValueError, "report is a directory"),
        ({"external_report": 3}, TypeError, "external_report must be a path of a file"),
        ({"report": "a.html", "external_report": "a.html"}, ValueError, "name the same file"),
        ({"confidential": "group"}, ValueError, "confidential is for a report"),
        ({"report": "a.html", "confidential": "id"}, ValueError, "not kept: 'id'. Kept are"),
        (
            {"report": "a.html", "specs": sdc_dask.Microaggregation(["x"], k=400)},
            ValueError,
            "fewer than the 400",
        ),
    ],
)
def test_reports_that_cannot_be_made(
    tmp_path: Path,
    source: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: dict[str, Any],
    error: type[Exception],
    words: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    target = tmp_path / "release"
    if options.get("report") == "old/page.html":
        target = tmp_path / "old"
        target.mkdir()
    frame = pd.read_parquet(source).rename(columns={"id": "name"} if "specs" in options else {})
    frame.to_parquet(tmp_path / "source.parquet", index=False)
    drop = [] if "specs" in options else ["id"]
    given = {"specs": PLAN, "drop": drop, "keep": "*", **options}
    found = sorted(tmp_path.iterdir())
    with dask.config.set(scheduler="threads"), pytest.raises(error, match=re.escape(words)):
        sdc_dask.protect(tmp_path / "source.parquet", target, **given, replace=True)
    assert sorted(tmp_path.iterdir()) == found


def test_no_release_has_no_report(
    tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise sdc_dask.SdcError("the disk is full")

    monkeypatch.setattr("sdc_dask.release.target._complete", fail)
    with dask.config.set(scheduler="threads"), pytest.raises(sdc_dask.SdcError, match="disk"):
        sdc_dask.protect(source, tmp_path / "release", PLAN, **KEPT, report=tmp_path / "a.html")
    assert not list(tmp_path.iterdir())
