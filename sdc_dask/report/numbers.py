"""Numbers as people read them: a few digits, and a dash for what is not there."""

from __future__ import annotations

import math

NOTHING = "–"  # noqa: RUF001 - a dash, as it is printed


def number(value: float | None, digits: int = 4) -> str:
    """Return a number with a few significant digits.

    Examples
    --------
    >>> [number(each) for each in (0.0, 12345.678, 0.012345, 1.5e9, -2.0)]
    ['0', '12,350', '0.01235', '1.5e+09', '-2']
    """
    if value is None or not math.isfinite(value):
        return NOTHING
    if value == 0:
        return "0"
    rounded = float(f"{value:.{digits - 1}e}")
    if not 1e-4 <= abs(rounded) < 1e7:
        return f"{value:.{digits}g}"
    places = max(0, digits - 1 - math.floor(math.log10(abs(rounded))))
    text = f"{rounded:,.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def percent(value: float | None, places: int = 2) -> str:
    """Return a percentage.

    Examples
    --------
    >>> percent(12.3456), percent(None) == NOTHING
    ('12.35 %', True)
    """
    if value is None or not math.isfinite(value):
        return NOTHING
    return f"{value + 0.0:.{places}f} %"


def signed(value: float | None, places: int = 3) -> str:
    """Return a difference with its sign; what is rounded to zero has none.

    Examples
    --------
    >>> signed(0.25), signed(-0.25), signed(-1e-9)
    ('+0.250', '-0.250', '0.000')
    """
    if value is None or not math.isfinite(value):
        return NOTHING
    text = f"{value:+.{places}f}"
    return text if float(text) else text[1:]


def whole(value: int | None) -> str:
    """Return a count.

    Examples
    --------
    >>> whole(1234567)
    '1,234,567'
    """
    return NOTHING if value is None else f"{value:,}"
