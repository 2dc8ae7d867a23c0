"""A process that records decisions, appeals and outcomes until it is killed.

Each accepted record is printed after the log has returned: what was printed must survive.
"""

from __future__ import annotations

import sys

from memantics.moderation.decisions.cases import (
    Decision,
    hash_content,
    record_appeal,
    record_decision,
    record_outcome,
)
from memantics.moderation.decisions.log import DecisionLog


def main(database: str) -> None:
    with DecisionLog(database, webhooks=["http://127.0.0.1:9/hook"]) as log:
        number = 0
        while True:
            number += 1
            text = f"post {number}"
            decision = Decision(
                content_sha256=hash_content(text),
                verdict="violates",
                band="block",
                clause="1",
                reviewer="reviewer-1",
            )
            made = record_decision(log, decision, text=text, keep_days=1)
            print("decided", made.id, flush=True)
            record_appeal(log, made.id, statement="no")
            print("appealed", made.id, flush=True)
            record_outcome(log, made.id, clause="none", reviewer="reviewer-2")
            print("overturned", made.id, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
