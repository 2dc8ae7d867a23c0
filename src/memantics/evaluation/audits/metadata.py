"""Check metadata in an audit: labels that file names, ids, dates, image sizes or columns reveal.

Metadata are not part of a meme's content, so a model that uses them has understood nothing. For
each kind of metadata, naive Bayes predicts the label of held-out memes from it alone.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from statistics import NormalDist

import numpy as np

from memantics.core.finding import FindingWords
from memantics.core.records import Score
from memantics.core.tables import TableRow
from memantics.evaluation.audits.pictures import PictureFacts
from memantics.metrics.grouping import rate_recalls
from memantics.metrics.interval import bootstrap, sum_by_cluster
from memantics.metrics.naive_bayes import Features, log_rates
from memantics.metrics.rounding import Floats, Ints, settle
from memantics.moderation.classifier import read_table_rows
from memantics.moderation.examples import Loaded, split_random
from memantics.moderation.held_out import list_strata, number_labels
from memantics.moderation.resplit import BREAK, FOLDS, Draft

_WORDS = FindingWords(__file__)
_FEWEST = 40
_KNOWN = 0.5  # minimum proportion of memes that have the metadata
_SHUFFLES = 200
_ALPHA = 0.5
_MOST_FEATURES = 500
_BINS = 10
_FEW_VALUES = 20  # a column with at most this many numbers is used as it is
_LONGEST = 40  # maximum mean length of the values of a column; longer ones are texts
_SHOWN = 3  # cues that a finding lists
_RARE = 5  # minimum number of memes with a cue that a finding lists
# Annotations predict labels without being a leak, and so do descriptions of the content.
_ANNOTATION = re.compile(
    r"label|gold|annot|target|type|modal|categor|class|sentiment|emotion|toxic|hate|harm|offen|score"
    r"|vote|caption|ocr|descri|transl|ration|explan|reason|text|lang|note|comment"
)
_HANDLED = frozenset(
    {"id", "image", "file_name", "text", "group", "split", "date", "template_cluster"}
)
_PARTS = re.compile(r"[^\W\d_]+|\d+")


@dataclass(frozen=True, slots=True)
class MetadataColumn:
    """One kind of metadata: its name, and features per meme (None if a meme has none).

    ``free`` marks a column that the audit does not know, which may be an annotation.
    """

    key: str
    what: str
    features: tuple[Features | None, ...]
    free: bool = False


def judge_metadata(
    data: Loaded, table: Path | None, pictures: Mapping[int, PictureFacts]
) -> list[Draft]:
    """Measure for each kind of metadata how well it predicts the label of a held-out meme.

    Args:
        data: Labelled memes, one label each.
        table: The table that the memes come from, for its further columns; None for a benchmark.
        pictures: Facts about the images, by position of the meme.
    """
    rows = read_source(data, table)
    found = (judge_column(data, column) for column in list_columns(data, rows, pictures))
    return [draft for draft in found if draft is not None]


def read_source(data: Loaded, table: Path | None) -> tuple[TableRow, ...]:
    """Read the table row of each meme; empty rows if the data are no table."""
    rows: dict[str, TableRow] = {}
    for number, row in read_table_rows(table, data.topic) if table else ():
        named = row.get("image") or ""
        rows.setdefault(row.get("id") or Path(named).stem or str(number), row)
    return tuple(rows.get(example.id, {}) for example in data.examples)


def list_columns(
    data: Loaded, rows: Sequence[TableRow], pictures: Mapping[int, PictureFacts]
) -> Iterator[MetadataColumn]:
    """List the kinds of metadata that the memes have."""
    names = list_names(data, rows)
    ids = [example.id for example in data.examples]
    yield MetadataColumn("file_name", "file name of the image", tuple(map(cut_name, names)))
    if any(Path(name).stem != meme for name, meme in zip(names, ids, strict=True)):
        yield MetadataColumn("id", "id", tuple(map(cut_name, ids)))
    dates = [meme.date for meme in data.memes] or [""] * len(ids)
    yield MetadataColumn("date", "date", tuple(map(cut_date, dates)))
    yield MetadataColumn(
        "image_size", "size and format of the image file", _cut_sizes(data, pictures)
    )
    yield MetadataColumn("exif", "EXIF data of the image file", _cut_exif(data, pictures))
    for name in dict.fromkeys(key for row in rows for key in row):
        plain = name.lower().strip()
        if plain in _HANDLED or plain == data.topic.lower() or _ANNOTATION.search(plain):
            continue
        values = [row.get(name, "").strip() for row in rows]
        if plain in ("source", "author") and len(set(values) - {""}) >= FOLDS:
            continue  # the check of groups covers them
        features = cut_values(values)
        if features is not None:
            yield MetadataColumn(f"column.{name}", f"column {name}", features, free=True)


def list_names(data: Loaded, rows: Sequence[TableRow]) -> list[str]:
    """Return the file name of each meme's image as the data give it, also if the file is missing.

    Without a table, this is the name of the file itself.
    """
    given = [row.get("image") or "" for row in rows]
    return [
        name or (example.image.name if example.image else "")
        for name, example in zip(given, data.examples, strict=True)
    ]


def cut_name(name: str) -> Features | None:
    """Cut a file name or id into words, folders, ending and lengths of numbers.

    >>> sorted(cut_name("img/hate_0123.PNG"))
    ['ending png', 'folder img', 'number of 4 digits', 'word hate']
    """
    if not name:
        return None
    *folders, last = re.split(r"[/\\]", name.lower())
    stem, dot, ending = last.rpartition(".")
    stem, ending = (stem, ending) if dot and stem else (last, "")
    parts = _PARTS.findall(stem)
    found = [f"folder {folder}" for folder in folders if folder]
    found += [f"number of {len(part)} digits" for part in parts if part.isdigit()]
    found += [f"word {part}" for part in parts if not part.isdigit()]
    found += [f"ending {ending}"] if ending else []
    return Counter(found)


def cut_date(text: str) -> Features | None:
    """Cut a date into year, month, weekday and hour; None for other texts.

    >>> sorted(cut_date("2021-03-01T09:30:00Z"))
    ['hour 9', 'month 2021-03', 'weekday 1', 'year 2021']
    """
    try:
        when = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    found = [f"year {when.year}", f"month {when:%Y-%m}", f"weekday {when.isoweekday()}"]
    return Counter([*found, f"hour {when.hour}"] if ":" in text else found)


def cut_values(values: Sequence[str]) -> tuple[Features | None, ...] | None:
    """Turn the values of a column into features; None for texts and for a constant column.

    >>> cut_values(["a", "b", ""])
    (Counter({'value a': 1}), Counter({'value b': 1}), None)
    >>> cut_values(["a", "a"]) is None
    True
    """
    known = [value for value in values if value]
    if len(set(known)) < 2 or sum(map(len, known)) > _LONGEST * len(known):
        return None
    if all(map(_is_number, known)) and len(set(known)) > _FEW_VALUES:
        return cut_numbers([float(value) if value else None for value in values])
    dates = [cut_date(value) for value in values]
    if sum(date is not None for date in dates) >= len(known):
        return tuple(dates)
    return tuple(Counter([f"value {value}"]) if value else None for value in values)


def _is_number(text: str) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False


def cut_numbers(values: Sequence[float | None], name: str = "") -> tuple[Features | None, ...]:
    """Cut numbers into ten ranges with about as many memes each."""
    known = np.array([value for value in values if value is not None], float)
    edges = (
        np.unique(np.quantile(known, np.linspace(0, 1, _BINS + 1)[1:-1])) if len(known) else known
    )
    word = f"{name} " if name else ""
    return tuple(
        None if value is None else Counter([_name_range(float(value), edges, word)])
        for value in values
    )


def _name_range(value: float, edges: Floats, word: str) -> str:
    place = int(np.searchsorted(edges, value, side="right"))
    low = f"from {edges[place - 1]:g}" if place else ""
    high = f"below {edges[place]:g}" if place < len(edges) else ""
    return f"{word}{low}{' ' if low and high else ''}{high}"


def _cut_sizes(data: Loaded, pictures: Mapping[int, PictureFacts]) -> tuple[Features | None, ...]:
    facts = [pictures.get(place) for place in range(len(data.examples))]
    numbers = {
        "width": [None if one is None else one.width for one in facts],
        "height": [None if one is None else one.height for one in facts],
        "bytes": [None if one is None else one.bytes for one in facts],
    }
    ranges = [cut_numbers(values, name) for name, values in numbers.items()]
    made: list[Features | None] = []
    for place, one in enumerate(facts):
        if one is None:
            made.append(None)
            continue
        features: Features = Counter([f"size {one.width} x {one.height}", f"format {one.format}"])
        for named in ranges:
            features.update(named[place] or ())
        made.append(features)
    return tuple(made)


def _cut_exif(data: Loaded, pictures: Mapping[int, PictureFacts]) -> tuple[Features | None, ...]:
    """Turn camera, software, date and author of each image into features; none is a feature too."""
    facts = [pictures.get(place) for place in range(len(data.examples))]
    return tuple(
        None
        if own is None
        else Counter([f"{name} {value}" for name, value in own.exif.items()] or ["no EXIF"])
        for own in facts
    )


def judge_column(data: Loaded, column: MetadataColumn) -> Draft | None:
    """Measure how well one kind of metadata predicts the label; None if too few memes have it."""
    places = [place for place, cues in enumerate(column.features) if cues is not None]
    if len(places) < max(_FEWEST, _KNOWN * len(column.features)):
        return None
    features = [cues for cues in column.features if cues is not None]
    if len({tuple(sorted(cues.items())) for cues in features}) < 2:
        return None
    every, classes = number_labels(data), len(data.labels.classes)
    labels = every[places]
    if len(set(labels.tolist())) < 2:
        return None
    strata = list_strata(data)
    folds = split_random([strata[place] for place in places], FOLDS)
    counts = count_features(features)
    said = predict_held_out(counts, labels, folds, classes)
    value, chance = rate_recalls(labels, said, classes), 1 / classes
    low, high = _bound(labels, said, classes)
    share = len(places) / len(every)
    size = (value - chance) / (1 - chance) * share
    names = data.labels.classes
    finding = _WORDS.find(
        "metadata",
        Score("balanced_accuracy", value, len(places), low, high),
        "worth knowing",
        {
            "what": column.what,
            "labels": data.labels.name,
            "value": value,
            "chance": chance,
            "doubt": " Ignore this finding if the column is an annotation." if column.free else "",
        },
        key=f"metadata.{column.key}",
        expected=chance,
        details=describe_cues(features, labels, names),
        task=data.labels.name,
    )
    # A column that the audit does not know may be an annotation, so it is never called broken.
    size = min(size, BREAK - 1e-3) if column.free else size
    return Draft(finding, _test(counts, labels, folds, value), size)


def count_features(features: Sequence[Features]) -> Floats:
    """Count features, one row per meme and one column per feature of at least two memes."""
    memes = Counter(name for cues in features for name in cues)
    kept = [name for name, count in memes.most_common(_MOST_FEATURES) if count > 1]
    places = {name: place for place, name in enumerate(sorted(kept))}
    counts = np.zeros((len(features), max(1, len(places))))
    for row, cues in enumerate(features):
        for name, count in cues.items():
            if name in places:
                counts[row, places[name]] = count
    return counts


def predict_held_out(counts: Floats, labels: Ints, folds: Ints, classes: int) -> Ints:
    """Predict each label by naive Bayes on the other folds, all classes equally likely before."""
    marks = np.eye(classes)[labels]
    sums = {fold: marks[folds == fold].T @ counts[folds == fold] for fold in np.unique(folds)}
    whole = sum(sums.values())
    said = np.zeros(len(labels), np.int64)
    for fold, part in sums.items():
        odds = counts[folds == fold] @ log_rates(whole - part, _ALPHA).T
        said[folds == fold] = settle(odds).argmax(axis=1)
    return said


def _bound(labels: Ints, said: Ints, classes: int) -> tuple[float, float]:
    marks = np.eye(classes)[labels]
    right = marks * (said == labels)[:, None]
    sums = sum_by_cluster(np.hstack([right, marks]), range(len(labels)))

    def rate(table: Floats) -> Floats:
        return np.asarray(np.nanmean(table[:, :classes] / table[:, classes:], axis=1))

    return bootstrap(sums, rate) or (0.0, 1.0)


def _test(counts: Floats, labels: Ints, folds: Ints, value: float) -> float:
    """Compare with shuffled labels, for each of which naive Bayes is trained again.

    200 shuffles cannot give a p-value below 0.005, so a normal distribution is fitted to them. The
    p-value is not below the proportion of shuffles that reach the value.
    """
    rng, classes = np.random.default_rng(0), int(labels.max()) + 1
    null = []
    for _ in range(_SHUFFLES):
        dealt = rng.permutation(labels)
        null.append(rate_recalls(dealt, predict_held_out(counts, dealt, folds, classes), classes))
    spread = max(float(np.std(null)), 1e-9)
    fitted = 1 - NormalDist().cdf((value - float(np.mean(null))) / spread)
    reached = sum(settle(one) >= settle(value) for one in null)
    return max(fitted, (1 + reached) / (1 + _SHUFFLES)) if reached else fitted


def describe_cues(
    features: Sequence[Features], labels: Ints, names: Sequence[str]
) -> tuple[str, ...]:
    """Describe the features that predict a label best.

    >>> cues = [Counter(["word ok"])] * 5 + [Counter(["word bad"])] * 5
    >>> describe_cues(cues, np.array([0] * 5 + [1] * 5), ["harmless", "harmful"])
    ('word bad: 5 of 5 memes are harmful', 'word ok: 5 of 5 memes are harmless')
    """
    rates = np.bincount(labels, minlength=len(names)) / len(labels)
    members: dict[str, list[int]] = {}
    for place, cues in enumerate(features):
        for name in cues:
            members.setdefault(name, []).append(place)
    ranked: dict[tuple[int, ...], tuple[float, str, str]] = {}
    for name in sorted(members):
        counts = Counter(labels[members[name]].tolist())
        (label, hits), total = counts.most_common(1)[0], counts.total()
        spread = float(np.sqrt(total * rates[label] * (1 - rates[label])))
        if total >= _RARE and spread > 0:
            gain = settle((hits - total * float(rates[label])) / spread)
            line = f"{name}: {hits:,} of {total:,} memes are {names[label]}"
            # Of several cues that the same memes have, the first is listed.
            ranked.setdefault(tuple(members[name]), (-gain, name, line))
    return tuple(line for _, _, line in sorted(ranked.values())[:_SHOWN])
