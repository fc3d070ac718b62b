"""Texts that a page has in itself: what may be in them, and what lets a browser run them."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import math
import re
from dataclasses import dataclass
from functools import cache

from markupsafe import Markup

from assay.text import visible_lines


def as_json(value: object) -> Markup:
    """JSON in which nothing ends a script, begins a comment, or is obeyed by anything."""
    text = json.dumps(_visible(value), separators=(',', ':'), allow_nan=False)
    for sign in '<>&':
        text = text.replace(sign, f'\\u{ord(sign):04x}')
    return Markup(text)


def _visible(value: object) -> object:
    if isinstance(value, str):
        return visible_lines(value)
    if isinstance(value, float) and math.isfinite(value):
        short = float(f'{value:.5g}')  # no screen shows more of it
        return short if math.isfinite(short) else value
    if isinstance(value, dict):
        return {str(name): _visible(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_visible(one) for one in value]
    return value


def packed(text: str) -> Markup:
    """A text for the browser to unpack: by gzip, and in Base64; the same for the same text."""
    return Markup(base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode())


def digest(text: str) -> str:
    """By which a page's policy lets a browser run this script, or use this style, and no other."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@dataclass(frozen=True)
class Plotly:
    """What draws the charts.

    :param digest: of its script.
    :param packed: the script, as :func:`packed` leaves it.
    :param style: identifier of a style that it would put into every page, for its maps: a page that
        has one already gets none, and has to allow none.
    """

    digest: str
    packed: Markup
    style: str


@cache
def plotly() -> Plotly:
    """As it is installed."""
    from plotly.offline import get_plotlyjs  # type: ignore[import-untyped]

    script: str = get_plotlyjs()
    style = re.search(r'getElementById\("([0-9a-f]{64})"\)', script)
    return Plotly(digest(script), packed(script), style[1] if style else '')
