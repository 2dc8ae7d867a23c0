"""What a copy of the MemeIntent release holds, and the paper's figures recomputed from it."""

from __future__ import annotations

import statistics as figures
from collections import Counter
from collections.abc import Sequence

from pydantic import JsonValue

from memantics.benchmarks.memeintent.load import PREFIX, IntentRelease
from memantics.core.data import Found, checksum, note_gaps, note_part

COMPLETE = 950
_GET_IMAGES = "Request them from SemEval-2021 Task 6 and name their folder."


def survey(release: IntentRelease) -> Found:
    """Counts, repairs, and what follows from what is missing."""
    rows = release.rows
    splits = Counter(row.split for row in rows)
    found = sum(row.image is not None for row in rows)
    return Found(
        records=len(rows),
        counts={
            "memes": len(rows),
            "intents": sum(len(row.intents) for row in rows),
            "background sentences": sum(len(row.background) for row in rows),
            **{f"memes in {split}": count for split, count in sorted(splits.items())},
        },
        files=(release.index.relative_to(release.source.root).as_posix(),),
        checksum=checksum([release.index], release.source.root),
        images_found=found,
        images_expected=len(rows),
        repairs={name: count for name, count in release.repairs.items() if count},
        notes=(
            *note_part(release.source, len(rows), COMPLETE),
            *note_gaps(found, len(rows), release.images, _GET_IMAGES),
        ),
    )


def statistics(release: IntentRelease) -> dict[str, JsonValue]:
    """Every figure under its stable key; None where this copy cannot tell."""
    rows = release.rows
    intents = [intent for row in rows for intent in row.intents]
    per_meme = Counter(len(row.intents) for row in rows)
    words = [len(intent.removeprefix(PREFIX).split()) for intent in intents]
    kept = [len(intent.split()) for intent in intents]
    bullets = [len(row.background) for row in rows]
    placeholder = [max(count, 1) for count in bullets]
    splits = Counter(row.split for row in rows)
    batch = sum("_batch_2." in row.file for row in rows)
    several = sum(len(row.intents) > 1 for row in rows)
    return {
        "memes": len(rows),
        "intents.total": len(intents),
        "intents.several": several,
        "intents.several_percent": round(100 * several / len(rows), 2),
        **{f"intents.count.{count}": per_meme[count] for count in (1, 2, 3)},
        "words.mean": _mean(words),
        "words.sd": _deviation(words),
        "words.sd_sample": round(figures.stdev(words), 3) if len(words) > 1 else None,
        "words.with_prefix.mean": _mean(kept),
        "words.with_prefix.sd": _deviation(kept),
        "background.mean": _mean(bullets),
        "background.sd": _deviation(bullets),
        "background.placeholder.mean": _mean(placeholder),
        "background.placeholder.sd": _deviation(placeholder),
        "background.present.mean": _mean([count for count in bullets if count]),
        **{
            f"background.mean.{split}": _mean([len(r.background) for r in rows if r.split == split])
            for split in ("dev", "train", "test")
        },
        "background.total": sum(bullets),
        "background.lines": sum(placeholder),
        "background.none": bullets.count(0),
        "background.question_marks": sum(
            any("?" in bullet for bullet in row.background) for row in rows
        ),
        "text.repaired": release.repairs.get("texts with wrongly decoded characters", 0),
        "images.batch_2": batch,
        "images.first_batch": len(rows) - batch,
        **{f"split.{split}": splits[split] for split in ("dev", "train", "test")},
    }


def _mean(values: Sequence[int]) -> float | None:
    return round(figures.fmean(values), 3) if values else None


def _deviation(values: Sequence[int]) -> float | None:
    """Over the population, as in the paper."""
    return round(figures.pstdev(values), 3) if values else None
