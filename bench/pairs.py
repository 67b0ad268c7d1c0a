"""Measures pairs: the raw libraries and the store do the same work in turns, so that both meet the same machine."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

# Issue 2: at most 10 % over the raw libraries on anything above 50 ms, at most 2 ms on one-row operations.
# In between 10 % would be less than the 2 ms that every call may cost, so the larger of both is allowed.
MOST_OVERHEAD = 0.10
MOST_OVERHEAD_MS = 2.0

Step = Callable[[], object]


def _nothing() -> None:
    pass


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a pair.

    Attributes:
        work: What is measured.
        before: What makes it repeatable; runs before each measurement and is not measured.
    """

    work: Step
    before: Step = _nothing


@dataclass(frozen=True, slots=True)
class Pair:
    """The same work done twice.

    Attributes:
        raw: By the raw libraries.
        ours: By the store.
        target: What is allowed, where that depends on what was prepared.
    """

    raw: Side
    ours: Side
    target: Target | None = None


@dataclass(frozen=True, slots=True)
class Target:
    """How much slower the store may be: by a share of the raw time or by milliseconds, whichever allows more.

    Attributes:
        ratio: Most times the raw time.
        overhead_ms: Most milliseconds over the raw time.
        limit_ms: Milliseconds that are fine whatever the raw time is; 0 if none are.
    """

    ratio: float = 1 + MOST_OVERHEAD
    overhead_ms: float = MOST_OVERHEAD_MS
    limit_ms: float = 0

    def is_met(self, raw_ms: float, overhead_ms: float) -> bool:
        """Tell whether an overhead is within the target."""
        is_near = overhead_ms <= max(raw_ms * (self.ratio - 1), self.overhead_ms)
        return is_near or raw_ms + overhead_ms <= self.limit_ms

    def __str__(self) -> str:
        limit = f"in {self.limit_ms:.0f} ms" if self.limit_ms else ""
        if self.ratio == 1:
            return limit if limit and not self.overhead_ms else f"≤ {self.overhead_ms:g} ms"
        return f"≤ {self.ratio:.2f} ×" + (f" or {limit}" if limit else "")


USUAL = Target()
ONE_ROW = Target(ratio=1)


@dataclass(frozen=True, slots=True)
class Times:
    """The times of one side, in milliseconds, in the order they were measured."""

    wall: tuple[float, ...]
    cpu: tuple[float, ...]

    @property
    def median(self) -> float:
        """The median of the wall-clock times."""
        return median(self.wall)

    def to_dict(self) -> dict[str, float]:
        """Return the figures that are worth keeping."""
        return {
            "median_ms": round(self.median, 3),
            "min_ms": round(min(self.wall), 3),
            "max_ms": round(max(self.wall), 3),
            "cpu_median_ms": round(median(self.cpu), 3),
        }


@dataclass(frozen=True, slots=True)
class Result:
    """What one case measured.

    Attributes:
        case: Its name.
        raw: The raw libraries' times.
        ours: The store's times.
        target: What is allowed; None if the case only informs.
    """

    case: str
    raw: Times
    ours: Times
    target: Target | None

    @property
    def overhead_ms(self) -> float:
        """The median over the pairs of ours minus raw: what both had to bear together falls out."""
        return median(ours - raw for raw, ours in zip(self.raw.wall, self.ours.wall, strict=True))

    @property
    def ratio(self) -> float:
        """The median over the pairs of ours by raw."""
        return median(ours / raw for raw, ours in zip(self.raw.wall, self.ours.wall, strict=True))

    @property
    def cpu_ratio(self) -> float:
        """The like for processor time, which other work on the machine hardly moves."""
        pairs = zip(self.raw.cpu, self.ours.cpu, strict=True)
        return median(ours / raw for raw, ours in pairs if raw > 0)

    @property
    def verdict(self) -> str:
        """`ok`, `missed`, or `-` if the case only informs."""
        if self.target is None:
            return "-"
        return "ok" if self.target.is_met(self.raw.median, self.overhead_ms) else "missed"

    def to_dict(self) -> Mapping[str, Any]:
        """Return the result as JSON values."""
        return {
            "case": self.case,
            "pairs": len(self.raw.wall),
            "raw": self.raw.to_dict(),
            "ours": self.ours.to_dict(),
            "overhead_ms": round(self.overhead_ms, 3),
            "ratio": round(self.ratio, 3),
            "cpu_ratio": round(self.cpu_ratio, 3),
            "target": str(self.target) if self.target else None,
            "verdict": self.verdict,
        }


def measure(name: str, pair: Pair, pairs: int, target: Target | None) -> Result:
    """Run both sides `pairs` times in turns, after one run of each that does not count."""
    for side in (pair.raw, pair.ours):
        _timed(side)
    raw: list[tuple[float, float]] = []
    ours: list[tuple[float, float]] = []
    for number in range(pairs):
        order = [(pair.raw, raw), (pair.ours, ours)]
        # Whoever comes second finds warmer caches and fuller disk queues: take turns at that, too.
        for side, times in order if number % 2 == 0 else reversed(order):
            times.append(_timed(side))
    return Result(name, _times(raw), _times(ours), target)


def _timed(side: Side) -> tuple[float, float]:
    side.before()
    gc.collect()
    gc.disable()
    try:
        cpu, wall = time.process_time(), time.perf_counter()
        kept = side.work()
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        del kept  # freeing the result is not part of the work
    finally:
        gc.enable()
    return wall * 1000, cpu * 1000


def _times(measured: Sequence[tuple[float, float]]) -> Times:
    walls, cpus = zip(*measured, strict=True)
    return Times(tuple(walls), tuple(cpus))
