"""Edits with the usual tools, the rows that each leaves in the order of the file, and what holds for all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lakehouse_platform_tests.support.mounted_lake import ROWS, MountedTable, settled_versions

DAVE = {"id": 4, "name": "Dave", "age": 28, "city": "Boston"}
EVE = {"id": 5, "name": "Eve", "age": 41, "city": "Rome"}
ALICE, BOB, CHARLIE = ROWS
OLDER_ALICE = {**ALICE, "age": 31}
VIM = "vim -es -u NONE"

APPENDS = {
    "echo, cold": ("echo 4,Dave,28,Boston >> data.csv", [*ROWS, DAVE]),
    "echo, after a cat": ("cat data.csv > /dev/null; echo 4,Dave,28,Boston >> data.csv", [*ROWS, DAVE]),
    "/usr/bin/echo": ("env echo 4,Dave,28,Boston >> data.csv", [*ROWS, DAVE]),
    "printf of several rows": (r"printf '4,Dave,28,Boston\n5,Eve,41,Rome\n' >> data.csv", [*ROWS, DAVE, EVE]),
    "tee -a": ("echo 4,Dave,28,Boston | tee -a data.csv", [*ROWS, DAVE]),
    "cat >>": (
        r"printf '4,Dave,28,Boston\n5,Eve,41,Rome\n' > /tmp/more; cat /tmp/more >> data.csv",
        [*ROWS, DAVE, EVE],
    ),
    "no line end": ("printf 4,Dave,28,Boston >> data.csv", [*ROWS, DAVE]),
    "python append": ("""python3 -c 'open("data.csv","a").write("4,Dave,28,Boston\\n")'""", [*ROWS, DAVE]),
    "dd append": (
        "echo 4,Dave,28,Boston | dd of=data.csv oflag=append conv=notrunc status=none",
        [*ROWS, DAVE],
    ),
}
FIX = "s/Alice,30/Alice,31/"
NEW = "sed -e s/Alice,30/Alice,31/ -e /Bob/d data.csv > /tmp/new.csv; echo 4,Dave,28,Boston >> /tmp/new.csv"
NEW_ROWS = [OLDER_ALICE, CHARLIE, DAVE]
FIXED = [OLDER_ALICE, BOB, CHARLIE]
NANO = (
    r"printf '\033[B4,Dave,28,Boston\r\030y\r' > /tmp/keys; "
    "(sleep 2; dd bs=1 status=none if=/tmp/keys; sleep 2) | script -qec 'nano -I data.csv' /dev/null > /dev/null"
)
PYTHON = (
    """python3 -c 'f=open("data.csv","r+"); t=f.read(); f.seek(0); f.write(t.replace("{}","{}")); """
    """f.truncate(); f.close()'"""
)
# For Bash's own wait: `sleep` is a program, which an emulated machine may take long to start.
WAIT = "busybox mkfifo /tmp/q$$; exec 9<>/tmp/q$$; rm /tmp/q$$"
README = (
    "cat data.csv > old.csv; grep -v Alice old.csv > temp.csv; sed -i s/Bob,25/Bob,31/ temp.csv; "
    "echo 4,Dave,28,Boston >> temp.csv; cat temp.csv > data.csv; rm old.csv temp.csv"
)
COPIES = {
    "cat >": (f"{NEW}; cat /tmp/new.csv > data.csv", NEW_ROWS),
    "cp": (f"{NEW}; cp /tmp/new.csv data.csv", NEW_ROWS),
    "cp -p": (f"{NEW}; cp -p /tmp/new.csv data.csv", NEW_ROWS),
    "mv across file systems": (f"{NEW}; mv /tmp/new.csv data.csv", NEW_ROWS),
    "mv within the mount": (f"{NEW}; cp /tmp/new.csv t.csv; mv t.csv data.csv", NEW_ROWS),
    "rsync": (f"{NEW}; rsync /tmp/new.csv data.csv", NEW_ROWS),
    "rsync --inplace": (f"{NEW}; rsync --inplace /tmp/new.csv data.csv", NEW_ROWS),
    "unlink and create": (f"{NEW}; rm data.csv; cat /tmp/new.csv > data.csv", NEW_ROWS),
    "the README's example": (README, [{**BOB, "age": 31}, CHARLIE, DAVE]),
    "slow writer": (
        f'{NEW}; {WAIT}; (while read -r l; do echo "$l"; read -t 0.05 -u 9 || :; done < /tmp/new.csv) > data.csv',
        NEW_ROWS,
    ),
}
EDITORS = {
    "sed -i": (f"sed -i {FIX} data.csv", FIXED),
    "sed -i, deletes": ("sed -i /Alice/d data.csv", [BOB, CHARLIE]),
    "perl -pi": (f"perl -pi -e {FIX} data.csv", FIXED),
    "vim, backupcopy=yes": (f"{VIM} -c 'set backupcopy=yes' -c '%{FIX}' -c wq data.csv", FIXED),
    "vim, backupcopy=no": (f"{VIM} -c 'set backupcopy=no' -c '%{FIX}' -c wq data.csv", FIXED),
    "vim, backupcopy=auto": (f"{VIM} -c 'set backupcopy=auto' -c '%{FIX}' -c wq data.csv", FIXED),
    "vim with a backup": (f"{VIM} -c 'set backup backupcopy=no' -c '%{FIX}' -c wq data.csv", FIXED),
    "ed": (rf"printf '%%{FIX}\nw\nq\n' | ed -s data.csv", FIXED),
    "nano": (NANO, [DAVE, *ROWS]),
}
OTHERS = {
    "awk > t && mv": ("awk '!/Bob/' data.csv > t && mv t data.csv", [ALICE, CHARLIE]),
    "grep -v > temp && cat temp >": (
        "grep -v Bob data.csv > temp && cat temp > data.csv; rm temp",
        [ALICE, CHARLIE],
    ),
    "dd conv=notrunc": (
        "printf 1,Alice,31,NYC | dd of=data.csv conv=notrunc bs=1 seek=17 status=none",
        FIXED,
    ),
    "truncate to two rows": ("truncate -s $(head -3 data.csv | wc -c) data.csv", [ALICE, BOB]),
    "python r+": (PYTHON.format("Alice,30", "Alice,31"), FIXED),
    "python r+, shorter": (PYTHON.format("2,Bob,25,SF\\n", ""), [ALICE, CHARLIE]),
    "rm": ("rm data.csv", []),
    "header alone": ("head -1 data.csv > /tmp/h; cat /tmp/h > data.csv", []),
    "other header order": (
        "awk -F, -v OFS=, '{print $4,$1,$3,$2}' data.csv | sed s/30,Alice/31,Alice/ > /tmp/o; cp /tmp/o data.csv",
        FIXED,
    ),
}
KINDS = {"appends": APPENDS, "copies": COPIES, "editors": EDITORS, "others": OTHERS}
EDITS = {case: edit for kind in KINDS.values() for case, edit in kind.items()}
# These are published after a quiet time: at their last close(2) they could still be the beginning of something else.
WITHOUT_CLOSE_SIGNAL = {"rm", "header alone", "truncate to two rows", "slow writer", "no line end"}
_LOOK = "echo == && cat data.csv"


