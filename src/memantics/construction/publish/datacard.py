"""Data card: the README of a data set, with YAML front matter for dataset hubs."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pydantic import JsonValue

from memantics.benchmarks.writing import Made
from memantics.construction.publish.tables import Bundle, CardSection, TableFile
from memantics.construction.ratings import Goodness, Ratings
from memantics.core.data import load_toml
from memantics.core.errors import DataError, require_known
from memantics.core.files import read_regular_text
from memantics.core.prompt import Filters, fill_template
from memantics.core.queue import IndividualAnnotation, Review, list_judged_questions
from memantics.metrics.agreement import Label, krippendorff_alpha

_NOT_IN_YAML = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")


def write_card(bundle: Bundle, files: Sequence[TableFile]) -> str:
    """Return the text of ``README.md``; YAML values are written as JSON, which is safe."""
    filters: Filters = {
        "ascii": json.dumps,
        "json": _quote,
        "plain": _plain,
        "cell": lambda text: _plain(text).replace("|", "\\|"),
    }
    size = _size(len(bundle.memes))
    values = {"bundle": bundle, "facts": bundle.facts, "files": files, "size": size}
    return fill_template(__file__, "datacard.md", filters, **values)


def _quote(text: str) -> str:
    r"""Write a YAML string; characters that YAML does not allow are escaped.

    >>> print(_quote("a\x7fb\x85\ufeff\u2028 好"))
    "a\u007fb\u0085\ufeff\u2028 好"
    """
    return _NOT_IN_YAML.sub(
        lambda found: f"\\u{ord(found[0]):04x}", json.dumps(text, ensure_ascii=False)
    )


def _size(count: int) -> str:
    """Return the size category that dataset hubs use for a number of records.

    >>> _size(79), _size(5000)
    ('n<1K', '1K<n<10K')
    """
    if count < 1_000:
        return "n<1K"
    return "1K<n<10K" if count < 10_000 else "10K<n<100K" if count < 100_000 else "100K<n<1M"


def _plain(text: str) -> str:
    """Return user text as one paragraph without headings or markup."""
    line = " ".join(text.split())
    return line.replace("<", "&lt;").lstrip("#>|-")


# Sections of a data card: contents, review and inter-annotator agreement.


def describe_contents(made: Made) -> CardSection:
    """Count memes and records, and the values of columns with few short values."""
    languages = Counter(meme.language or "unknown" for meme in made.memes)
    rows = [("memes", f"{len(made.memes):,}")]
    rows += [(f"language {name}", f"{count:,}") for name, count in sorted(languages.items())]
    for name, records in made.tables.items():
        rows.append((name, f"{len(records):,}"))
        for column in _short_columns(records):
            spread = Counter(str(record.get(column)) for record in records)
            shown = ", ".join(f"{value or '–'} {count:,}" for value, count in spread.most_common())
            rows.append((f"{name} by {column}", shown))
    rows += [(f"left out: {why}", f"{count:,}") for why, count in made.skipped.items() if count]
    return CardSection("Contents", (), tuple(rows))


def _short_columns(records: Sequence[Mapping[str, JsonValue]]) -> list[str]:
    """Return columns with few different short values that repeat, so not those of free text."""
    found = []
    for column in records[0] if records else ():
        values = Counter(str(record.get(column)) for record in records)
        once = sum(count == 1 for count in values.values())
        plain = all(isinstance(record.get(column), str | int | bool) for record in records)
        few = 1 < len(values) <= 12 and once <= max(2, len(values) // 2)
        if plain and few and max(map(len, values)) <= 30:
            found.append(column)
    return found


def describe_writers(*reviews: Review) -> CardSection:
    """Count the published records by the model that drafted them.

    Queue items store the model that drafted them; items without a model were supplied by the user.
    """
    kept = [reviewed.item for review in reviews for reviewed in review.items if reviewed.kept]
    rows = [("made by", review.card.origin) for review in reviews if review.card.origin]
    counts: Counter[str] = Counter()
    for item in kept:
        counts.update(_find_models(item.hidden) or [""])
    nameless = counts.pop("", 0)
    rows += [(f"drafted by {name}", f"{n:,} of {len(kept):,}") for name, n in counts.most_common()]
    if counts and nameless:
        rows.append(("no model recorded", f"{nameless:,} of {len(kept):,}"))
    nobody = "The queue records no model: the user supplied its items."
    return CardSection("Models that drafted the records", () if counts else (nobody,), tuple(rows))


def _find_models(hidden: JsonValue) -> set[str]:
    """Yield the models named in the hidden data of an item, at any depth, including editors."""
    if not isinstance(hidden, Mapping):
        return set()
    found = {model for name, model in hidden.items() if name == "model" and isinstance(model, str)}
    edits = hidden.get("edits")
    found |= {f"{name} (edits)" for name in edits} if isinstance(edits, Mapping) else set()
    return {model for model in found.union(*map(_find_models, hidden.values())) if model}


def describe_review(review: Review) -> CardSection:
    """Count annotators and annotations, reasons for dropped items, and agreement on each field."""
    judged = review.annotated
    if not judged:
        line = "Nobody has reviewed these records: they are unedited drafts of a model."
        return CardSection("Review", (line,))
    votes = [
        vote
        for reviewed in judged
        if reviewed.aggregated
        for vote in reviewed.aggregated.annotations
    ]
    people = {vote.annotator for vote in votes}
    reasons = Counter(
        reviewed.aggregated.reason
        for reviewed in judged
        if reviewed.aggregated and not reviewed.aggregated.kept
    )
    unseen = len(review.items) - len(judged)
    rows = [
        ("workflow", review.card.workflow),
        ("annotated", f"{len(judged):,}"),
        ("kept", f"{sum(reviewed.kept for reviewed in judged):,}"),
        ("people", f"{len(people):,}"),
        ("answers", f"{len(votes):,}"),
    ]
    versions = Counter(vote.guideline for vote in votes)
    rows += [
        (f"answers under guideline version {version}", f"{count:,} of {len(votes):,}")
        for version, count in sorted(versions.items())
        if len(versions) > 1 or version > 1
    ]
    if unseen:
        rows.append(("not annotated, published as drafts", f"{unseen:,}"))
    rows += [(f"dropped: {reason or 'no reason'}", f"{n:,}") for reason, n in reasons.most_common()]
    for field in _voted(review):
        table = _tabulate(review, field)
        # Steps of a scale have an order, as on the page Agreement of the annotation app.
        scale = all(isinstance(one, int) for row in table for one in row if one is not None)
        alpha = krippendorff_alpha(table, "ordinal" if scale else "nominal")
        name = f"{field}, ordinal" if scale else field
        # Krippendorff's alpha is undefined if all annotations have the same value.
        shown = "undefined: all annotations are equal" if alpha is None else f"{alpha:.3f}"
        rows.append((f"Krippendorff's alpha, {name}", f"{shown} (n = {len(table):,})"))
    return CardSection("Review", (), tuple(rows))


def describe_acceptance(review: Review) -> tuple[CardSection, ...]:
    """Count the questions that annotators accepted, by dimension; empty without questions."""
    judged = list_judged_questions(review)
    names = dict.fromkeys(question.dimension for question in judged)
    rows = []
    for name in names:
        accepted = [one.accepted for one in judged if one.dimension == name]
        count, total = sum(accepted), len(accepted)
        rows.append((name, f"{count:,} of {total:,} ({100 * count / total:.1f} %)"))
    line = "Questions that annotators accepted together with their answers."
    return (CardSection("Acceptance by dimension", (line,), tuple(rows)),) if rows else ()


def describe_roles(review: Review) -> CardSection:
    """Name the models that judged and read the questions; say if one model had several roles."""
    roles: dict[str, Counter[str]] = {"written": Counter(), "judged": Counter(), "read": Counter()}
    names = {"written": "model", "judged": "critic", "read": "reader"}
    kept = [reviewed.item.hidden for reviewed in review.items if reviewed.kept]
    for hidden in kept:
        for role, name in names.items():
            if isinstance(model := hidden.get(name), str) and model:
                roles[role][model] += 1
    if not roles["judged"] and not roles["read"]:
        return CardSection("Roles of models")
    told = {"written": "written", "judged": "judged with the meme", "read": "answered without it"}
    rows = [
        (f"{told[role]} by {model}", f"{count:,} of {len(kept):,}")
        for role, counts in roles.items()
        for model, count in counts.most_common()
    ]
    same = sum(len({hidden.get(name) for name in names.values()}) < len(names) for hidden in kept)
    line = f"One model had several of these roles for {same:,} of {len(kept):,} questions."
    return CardSection("Roles of models", (line,) if same else (), tuple(rows))


def describe_ratings(ratings: Ratings | None) -> CardSection:
    """Give the proportion of good questions in the rated sample, with intervals."""
    if ratings is None:
        line = "Nobody rated a sample of these questions: how many are good is not known."
        return CardSection("Rated sample", (line,))
    line = (
        f"A question is good if each of {ratings.raters} raters says that its key is right, "
        "exactly one option is right, the image and understanding are needed, and it is well "
        "worded. Intervals count memes as clusters."
    )
    rows = [(f"good, {row.name}", tell_goodness(row)) for row in ratings.rows]
    rows += [(f"failed: {name.replace('_', ' ')}", str(n)) for name, n in ratings.faults.items()]
    overall = ratings.rows[0]
    if overall.agreement is not None:
        rows.append(("agreement of raters", f"{100 * overall.agreement:.0f} %"))
    if overall.alpha is not None:
        rows.append(("Krippendorff's alpha, good", f"{overall.alpha:.3f} (n = {overall.n:,})"))
    lacking = tuple(f"{warning[:1].upper()}{warning[1:]}." for warning in ratings.warnings())
    return CardSection("Rated sample", (line, *lacking), tuple(rows))


def tell_goodness(row: Goodness) -> str:
    """Write a proportion with its interval.

    >>> from memantics.construction.ratings import Goodness
    >>> tell_goodness(Goodness("all", 48, 60, 0.68, 0.88, None, None))
    '48 of 60 (80 %, 95 % interval 68–88 %)'
    """
    low, high = 100 * row.low, 100 * row.high
    return f"{row.good} of {row.n} ({100 * row.share:.0f} %, 95 % interval {low:.0f}–{high:.0f} %)"


def _voted(review: Review) -> list[str]:
    """Yield fields with plain values that at least two people annotated in one stage of an item."""
    fields: dict[str, None] = {}
    for votes in _sittings(review):
        seen = Counter(
            name
            for vote in votes
            for name, value in vote.values.items()
            if isinstance(value, str | int | bool) and len(str(value)) <= 40
        )
        fields |= dict.fromkeys(name for name, count in seen.items() if count > 1)
    return sorted(fields)


def _sittings(review: Review) -> Iterator[list[IndividualAnnotation]]:
    """Yield the annotations of each item by stage, since an adjudicator sees the earlier ones."""
    for reviewed in review.annotated:
        stages: dict[str, list[IndividualAnnotation]] = {}
        for vote in reviewed.aggregated.annotations if reviewed.aggregated else ():
            stages.setdefault(vote.stage, []).append(vote)
        yield from stages.values()


def _tabulate(review: Review, field: str) -> list[list[Label | None]]:
    """Return annotations of a field, one column per person; skip items with one annotation.

    Whole numbers stay numbers if all annotations are such; other values become text.
    """
    votes = [
        {vote.annotator: vote.values[field] for vote in sitting if field in vote.values}
        for sitting in _sittings(review)
    ]
    given = [value for row in votes for value in row.values()]
    scale = all(isinstance(value, int) and not isinstance(value, bool) for value in given)
    people = sorted({person for row in votes for person in row})
    return [
        [_take(row[person], scale) if person in row else None for person in people]
        for row in votes
        if len(row) > 1
    ]


def _take(value: JsonValue, scale: bool) -> Label:
    return value if scale and isinstance(value, int) else str(value)


# Fields of the Croissant vocabulary for responsible AI. Only the publisher can write most of them.
RAI_TEXTS = (
    "dataCollection",
    "dataCollectionType",
    "dataCollectionMissingData",
    "dataCollectionRawData",
    "dataCollectionTimeFrame",
    "dataImputationProtocol",
    "dataPreprocessingProtocol",
    "dataManipulationProtocol",
    "dataAnnotationProtocol",
    "dataAnnotationPlatform",
    "dataAnnotationAnalysis",
    "annotationsPerItem",
    "annotatorDemographics",
    "machineAnnotationTools",
    "dataUseCases",
    "dataBiases",
    "dataLimitations",
    "dataSocialImpact",
    "personalSensitiveInformation",
    "dataReleaseMaintenancePlan",
)
# What NeurIPS' track for datasets asks for.
RAI_NEEDED = (
    "dataCollection",
    "dataAnnotationProtocol",
    "dataUseCases",
    "dataBiases",
    "dataLimitations",
    "dataSocialImpact",
    "personalSensitiveInformation",
    "dataReleaseMaintenancePlan",
)


def read_rai(file: Path) -> dict[str, str | list[str]]:
    """Read RAI fields from a TOML file; raise DataError for an unknown field or another type."""
    try:
        content = load_toml(read_regular_text(file))
    except (OSError, ValueError) as error:
        raise DataError(file, f"cannot be read: {error}", hint="check --rai") from error
    for name, value in content.items():
        require_known("RAI field", name, RAI_TEXTS)
        texts = value if isinstance(value, list) else [value]
        if not texts or not all(isinstance(text, str) and text.strip() for text in texts):
            raise DataError(
                file, f"{name} is not a text", hint="write a text, or a list of texts, as TOML"
            )
    return content


def describe_rai(sections: Sequence[CardSection]) -> dict[str, JsonValue]:
    """Return the RAI fields that follow from the data card: drafting models and review."""
    found: dict[str, JsonValue] = {}
    for section in sections:
        said = "; ".join((*section.lines, *(f"{name}: {value}" for name, value in section.rows)))
        if section.title.startswith("Models"):
            found["dataCollection"] = f"Memes of the queue of the build. {section.title}: {said}"
            tools = [name.removeprefix("drafted by ") for name, _ in section.rows]
            drafted = [n for n, (name, _) in zip(tools, section.rows, strict=True) if n != name]
            found |= {"machineAnnotationTools": [*drafted]} if drafted else {}
        if section.title == "Review":
            rows = dict(section.rows)
            found["dataAnnotationProtocol"] = (
                f"Reviewed with the workflow {rows['workflow']} of Memantics: {said}"
                if "workflow" in rows
                else said
            )
            found |= {"dataAnnotationPlatform": ["memantics annotate"]} if rows else {}
            agreed = [f"{name}: {value}" for name, value in rows.items() if "alpha" in name]
            found |= {"dataAnnotationAnalysis": [*agreed]} if agreed else {}
    return found


def list_missing_rai(
    sections: Sequence[CardSection], given: Mapping[str, str | list[str]]
) -> tuple[str, ...]:
    """Return the RAI fields asked for by NeurIPS that neither the card nor the user fills."""
    described = {**describe_rai(sections), **given}
    return tuple(name for name in RAI_NEEDED if name not in described)
