"""Pairs of memes for people to rate blind, and what two raters say of them.

``write_sheet`` puts pairs in an order by a fixed seed under numbers that tell neither their corpus
nor how their checks ended; ``key.csv`` holds those. A rater opens ``index.html`` and fills a copy
of ``ratings.csv`` with 1 and 0. ``python -m perf.reappraisal --rated ONE TWO --sheet FOLDER``
prints both, by corpus and ending, and their agreement.
"""

from __future__ import annotations

import csv
import html
import random
from collections.abc import Sequence
from pathlib import Path
from statistics import mean

from memantics.metrics.agreement import cohen_kappa
from memantics.reappraise.folder import BOTH
from memantics.reappraise.workshop import Reappraisal

QUESTIONS = ("kinder", "makes_sense", "joke_kept", "lettering_kept", "would_share")
_SEED = 38


def write_sheet(
    folder: Path, made: Sequence[tuple[str, str, Reappraisal]], count: int
) -> Sequence[str]:
    """Write the pairs of a sheet; ``made`` are the corpus, the old text and the result of memes."""
    drawn = [each for each in made if each[2].drawn]
    random.Random(_SEED).shuffle(drawn)
    folder.mkdir(parents=True, exist_ok=True)
    rows, key, shown = [], [], []
    for number, (corpus, before, result) in enumerate(drawn[:count], 1):
        (folder / f"{number:02}.png").write_bytes((result.folder / BOTH).read_bytes())
        rows.append([number, before, result.caption, *("" for _ in QUESTIONS)])
        key.append([number, corpus, result.meme, result.status, result.reason])
        text = html.escape(f"{before} → {result.caption}")
        shown.append(f'<h2>{number}</h2><img src="{number:02}.png" alt=""><p>{text}</p>')
    _write(folder / "ratings.csv", ["pair", "before", "after", *QUESTIONS], rows)
    _write(folder / "key.csv", ["pair", "corpus", "meme", "status", "reason"], key)
    page = "<!doctype html><meta charset=utf-8><title>Pairs to rate</title>" + "".join(shown)
    (folder / "index.html").write_text(page, encoding="utf-8")
    return [str(row[0]) for row in rows]


def _write(path: Path, head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(head)
        writer.writerows(rows)


def _read(path: Path) -> dict[str, dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return {row["pair"]: row for row in csv.DictReader(file)}


def show_ratings(sheet: Path, files: Sequence[Path]) -> None:
    """Print what each rater says of each corpus and ending, and how far two agree."""
    key, raters = _read(sheet / "key.csv"), [_read(path) for path in files]
    groups = sorted({(row["corpus"], row["status"]) for row in key.values()})
    for path, rated in zip(files, raters, strict=True):
        print(f"\n{path.name}: {len(rated)} pairs")
        for corpus, status in groups:
            pairs = [
                number
                for number, row in key.items()
                if (row["corpus"], row["status"]) == (corpus, status) and number in rated
            ]
            said = {name: [rated[number][name] == "1" for number in pairs] for name in QUESTIONS}
            shares = ", ".join(f"{name} {sum(values)}" for name, values in said.items())
            print(f"  {corpus}, {status}: {len(pairs)} pairs: {shares}")
    if len(raters) == 2:
        one, two = raters
        both = sorted(set(one) & set(two), key=int)
        print(f"\nagreement on {len(both)} pairs")
        for name in QUESTIONS:
            first, second = ([rated[number][name] for number in both] for rated in (one, two))
            same = mean(a == b for a, b in zip(first, second, strict=True))
            found = cohen_kappa(first, second)
            kappa = "–" if found is None else f"{found:.2f}"
            print(f"  {name:<16} {same:.2f}, kappa {kappa}")
