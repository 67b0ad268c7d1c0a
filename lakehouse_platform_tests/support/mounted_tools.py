"""`cat`, `grep`, `>>`, `sed -i` and overwriting a mounted table: by a raw client, or by a real kernel's tools."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, Self

from lakehouse_platform.nfs.operations import Stable
from lakehouse_platform_tests.support.kernel_guest import PROFILES, KernelGuest
from lakehouse_platform_tests.support.mounted_lake import ServerProcess
from lakehouse_platform_tests.support.nfs_streams import BLOCK, StreamingClient

_GUEST_TIMEOUT_S = 3_600
_TEMPORARY = "sedAbCdEf"


class Tools(Protocol):
    """What users do with a table's data.csv; each returns when the tool would."""

    def cat(self) -> int:
        """Read all; return the number of bytes."""
        ...

    def grep(self, text: str) -> int:
        """Return how many lines hold a text, which no line holds twice."""
        ...

    def append(self, line: str) -> None:
        """Do `echo line >> data.csv`."""
        ...

    def substitute(self, old: str, new: str) -> None:
        """Do `sed -i s/old/new/ data.csv`; one line has the text."""
        ...

    def overwrite(self, new: Path, every: int) -> None:
        """Do `cat new > data.csv`; new is what data.csv is without each `every`-th row."""
        ...


@dataclass(frozen=True, slots=True)
class RawTools:
    """The calls that Linux makes for these tools, without Linux."""

    reader: StreamingClient
    writer: StreamingClient
    directory: bytes

    @classmethod
    def mounted(cls, reader: StreamingClient, writer: StreamingClient, server: ServerProcess) -> Self:
        """Mount a server of one table; there are two clients because a kernel reads and writes at the same time."""
        writer.mount(server.ready["exports"]["sync"])
        return cls(reader, writer, writer.walk("data"))

    def cat(self) -> int:
        """Read all; return the number of bytes."""
        return sum(map(len, self._blocks()))

    def grep(self, text: str) -> int:
        """Count the text, also where it lies in two blocks."""
        found, before = 0, b""
        for block in self._blocks():
            data = before + bytes(block)
            found += data.count(text.encode())
            before = data[1 - len(text) :]
        return found

    def append(self, line: str) -> None:
        """WRITE at the end, and GETATTR as the file is closed."""
        handle, size = self._look()
        self.writer.write(handle, size, line.encode(), Stable.FILE_SYNC)
        self.writer.getattr(handle)

    def substitute(self, old: str, new: str) -> None:
        """CREATE a file beside it, WRITE all, RENAME it."""
        handle = self.writer.create(self.directory, _TEMPORARY)
        self.writer.write_blocks(handle, _substituted(self._blocks(), old.encode(), new.encode()))
        self.writer.rename(self.directory, _TEMPORARY, self.directory, "data.csv")

    def overwrite(self, new: Path, every: int) -> None:
        """SETATTR size 0, WRITE all, COMMIT, and GETATTR as the file is closed."""
        handle, _ = self._look()
        self.writer.truncate(handle, 0)
        with new.open("rb") as file:
            self.writer.write_blocks(handle, iter(lambda: file.read(BLOCK), b""))
        self.writer.getattr(handle)

    def _look(self) -> tuple[bytes, int]:
        handle = self.writer.lookup(self.directory, "data.csv")
        return handle, self.writer.getattr(handle).size

    def _blocks(self) -> Iterator[memoryview]:
        return self.reader.blocks(*self._look())


def _substituted(blocks: Iterator[memoryview], old: bytes, new: bytes) -> Iterator[bytes]:
    kept, before = len(old) - 1, b""
    for block in blocks:
        data = (before + bytes(block)).replace(old, new)
        yield data[:-kept]
        before = data[-kept:]
    yield before


@dataclass(frozen=True, slots=True)
class GuestTools:
    """The tools themselves, in an emulated machine with a real kernel."""

    guest: KernelGuest

    @classmethod
    def mounted(cls, guest: KernelGuest, server: ServerProcess) -> Self:
        """Mount a server that serves one table."""
        guest.mount(server.port, server.ready["exports"]["bulk"], "/mnt/scale", PROFILES["bulk"])
        return cls(guest)

    def cat(self) -> int:
        """Read all; return the number of bytes."""
        return int(self._run("cat data.csv | wc -c"))

    def grep(self, text: str) -> int:
        """Return how many lines hold a text."""
        return int(self._run(f"grep -c '{text}' data.csv"))

    def append(self, line: str) -> None:
        """Append by the shell."""
        self._run(f"echo '{line.rstrip()}' >> data.csv")

    def substitute(self, old: str, new: str) -> None:
        """Edit by sed."""
        self._run(f"sed -i 's/{old}/{new}/' data.csv")

    def overwrite(self, new: Path, every: int) -> None:
        """Filter into a file beside it, because the guest has no room, and overwrite by cat."""
        self._run(f"awk 'NR == 1 || (NR - 1) % {every}' data.csv > rest && cat rest > data.csv && rm rest")

    def _run(self, command: str) -> str:
        status, output = self.guest.run(f"cd /mnt/scale/data && {command}", _GUEST_TIMEOUT_S)
        assert status == 0, f"{command}: {output}"
        return output
