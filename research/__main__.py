"""``python -m research list | rest STUDY | look STUDY --why TEXT | table``.

``rest`` rehearses a study on what anybody may read. ``look`` judges its sealed part, refuses while
there are uncommitted changes, and writes date, commit and figures to ``docs/research/looks.jsonl``.
``table`` writes the table of ``docs/research/protocol.md`` from that log.
"""

from __future__ import annotations

import argparse
import sys

from memantics.core.errors import MemanticsError
from research.protocol import find_commit, look, read_log, rehearse, write_log
from research.studies import find_studies, find_study
from research.table import write_table


def main() -> int:
    """Run one of the commands."""
    parser = argparse.ArgumentParser(prog="python -m research", description=__doc__)
    parser.add_argument("command", choices=("list", "rest", "look", "table"))
    parser.add_argument("study", nargs="?", default="")
    parser.add_argument("--why", default="", help="look: why the sealed part is opened now")
    given = parser.parse_args()
    try:
        return _run(given.command, given.study, given.why)
    except MemanticsError as error:
        sys.stderr.write(f"{error}\n")
        return 2


def _run(command: str, name: str, why: str) -> int:
    out = sys.stdout.write
    if command == "list":
        for study in find_studies():
            looks = [r for r in read_log() if r["study"] == study.name and r["part"] == "sealed"]
            out(f"{study.name:<32} {study.data:<16} {len(looks)} looks\n")
        return 0
    if command == "table":
        out(write_table(find_studies()) + "\n")
        return 0
    study = find_study(name)
    if command == "look" and not why:
        sys.stderr.write("a look needs a reason; --why TEXT\n")
        return 2
    commit = find_commit(clean=command == "look")
    record = look(study) if command == "look" else rehearse(study)
    write_log(record | {"commit": commit, "why": why} if why else record)
    for figure, own in record["figures"].items():
        out(f"{figure:<48} {own}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
