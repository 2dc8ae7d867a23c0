"""Compare the ranking of likely label errors with cleanlab on three sets with flipped labels.

``python -m research.label_noise`` flips a tenth of the labels of development memes and prints one
table row per set and ranking; results are in docs/research/audit-labels.md. Rankings:

- before: contradicting copies of a text first, whatever their images;
- audit: contradicting copies of a text on one image first, as ``memantics audit --labels`` does;
- cleanlab, same probabilities: cleanlab's ranking of the audit's held-out probabilities;
- cleanlab, TF-IDF: cleanlab's ranking of logistic regression on TF-IDF features.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import cleanlab
import numpy as np
from cleanlab.filter import find_label_issues
from cleanlab.rank import get_label_quality_scores
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline

from memantics.evaluation.audits.metadata import list_names, read_source
from memantics.evaluation.audits.pictures import part_by_image
from memantics.metrics.rounding import Floats, Ints
from memantics.moderation.classifier import find_labelled
from memantics.moderation.examples import Loaded
from memantics.moderation.held_out import draw_memes, judge_held_out, number_labels
from memantics.moderation.label_errors import rank_label_issues
from memantics.moderation.resplit import find_copies, group_memes
from research.audits import flip
from research.data import read_emotions, read_harm, read_hateful
from research.protocol import take_development_set

SETS = ("hateful_memes", "toxicn_mm", "mer_bench")
FIRST = 50
RANKINGS = ("before", "audit", "cleanlab, same probabilities", "cleanlab, TF-IDF")


def write_set(name: str, folder: Path) -> Path:
    """Write the development memes of a set as a table with the names of their images."""
    rows: list[tuple[str, str, str, str]]
    if name == "toxicn_mm":
        harm = take_development_set(name, read_harm())
        rows = [(row.id, row.content.text, str(row.content.label), f"{row.id}.jpg") for row in harm]
    elif name == "mer_bench":
        emotions = take_development_set(name, read_emotions())
        rows = [
            (row.id, row.content["text"], row.content["det_emo"], row.content["id"])
            for row in emotions
        ]
    else:
        hateful = take_development_set(name, read_hateful())
        rows = [
            (row.id, str(row.content["text"]), row.tags["label"], str(row.content["img"]))
            for row in hateful
        ]
    table = folder / f"{name}.csv"
    with table.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("id", "text", "label", "image"))
        writer.writerows(row for row in rows if row[1].strip())
    return table


def relabel(data: Loaded, labels: Ints) -> Loaded:
    """Give memes other labels."""
    classes = data.labels.classes
    return replace(data, gold=tuple((classes[label],) for label in labels.tolist()))


def rank_with_cleanlab(labels: Ints, chances: Floats) -> list[int]:
    """Rank all memes by cleanlab: flagged ones first, then by the quality of their label."""
    ranked = find_label_issues(labels, chances, return_indices_ranked_by="normalized_margin")
    scores = get_label_quality_scores(labels, chances, method="normalized_margin")
    flagged = np.asarray(ranked).tolist()
    known = set(flagged)
    rest = [place for place in np.argsort(scores, kind="stable").tolist() if place not in known]
    return [*flagged, *rest]


def predict_with_tfidf(texts: Sequence[str], labels: Ints) -> Floats:
    """Predict held-out probabilities as a user of cleanlab would: TF-IDF, logistic regression."""
    features = TfidfVectorizer(analyzer="char_wb", ngram_range=(1, 4), min_df=2, sublinear_tf=True)
    model = make_pipeline(features, LogisticRegression(max_iter=1000, C=4.0))
    found: Floats = cross_val_predict(model, list(texts), labels, cv=5, method="predict_proba")
    return found


def rank_all(data: Loaded, table: Path, given: Ints) -> dict[str, list[int]]:
    """Rank the memes, the most doubtful label first, in four ways."""
    folds = group_memes(data, "text").folds
    chances = judge_held_out(data, {"text": folds}, given)["text"].mean
    turned = relabel(data, given)
    copies = find_copies(turned)
    apart = part_by_image(turned, copies, {}, list_names(turned, read_source(turned, table)))
    places = {example.id: place for place, example in enumerate(data.examples)}
    ranked = {}
    for name, groups in (("before", copies), ("audit", apart)):
        issues = [places[issue.id] for issue in rank_label_issues(turned, groups, chances)]
        known = set(issues)
        rest = [place for place in rank_with_cleanlab(given, chances) if place not in known]
        ranked[name] = [*issues, *rest]
    ranked["cleanlab, same probabilities"] = rank_with_cleanlab(given, chances)
    texts = [example.text for example in data.examples]
    ranked["cleanlab, TF-IDF"] = rank_with_cleanlab(given, predict_with_tfidf(texts, given))
    return ranked


def measure(name: str, most: int, seeds: Sequence[int], folder: Path) -> None:
    """Print precision among the first 50 and recall among the first k, mean and range over seeds.

    k is the number of flipped labels.
    """
    table = write_set(name, folder)
    data = draw_memes(find_labelled(f"{table}/label"), most)
    labels = number_labels(data)
    found: dict[str, list[tuple[float, float]]] = {ranking: [] for ranking in RANKINGS}
    for seed in seeds:
        given = flip(labels, len(data.labels.classes), seed)
        wrong = given != labels
        for ranking, order in rank_all(data, table, given).items():
            right = wrong[order]
            found[ranking].append((right[:FIRST].mean(), right[: wrong.sum()].mean()))
    for ranking, values in found.items():
        cells = [
            f"{np.mean(held):.2f} ({min(held):.2f}–{max(held):.2f})"
            for held in zip(*values, strict=True)
        ]
        print(f"| {name}, {len(labels):,} | {ranking} | {' | '.join(cells)} |", flush=True)


def main() -> int:
    """Print the table of docs/research/audit-labels.md."""
    parser = argparse.ArgumentParser()
    parser.add_argument("sets", nargs="*", default=SETS)
    parser.add_argument("--most", type=int, default=1500)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    chosen = parser.parse_args()
    print(f"cleanlab {cleanlab.__version__}")
    with TemporaryDirectory() as folder:
        for name in chosen.sets:
            measure(name, chosen.most, chosen.seeds, Path(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