def check_edits(make: Callable[[], MountedTable], kind: str) -> None:
    """Make edits: each is exactly one version, and the next command of the same script sees it."""
    made = [_made(make(), case) for case in KINDS[kind]]
    versions = settled_versions([(edit.people, edit.before) for edit in made])
    for edit, version in zip(made, versions, strict=True):
        _check(edit, version)


@dataclass(frozen=True)
class _Made:
    """An edit that was made: where, at which version, and what came of the command."""

    case: str
    people: MountedTable
    before: int
    status: int
    output: str


def _made(people: MountedTable, case: str) -> _Made:
    look = ":" if case in WITHOUT_CLOSE_SIGNAL else _LOOK
    before = people.table.version()
    return _Made(case, people, before, *people.run(f"{EDITS[case][0]}\nstatus=$?; {look}; exit $status"))


def _check(edit: _Made, version: int) -> None:
    rows = sorted(EDITS[edit.case][1], key=lambda row: row["id"])
    found = (edit.status, version, edit.people.rows())
    assert found == (0, edit.before + 1, rows), (edit.case, edit.output)
    seen_late = edit.case in WITHOUT_CLOSE_SIGNAL
    output = edit.output + (edit.people.run(_LOOK)[1] if seen_late else "")
    assert output.rpartition("==\n")[2] == _csv(EDITS[edit.case][1]), edit.case


def _csv(rows: list[dict[str, Any]]) -> str:
    lines = [ROWS[0].keys(), *(row.values() for row in rows)]
    return "".join(",".join(map(str, line)) + "\n" for line in lines)
