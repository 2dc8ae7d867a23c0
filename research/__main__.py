"""Run a study of the protocol, or write the table of all results.

``list`` prints all studies. ``cross-validate STUDY`` measures a study on the development set.
``test STUDY --reason TEXT`` measures it on the locked test set; it requires a clean working tree.
Both append a line to ``docs/research/test_set_evaluations.jsonl``. ``table`` writes the tables of
``docs/research/protocol-results.md`` from that log.
"""

from __future__ import annotations

import argparse
import sys

from memantics.core.errors import MemanticsError
from research.protocol import (
    cross_validate,
    evaluate_on_test_set,
    find_commit,
    read_log,
    write_log,
)
from research.studies import find_studies, find_study
from research.table import write_table


def main() -> int:
    """Run one command of ``python -m research``."""
    parser = argparse.ArgumentParser(prog="python -m research", description=__doc__)
    parser.add_argument("command", choices=("list", "cross-validate", "test", "table"))
    parser.add_argument("study", nargs="?", default="", help="name of the study, from list")
    parser.add_argument("--reason", default="", help="reason for the evaluation; test requires it")
    given = parser.parse_args()
    try:
        return _run(given.command, given.study, given.reason)
    except MemanticsError as error:
        sys.stderr.write(f"{error}\n")
        return 2


def _run(command: str, name: str, reason: str) -> int:
    out = sys.stdout.write
    if command == "list":
        for study in find_studies():
            evaluations = [
                record
                for record in read_log()
                if record["study"] == study.name and record["part"] == "test"
            ]
            out(f"{study.name:<40} {study.data:<16} {len(evaluations)} test-set evaluations\n")
        return 0
    if command == "table":
        out(write_table(find_studies()) + "\n")
        return 0
    study = find_study(name)
    if command == "test" and not reason:
        sys.stderr.write("a test-set evaluation needs a reason: add --reason TEXT\n")
        return 2
    commit = find_commit(clean=command == "test")
    record = evaluate_on_test_set(study) if command == "test" else cross_validate(study)
    write_log(record | {"commit": commit, "reason": reason} if reason else record)
    for metric, measured in record["metrics"].items():
        out(f"{metric:<64} {measured}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
