"""Small pictures for metadata: SVG in a Markdown image, which the asset page shows in place."""

import base64
from collections.abc import Sequence
from datetime import datetime

# The UI (1.13.28) shows Markdown in place only below 1000 characters and hides longer texts behind a link: that is
# 36 points and numbers of 64 bits.
_MOST_POINTS = 36
# As wide as the column that the asset page has for metadata.
_WIDTH, _HEIGHT = 400, 120
_TOP, _BOTTOM = 20, 100
# Mid-tones that stand out on light and dark backgrounds.
_LINE, _TEXT = "#4f6ef7", "#7a8599"


def growth_plot(points: Sequence[tuple[datetime, int]]) -> str:
    """Return a Markdown image of a quantity over time, drawn as steps: it holds until the next commit."""
    picture = _picture(points) if points else _text(0, _TOP - 6, "nothing recorded yet")
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}"'
        f' font-family="sans-serif" font-size="12" fill="{_TEXT}">{picture}</svg>'
    )
    return f"![growth](data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()})"


def _picture(points: Sequence[tuple[datetime, int]]) -> str:
    first, last = points[0][0], points[-1][0]
    highest = max(value for _, value in points)
    return (
        f'<path d="{_steps(_thinned(_scaled(points, highest)))}" fill="{_LINE}33" stroke="{_LINE}"/>'
        + _text(0, _TOP - 6, f"up to {highest:,} rows, now {points[-1][1]:,}")
        + _text(0, _HEIGHT - 4, f"{first:%Y-%m-%d %H:%M}")
        + _text(_WIDTH, _HEIGHT - 4, f"{last:%Y-%m-%d %H:%M} UTC", anchor="end")
    )


def _scaled(points: Sequence[tuple[datetime, int]], highest: int) -> list[tuple[int, int]]:
    start = points[0][0].timestamp()
    span = (points[-1][0].timestamp() - start) or 1.0
    height = (_BOTTOM - _TOP) / (highest or 1)
    return [
        (round((moment.timestamp() - start) / span * _WIDTH), round(_BOTTOM - value * height))
        for moment, value in points
    ]


def _thinned(points: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Keep the last value of each stretch of the picture, so that it stays small."""
    stretch = _WIDTH / _MOST_POINTS
    return list({int(x / stretch): (x, y) for x, y in points}.values())


def _steps(points: Sequence[tuple[int, int]]) -> str:
    path = f"M0 {_BOTTOM}V{points[0][1]}" + "".join(f"H{x}V{y}" for x, y in points[1:])
    return f"{path}H{_WIDTH}V{_BOTTOM}Z"


def _text(x: int, y: int, text: str, anchor: str = "start") -> str:
    where = f'x="{x}" ' if x else ""
    aligned = f' text-anchor="{anchor}"' if anchor != "start" else ""
    return f'<text {where}y="{y}"{aligned}>{text}</text>'
