"""The bytes of a CSV file, decompressed, with what a look at them in passing can tell."""

from __future__ import annotations

import io
from collections.abc import Generator
from contextlib import contextmanager
from typing import IO, Self, cast

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from lakehouse_platform.errors import SourceFormatError
from lakehouse_platform.store.source_files import SourceFile, reading

_GZIP = b"\x1f\x8b"
_SEAM = 8  # bytes looked at again where two chunks meet
_QUOTE, _PLUS, _MINUS, _ZERO, _LINE_FEED, _RETURN, _BLANK, _TAB = b'"+-0\n\r \t'
_AFTER_ZERO = tuple(b"0123456789xX")
_AFTER_LEAD = tuple(b"0+- \t")
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


class CsvTap:
    """A readable file for pyarrow that notes progress and suspicious bytes.

    Attributes:
        doubtful: Whether a field may begin with `+`, a needless zero or `0x`, which a number would lose.
        quotes: How many quotes were read.
    """

    closed = False

    def __init__(self, file: SourceFile, delimiter: str | None) -> None:
        self._raw, self._stream = _opened(file)
        self.doubtful = False
        self.quotes = 0
        self._delimiter = delimiter
        self._tail = b""

    @property
    def bytes_read(self) -> int:
        """Bytes of the file, as stored, that were read so far."""
        return self._raw.tell()

    def read(self, size: int) -> bytes:
        """Return the next bytes."""
        chunk = self._stream.read(size - 1)
        if len(chunk) < size - 1:
            chunk = self._with_the_rest(chunk)
        if chunk:
            self._look_at(chunk)
        return chunk

    def _look_at(self, chunk: bytes) -> None:
        values = _values(chunk)
        self.quotes += int((values == _QUOTE).sum())
        if self._delimiter and not self.doubtful:
            seam = self._tail + chunk[:_SEAM]
            self.doubtful = _loses_text(seam, self._delimiter) or (
                _may_lose_text(values, ord(self._delimiter)) and _loses_text(chunk, self._delimiter)
            )
            self._tail = chunk[-_SEAM:]

    def _with_the_rest(self, chunk: bytes) -> bytes:
        """Return the end of the file with a line end, without which pyarrow 26 fails on a header alone."""
        while more := self._stream.read(2**20):
            chunk += more
        whole = not chunk or chunk[-1:] in b"\r\n"
        return chunk if whole else chunk + b"\n"

    def readable(self) -> bool:
        """Tell pyarrow what it asks."""
        return True

    def stream(self) -> pa.NativeFile:
        """Return this as pyarrow takes it."""
        return pa.PythonFile(self, mode="r")

    def close(self) -> None:
        """Close the file."""
        self._stream.close()
        self._raw.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextmanager
def text_lines(file: SourceFile) -> Generator[IO[str]]:
    """Open the lines of a file with their ends; bytes that are not UTF-8 become surrogates."""
    raw, stream = _opened(file)
    with raw, reading(file.shown):
        yield io.TextIOWrapper(
            cast(IO[bytes], stream), encoding="utf-8-sig", errors="surrogateescape", newline=""
        )


def _values(chunk: bytes) -> pl.Series:
    """Return bytes as a series without copying."""
    buffers = [None, pa.py_buffer(chunk)]
    return cast(pl.Series, pl.from_arrow(pa.Array.from_buffers(pa.uint8(), len(chunk), buffers)))


def _may_lose_text(values: pl.Series, delimiter: int) -> bool:
    """Rule out what `_loses_text` looks for; three times as fast."""
    before, first, second = values[:-2], values[1:-1], values[2:]
    starts = (before == delimiter) | (before == _LINE_FEED) | (before == _RETURN) | (before == _QUOTE)
    if (starts & (first == _PLUS)).any():
        return True
    # Decimals may begin with 0, and texts with a blank, so the next byte counts too.
    zero = starts & (first == _ZERO)
    if zero.any() and second.filter(zero).is_in(_AFTER_ZERO).any():
        return True
    led = starts & ((first == _MINUS) | (first == _BLANK) | (first == _TAB))
    return led.any() and second.filter(led).is_in(_AFTER_LEAD).any()


def _loses_text(chunk: bytes, delimiter: str) -> bool:
    """Tell whether a field begins with `+`, a needless zero or `0x`."""
    pattern = pc.MatchSubstringOptions(rf'[\{delimiter}\n\r"][ \t]*(?:-?0[0-9xX]|\+)')
    text = pa.array([chunk], pa.large_binary())
    return pc.call_function("match_substring_regex", [text], pattern)[0].as_py()


def _opened(file: SourceFile) -> tuple[pa.NativeFile, pa.NativeFile]:
    raw = file.open()
    magic = raw.read(2)
    raw.seek(0)
    if magic in _UTF16:
        raw.close()
        raise SourceFormatError(
            f"{file.shown!r} is UTF-16: convert it first, as with 'iconv -f UTF-16 -t UTF-8'.",
            source=file.shown,
        )
    return raw, pa.CompressedInputStream(raw, "gzip") if magic == _GZIP else raw
