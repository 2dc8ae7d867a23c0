"""Cases that once broke something, as data; and what a run with fresh seeds found.

``corpus/KIND.jsonl`` has one case a line, in the form that the generator of that kind makes. With
``MEMANTICS_HOSTILE_FOUND`` set to a folder (``make hostile`` does), a case that breaks something is
written there; whoever fixes it moves the line into the corpus.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CORPUS = Path(__file__).parent / "corpus"
SEED = int(os.environ.get("MEMANTICS_HOSTILE_SEED", "13"))
FOUND = os.environ.get("MEMANTICS_HOSTILE_FOUND", "")
Case = dict[str, Any]


def count_cases(few: int) -> int:
    """How many cases to generate: few in a test run, more with ``MEMANTICS_HOSTILE_CASES``."""
    return int(os.environ.get("MEMANTICS_HOSTILE_CASES", few))


def read_corpus(kind: str) -> list[Case]:
    text = (CORPUS / f"{kind}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def write_case(case: Case) -> str:
    """One line; NaN and lone surrogates are kept."""
    return json.dumps(case, ensure_ascii=True, sort_keys=True)


@contextmanager
def noted(kind: str, case: Case) -> Iterator[None]:
    """Name the case where anything goes wrong with it, and keep it where a folder is set."""
    try:
        yield
    except BaseException as error:
        line = write_case(case)
        if FOUND:
            Path(FOUND).mkdir(parents=True, exist_ok=True)
            with (Path(FOUND) / f"{kind}.jsonl").open("a", encoding="utf-8") as file:
                file.write(line + "\n")
        error.add_note(f"hostile {kind}: {line}")
        raise


def known_and_fresh(kind: str, fresh: Iterable[Case]) -> list[Case]:
    """The corpus, then what was generated."""
    return [*read_corpus(kind), *fresh]
