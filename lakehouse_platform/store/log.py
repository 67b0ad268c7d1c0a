"""The files of a table's `_delta_log`: which versions they hold and what single commits say.

Layout: Delta protocol, "Delta Log Entries", "Checkpoints", "Log Compaction Files", "Last Checkpoint File".
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from lakehouse_platform.store.location import Location

LOG_DIRECTORY = "_delta_log"
_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\..*(?:parquet|json)|(\d{20})\.checkpoint\.parquet")

Action = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class LogListing:
    """The versions that the log's file names speak of, ascending.

    Attributes:
        commits: Versions that have a commit file.
        checkpoints: Versions that have a checkpoint.
    """

    commits: tuple[int, ...]
    checkpoints: tuple[int, ...]

    @property
    def is_empty(self) -> bool:
        """Whether there is neither a commit nor a checkpoint."""
        return not self.commits and not self.checkpoints

    @property
    def first_readable(self) -> int:
        """The oldest version that can be read: 0, or the oldest checkpoint after a log clean-up."""
        if self.commits and self.commits[0] == 0:
            return 0
        return self.checkpoints[0] if self.checkpoints else self.commits[0]

    @property
    def last(self) -> int:
        """The newest version."""
        return max(self.commits[-1:] + self.checkpoints[-1:])


def commit_file(version: int) -> str:
    """Return the path of a version's commit file, relative to the table."""
    return f"{LOG_DIRECTORY}/{version:020}.json"


def list_log(location: Location) -> LogListing:
    """Return the versions in the table's log; empty if there is no log."""
    names = [info.base_name for info in location.entries(LOG_DIRECTORY)]
    commits = sorted(int(match[1]) for name in names if (match := _COMMIT.fullmatch(name)))
    checkpoints = {int(match[1] or match[2]) for name in names if (match := _CHECKPOINT.fullmatch(name))}
    return LogListing(tuple(commits), tuple(sorted(checkpoints)))


def read_commit(location: Location, version: int) -> list[Action]:
    """Return the actions of one commit.

    Raises:
        FileNotFoundError: The log has no such commit file.
    """
    with location.filesystem().open_input_stream(commit_file(version)) as stream:
        return parse_actions(stream.read())


def parse_actions(text: bytes) -> list[Action]:
    """Return the actions of a commit file's bytes, one JSON object a line."""
    return [cast("Action", json.loads(line)) for line in text.splitlines() if line.strip()]


def commit_info(actions: list[Action]) -> Mapping[str, Any]:
    """Return the commit's `commitInfo`, or an empty mapping."""
    return next((cast("Mapping[str, Any]", a["commitInfo"]) for a in actions if "commitInfo" in a), {})
