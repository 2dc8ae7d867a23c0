"""Summary of ToxiCN MM's data, recomputed statistics of its paper, and audit findings.

The audit findings measure how well file numbers predict labels, and how labels changed between
versions.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from pydantic import JsonValue

from memantics.benchmarks.factories import proportion_score, spanned
from memantics.benchmarks.toxicn_mm.load import (
    CLASSES,
    MODALITIES,
    NAMES,
    NEAR,
    SPLITS,
    TARGETS,
    TYPES,
    VERSIONS,
    HarmMeme,
    HarmRelease,
    find_leakage,
)
from memantics.core.data import Found, checksum
from memantics.core.finding import Finding, FindingWords, rank
from memantics.core.records import Score
from memantics.metrics.classification import (
    balanced_accuracy,
    binary_intervals,
    binary_macro_f1,
    count_binary,
)

SIZES = {"train": 9_600, "test": 2_400}
HARMS = tuple(name for name in TYPES if name != "none")
PARTS = (*SPLITS, "total")
TABLE_B7: dict[str, list[str]] = CLASSES["table_b7"]
NOT_RELEASED = (
    "agreement.harmful",
    "agreement.type",
    "agreement.modality",
    "table5.resnet.type.macro_f1",
    "table5.fusion_ks.harmful.macro_f1",
    "tableC1.visualglm.macro_f1",
)
SHOWN = {name: {"input": "captions"} for name in ("detection", "type", "target")}
NEIGHBOURS = 20
_WORDS = FindingWords(__file__)


def survey(release: HarmRelease) -> Found:
    """Summarise a copy of the data: counts, and the effect of missing files."""
    ids: dict[str, bool] = {}
    for memes in release.parts.values():
        ids.update({meme.id: meme.image is not None for meme in memes})
    images = sum(ids.values())
    counts = {"memes": len(ids)}
    for (version, split), memes in release.parts.items():
        counts[f"{version} {split}"] = len(memes)
        counts[f"harmful in {version} {split}"] = sum(meme.harmful for meme in memes)
    return Found(
        records=len(ids),
        counts=counts,
        files=tuple(path.name for path in release.files),
        checksum=checksum(release.files, release.folder),
        images_found=images,
        images_expected=len(ids),
        repairs=dict(release.repairs),
        notes=tuple(_notes(release, images, len(ids))),
    )


def _notes(release: HarmRelease, images: int, memes: int) -> list[str]:
    notes: list[str] = []
    if images == 0:
        notes.append(
            "This copy contains no images: tasks that need them cannot run; request "
            "them through the form in the official README."
        )
    elif images < memes:
        notes.append(
            f"{memes - images:,} of {memes:,} images are not in this copy: tasks that "
            "need images can only use the others."
        )
    for version in VERSIONS:
        missing = [split for split in SPLITS if (version, split) not in release.parts]
        if len(missing) == len(SPLITS):
            notes.append(f"Labels of version {version} are not in this copy.")
        elif missing:
            name = NAMES[version, missing[0]]
            notes.append(
                f"Labels {version} have no {missing[0]} split in this copy ({name} is "
                "missing): totals of the paper's tables cannot be recomputed."
            )
    notes += [
        f"{NAMES[version, split]} has {len(part):,} memes; the official file has {SIZES[split]:,}."
        for (version, split), part in release.parts.items()
        if len(part) != SIZES[split]
    ]
    return notes


def statistics(release: HarmRelease) -> dict[str, JsonValue]:
    """Return every statistic of the paper by key; None if no copy, or not this one, contains it."""
    found: dict[str, JsonValue] = {}
    for version in VERSIONS:
        for part in PARTS:
            found |= _table_3(find_part(release, version, part), f"table3.{version}.{part}")
    for part in PARTS:
        found |= _table_4(find_part(release, "v1", part), f"table4.v1.{part}")
        found |= _table_4(find_part(release, "v2", part), f"table4.v2.{part}")
        found |= _targets(find_part(release, "v2", part), f"targets.v2.{part}")
        found |= _changes(release, part)
    return {
        **found,
        **_table_b7(find_part(release, "v2", "total")),
        **_transitions(release),
        **_harm(release),
        **_lengths(release),
        **_ids(release),
        **_leakage(release),
        **dict.fromkeys(NOT_RELEASED),
    }


def find_part(release: HarmRelease, version: str, part: str) -> tuple[HarmMeme, ...] | None:
    """Return the memes of one split, or of both as ``total``; None if the copy lacks some."""
    wanted = SPLITS if part == "total" else [split for split in SPLITS if split == part]
    memes: list[HarmMeme] = []
    for split in wanted:
        found = [part for key, part in release.parts.items() if key == (version, split)]
        if not found:
            return None
        memes += found[0]
    return tuple(memes)


def _table_3(memes: Sequence[HarmMeme] | None, prefix: str) -> dict[str, JsonValue]:
    keys = ("memes", "non_harmful", "harmful", *HARMS, *(f"modality.{m}" for m in MODALITIES))
    if memes is None:
        return {f"{prefix}.{key}": None for key in keys}
    harmful = sum(meme.harmful for meme in memes)
    types = Counter(meme.type for meme in memes)
    counts = (
        len(memes),
        len(memes) - harmful,
        harmful,
        *(types[name] for name in HARMS),
        *_count_modalities(memes),
    )
    return {f"{prefix}.{key}": count for key, count in zip(keys, counts, strict=True)}


def _count_modalities(memes: Sequence[HarmMeme]) -> tuple[int, int, int, int]:
    """Count fusion, text, image, both; as in the paper, "both" counts as text and as image too."""
    kinds = Counter(meme.modality for meme in memes)
    both = kinds["both"]
    return kinds["fusion"], kinds["text"] + both, kinds["image"] + both, both


def _table_4(memes: Sequence[HarmMeme] | None, prefix: str) -> dict[str, JsonValue]:
    found: dict[str, JsonValue] = {}
    for harm in HARMS:
        counts: Sequence[int | None] = (None,) * len(MODALITIES)
        if memes is not None:
            counts = _count_modalities([meme for meme in memes if meme.type == harm])
        for modality, count in zip(MODALITIES, counts, strict=True):
            found[f"{prefix}.{harm}.{modality}"] = count
    return found


def _targets(memes: Sequence[HarmMeme] | None, prefix: str) -> dict[str, JsonValue]:
    if memes is None:
        return {f"{prefix}.{name}": None for name in (*TARGETS, "any", "none")}
    counts = Counter(meme.target for meme in memes)
    return {
        **{f"{prefix}.{name}": counts[name] for name in TARGETS},
        f"{prefix}.any": len(memes) - counts[None],
        f"{prefix}.none": counts[None],
    }


def _table_b7(memes: Sequence[HarmMeme] | None) -> dict[str, JsonValue]:
    if memes is None:
        return {f"tableB7.{name}": None for name in (*TABLE_B7, "total")}
    counts = Counter(meme.target for meme in memes)
    return {
        **{
            f"tableB7.{row}": sum(counts[name] for name in names) for row, names in TABLE_B7.items()
        },
        "tableB7.total": len(memes) - counts[None],
    }


def _changes(release: HarmRelease, part: str) -> dict[str, JsonValue]:
    """Count the labels that version 2.0 changed, meme by meme."""
    keys = ("label", "type", "modality", "text", "targeted_without_target")
    first, second = find_part(release, "v1", part), find_part(release, "v2", part)
    if first is None or second is None:
        return {f"versions.{key}.{part}": None for key in keys}
    later = {meme.id: meme for meme in second}
    pairs = [(meme, later[meme.id]) for meme in first if meme.id in later]
    counts = (
        sum(a.harmful != b.harmful for a, b in pairs),
        sum(a.type != b.type for a, b in pairs),
        sum(_flags(a) != _flags(b) for a, b in pairs),
        sum(_words(a) != _words(b) for a, b in pairs) + len(first) - len(pairs),
        sum(a.type == "targeted" and b.target is None for a, b in pairs),
    )
    return {f"versions.{key}.{part}": n for key, n in zip(keys, counts, strict=True)}


def _transitions(release: HarmRelease) -> dict[str, JsonValue]:
    """Count memes by type in version 1 and type in version 2.0."""
    pairs: Counter[tuple[str, str]] = Counter()
    there = False
    for split in SPLITS:
        first, second = find_part(release, "v1", split), find_part(release, "v2", split)
        if first is None or second is None:
            continue
        there = True
        later = {meme.id: meme.type for meme in second}
        pairs.update((meme.type, later[meme.id]) for meme in first if meme.id in later)
    return {
        f"versions.type.{one}.{two}": pairs[one, two] if there else None
        for one in TYPES
        for two in TYPES
    }


def _flags(meme: HarmMeme) -> tuple[bool, bool]:
    """Return the two modality flags of the files, equal for fusion and harmless memes."""
    return meme.modality in ("text", "both"), meme.modality in ("image", "both")


def _words(meme: HarmMeme) -> tuple[str, str, str]:
    return meme.text, meme.text_caption, meme.image_caption


def _harm(release: HarmRelease) -> dict[str, JsonValue]:
    found: dict[str, JsonValue] = {}
    for version in VERSIONS:
        memes = find_part(release, version, "total")
        rate = sum(meme.harmful for meme in memes) / len(memes) if memes else None
        found[f"harmful.share.{version}"] = None if rate is None else round(100 * rate, 2)
        rows = find_part(release, version, "train")
        found[f"harmful.without_type.{version}.train"] = (
            None if rows is None else sum(m.harmful and m.type == "none" for m in rows)
        )
    return found


def _any_version(release: HarmRelease, part: str) -> tuple[HarmMeme, ...] | None:
    """Return any available label version, since texts and ids are the same in both."""
    return find_part(release, "v1", part) or find_part(release, "v2", part)


def _lengths(release: HarmRelease) -> dict[str, JsonValue]:
    found: dict[str, JsonValue] = {}
    for name in ("text", "image_caption", "text_caption"):
        sizes = [len(getattr(meme, name)) for meme in _any_version(release, "train") or ()]
        found[f"length.{name}.mean.train"] = round(sum(sizes) / len(sizes), 1) if sizes else None
        found[f"length.{name}.max.train"] = max(sizes, default=None)
    test = _any_version(release, "test") or ()
    found["length.text.max.test"] = max((len(meme.text) for meme in test), default=None)
    return found


def _ids(release: HarmRelease) -> dict[str, JsonValue]:
    """Return how file numbers relate to labels: numbers follow the crawl, which targeted harm."""
    memes = _any_version(release, "total")
    numbers = [int(m.id) for m in memes or () if m.id.isdecimal()]
    gaps = max(numbers) - min(numbers) + 1 - len(numbers) if numbers else None
    rows = find_part(release, "v1", "train") or ()
    labels = [m.harmful for m in sorted(rows, key=_number) if m.id.isdecimal()]
    cuts = [round(len(labels) * step / 10) for step in range(11)]
    rates: list[float | None] = [
        round(sum(labels[a:b]) / (b - a), 2) if b > a else None for a, b in pairwise(cuts)
    ]
    known = [rate for rate in rates if rate is not None]
    return {
        "ids.first": min(numbers, default=None),
        "ids.last": max(numbers, default=None),
        "ids.gaps": gaps,
        **{f"ids.harm_by_decile.{step}": rate for step, rate in enumerate(rates, 1)},
        "ids.harm_by_decile.min": min(known, default=None),
        "ids.harm_by_decile.max": max(known, default=None),
    }


def _number(meme: HarmMeme) -> int:
    return int(meme.id) if meme.id.isdecimal() else 0


def _leakage(release: HarmRelease) -> dict[str, JsonValue]:
    train = _any_version(release, "train")
    repeated = len(train) - len({meme.text for meme in train}) if train else None
    leaked = find_leakage(release)
    near = sum(leaked.near) if leaked else None
    return {
        "leakage.text.repeated.train": repeated,
        "leakage.text.exact": sum(leaked.identical) if leaked else None,
        "leakage.text.near": near,
        "leakage.text.near.share": round(100 * near / len(leaked.test), 2)
        if leaked and near is not None
        else None,
    }


def pictures(release: HarmRelease) -> Iterator[str]:
    """Return the image file names of a complete copy."""
    names = {meme.id for part in release.parts.values() for meme in part}
    return (f"{name}.jpg" for name in sorted(names))


def findings(release: HarmRelease) -> tuple[Finding, ...]:
    """Yield audit findings: labels predicted from file numbers, labels changed between versions."""
    found: list[Finding] = []
    memes = [meme for meme in release.memes(release.versions[0]) if meme.id.isdecimal()]
    if len(memes) > 10 * NEIGHBOURS:
        found.append(_judge_numbers(memes))
    if len(release.versions) == 2:
        found.append(_judge_versions(release))
    return tuple(found)


def narrow(release: HarmRelease, split: str) -> HarmRelease:
    """Restrict the data to the memes of a split, in every label version."""
    if split == "all":
        return release
    return replace(
        release, parts={key: memes for key, memes in release.parts.items() if split in key}
    )


def across(release: HarmRelease) -> tuple[Finding, ...]:
    """Yield audit findings on test texts in the training split, instead of the general check."""
    leaked = find_leakage(release)
    if leaked is None:
        return ()
    groups, near = [meme.id for meme in leaked.test], leaked.near
    pairs = [(a, b) for a, b in zip(leaked.test, leaked.twins, strict=True) if b is not None]
    same = sum(a.harmful == b.harmful for a, b in pairs)
    many, all_same = len(pairs), same / max(1, len(pairs))
    found = _WORDS.find(
        "leak.split",
        proportion_score("proportion", near, groups),
        rank(many > 0, broken=many > 0 and many >= 0.1 * len(near)),
        {"least": NEAR, "pairs": many, "near": len(near), "same": all_same},
        rows=(
            proportion_score("proportion", leaked.identical, groups, "texts", "identical"),
            proportion_score("proportion", near, groups, "texts", "near"),
        ),
    )
    return (found,)


def _judge_numbers(memes: Sequence[HarmMeme]) -> Finding:
    """Predict each label from the labels of the nearest file numbers, without its own label."""
    ordered = sorted(memes, key=lambda meme: int(meme.id))
    base = sum(meme.harmful for meme in ordered) / len(ordered)
    gold = [meme.harmful for meme in ordered]
    said = [share >= base for share in _average_neighbours(ordered)]
    groups = [meme.id for meme in ordered]
    counts, spans = count_binary(gold, said, True), binary_intervals(gold, said, True, groups)
    low, high = spans.macro_f1 or (None, None)
    value = binary_macro_f1(counts)
    tenth = max(1, len(ordered) // 10)
    rates = [_rate(ordered[start : start + tenth]) for start in range(0, 10 * tenth, tenth)]
    leak = low is not None and low > 0.5
    balance = Score("balanced_accuracy", balanced_accuracy(counts), len(gold))
    rows = (
        spanned(replace(balance, by="metric", label="balanced accuracy"), spans.balanced_accuracy),
        *(
            Score(
                "proportion", rate, tenth, by="numbers, proportion harmful", label=f"tenth {place}"
            )
            for place, rate in enumerate(rates, 1)
        ),
    )
    return _WORDS.find(
        "toxicn_mm.numbers",
        Score("macro_f1", value, len(gold), low, high),
        rank(leak, broken=leak and (value or 0) >= 0.6),
        {"neighbours": NEIGHBOURS, "low": min(rates), "high": max(rates)},
        rows=rows,
    )


def _average_neighbours(ordered: Sequence[HarmMeme]) -> Iterator[float]:
    numbers = [int(meme.id) for meme in ordered]
    for place, number in enumerate(numbers):
        start = bisect_left(numbers, number) - NEIGHBOURS
        window = [
            (abs(numbers[i] - number), i)
            for i in range(max(0, start), min(len(numbers), place + NEIGHBOURS + 1))
            if i != place
        ]
        near = sorted(window)[:NEIGHBOURS]
        yield sum(ordered[i].harmful for _, i in near) / len(near)


def _rate(memes: Sequence[HarmMeme]) -> float:
    return sum(meme.harmful for meme in memes) / len(memes) if memes else 0.0


def _judge_versions(release: HarmRelease) -> Finding:
    first = {meme.id: meme for meme in release.memes("v1")}
    pairs = [(first[meme.id], meme) for meme in release.memes("v2") if meme.id in first]
    label = [one.harmful != two.harmful for one, two in pairs]
    kind = [one.type != two.type for one, two in pairs]
    groups = [one.id for one, _ in pairs]
    score = proportion_score("proportion", kind, groups)
    values = {"types": sum(kind), "labels": sum(label), "memes": len(pairs)}
    return _WORDS.find("toxicn_mm.versions", score, rank(any(kind)), values)
