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
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean

from memantics.metrics.agreement import cohen_kappa
from memantics.understanding.reappraisal.records import BOTH
from memantics.understanding.reappraisal.workshop import Reappraisal

QUESTIONS = ("kinder", "makes_sense", "joke_kept", "lettering_kept", "would_share")
_SEED = 38
Ratings = dict[str, dict[str, str]]


def write_sheet(
    folder: Path,
    made: Sequence[tuple[str, str, Reappraisal]],
    count: int,
    endings: Mapping[str, Mapping[str, int]],
) -> Sequence[str]:
    """Write the pairs of a sheet; ``made`` are the corpus, the old text and the result of memes.

    Four fifths of the pairs are done ones where there are as many, the rest flawed. ``endings`` is
    how all memes of each corpus ended.
    """
    done, flawed = (
        [each for each in made if each[2].status == status] for status in ("done", "flawed")
    )
    for each in (done, flawed):
        random.Random(_SEED).shuffle(each)
    few = min(len(flawed), max(count // 5, count - len(done)))
    drawn = [*done[: count - few], *flawed[:few]]
    random.Random(_SEED).shuffle(drawn)
    folder.mkdir(parents=True, exist_ok=True)
    rows, key, shown = [], [], []
    ended = [[corpus, end, n] for corpus, ends in endings.items() for end, n in ends.items()]
    write_rows(folder / "key-endings.csv", ["corpus", "ending", "memes"], ended)
    for number, (corpus, before, result) in enumerate(drawn, 1):
        (folder / f"{number:02}.png").write_bytes((result.folder / BOTH).read_bytes())
        rows.append([number, before, result.caption, *("" for _ in QUESTIONS)])
        key.append([number, corpus, result.meme, result.status, result.reason])
        text = html.escape(f"{before} → {result.caption}")
        shown.append(f'<h2>{number}</h2><img src="{number:02}.png" alt=""><p>{text}</p>')
    write_rows(folder / "ratings.csv", ["pair", "before", "after", *QUESTIONS], rows)
    write_rows(folder / "key.csv", ["pair", "corpus", "meme", "status", "reason"], key)
    page = "<!doctype html><meta charset=utf-8><title>Pairs to rate</title>" + "".join(shown)
    (folder / "index.html").write_text(page, encoding="utf-8")
    return [str(row[0]) for row in rows]


def write_rows(path: Path, head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """A table as a CSV file."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(head)
        writer.writerows(rows)


def _read(path: Path) -> Ratings:
    with path.open(encoding="utf-8", newline="") as file:
        return {row["pair"]: row for row in csv.DictReader(file)}


def _list_asked(rated: Ratings) -> list[str]:
    """Return the questions of a file: captions without pictures have no lettering."""
    return [name for name in QUESTIONS if name in next(iter(rated.values()))]


def show_ratings(sheet: Path, files: Sequence[Path]) -> None:
    """Print how memes ended, what each rater says of the pairs, and how far two agree."""
    key, raters = _read(sheet / "key.csv"), [_read(path) for path in files]
    if (sheet / "key-endings.csv").is_file():
        with (sheet / "key-endings.csv").open(encoding="utf-8", newline="") as file:
            ended = list(csv.DictReader(file))
        for corpus in dict.fromkeys(row["corpus"] for row in ended):
            counts = [
                (row["ending"], int(row["memes"])) for row in ended if row["corpus"] == corpus
            ]
            told = ", ".join(f"{end} {count}" for end, count in counts)
            print(f"{corpus}: {sum(count for _, count in counts)} negative memes: {told}")
    corpora = sorted({row["corpus"] for row in key.values()})
    for path, rated in zip(files, raters, strict=True):
        columns = {
            f"{corpus}, {status}": [
                number
                for number, row in key.items()
                if row["corpus"] in found and row["status"] == status and number in rated
            ]
            for status in ("done", "flawed")
            for corpus, found in (*((name, {name}) for name in corpora), ("all", set(corpora)))
        }
        columns = {name: pairs for name, pairs in columns.items() if pairs}
        print(f"\n{path.name}\n| | {' | '.join(columns)} |\n|---{'|---' * len(columns)}|")
        print(f"| pairs | {' | '.join(str(len(pairs)) for pairs in columns.values())} |")
        for question in _list_asked(rated):
            said = [[rated[n][question] == "1" for n in pairs] for pairs in columns.values()]
            cells = " | ".join(f"{sum(each)} ({mean(each):.0%})" for each in said)
            print(f"| {question} | {cells} |")
    if len(raters) == 2:
        show_agreement(*raters)


def show_agreement(one: Ratings, two: Ratings) -> None:
    """Print how often two raters say the same of a pair, and Cohen's kappa."""
    both = sorted(set(one) & set(two), key=int)
    print(f"\nagreement on {len(both)} pairs")
    for name in _list_asked(one):
        first, second = ([rated[number][name] for number in both] for rated in (one, two))
        same = mean(a == b for a, b in zip(first, second, strict=True))
        found = cohen_kappa(first, second)
        kappa = "–" if found is None else f"{found:.2f}"
        print(f"  {name:<16} {same:.2f}, kappa {kappa}")
