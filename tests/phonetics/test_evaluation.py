from __future__ import annotations

import json
from pathlib import Path

import pytest

from memantics.core.errors import DataError, InputError
from memantics.understanding.phonetics.evaluation import (
    assign_fold,
    evaluate,
    format_metrics,
    read_samples,
)
from memantics.understanding.phonetics.lattice import Lattice
from memantics.understanding.phonetics.ranking import RANK_FEATURES
from research.pun_weights import fit_weights
from tests.phonetics.captions import PLAIN, PUNS
from tests.places import SHARED_DATA, needs_shared_data


def write_release(folder: Path) -> Path:
    """A release of ours in the official layout."""
    rows: dict[str, dict[str, object]] = {}
    for i, (caption, intended) in enumerate(PUNS):
        rows[f"CN{i:05}.png"] = {
            "meme_type": "pun",
            "caption_1": caption,
            "caption_2": intended,
            "meme_explanation": "一张图片\n含义",
        }
        for kind, text in (("image", PLAIN[i % len(PLAIN)]), ("text", intended)):
            rows[f"CN{i:05}.similar_{kind}.png"] = {"meme_type": "non-pun", "caption_1": text}
    folder.joinpath("_Meta.json").write_text(json.dumps(rows), encoding="utf-8")
    return folder


@pytest.mark.slow
def test_metrics_of_a_release(tmp_path: Path) -> None:
    metrics = evaluate(write_release(tmp_path), "dictionary")
    assert (metrics.captions, metrics.homophones) == (60, 20)
    assert metrics.first >= 0.8
    assert metrics.first <= metrics.first_five <= metrics.found
    assert metrics.quiet <= 0.2
    text = format_metrics(metrics)
    assert max(map(len, text.splitlines())) <= 80


def test_the_root_of_a_clone_will_do(tmp_path: Path) -> None:
    """What ``data add`` takes, ``pun --evaluate`` takes, too."""
    inner = tmp_path / "data" / "pun_meme" / "cn"
    inner.mkdir(parents=True)
    write_release(inner)
    assert len(read_samples(tmp_path)) == 60


@pytest.mark.slow
def test_metrics_of_chosen_groups(tmp_path: Path) -> None:
    whole = evaluate(write_release(tmp_path), "dictionary")
    some = evaluate(tmp_path, "dictionary", groups="0-4,CN00019")
    assert (some.captions, some.homophones) == (18, 6)
    assert some.detector.count == 18
    assert evaluate(tmp_path, "dictionary", groups="0-19").first == whole.first
    parts = [evaluate(tmp_path, "dictionary", groups=part).captions for part in ("train", "test")]
    assert sum(parts) == 60
    assert all(parts)
    with pytest.raises(InputError, match="none of the groups 77 is in the data"):
        evaluate(tmp_path, "dictionary", groups="77")
    with pytest.raises(InputError, match="'first' is not a valid selection of groups"):
        evaluate(tmp_path, "dictionary", groups="first")


def test_groups_stay_together(tmp_path: Path) -> None:
    samples = read_samples(write_release(tmp_path))
    assert {s.group for s in samples if s.name.startswith("CN00003")} == {"CN00003"}
    assert len({assign_fold(s.group) for s in samples}) > 1


def test_weights_can_be_fitted_again(tmp_path: Path, lattice: Lattice) -> None:
    weights = fit_weights(read_samples(write_release(tmp_path))[:30], lattice)
    assert set(weights) == {"rank", "confidence", "pun", "described"}
    fitted = weights["rank"]["weights"]
    assert isinstance(fitted, dict)
    assert set(fitted) == set(RANK_FEATURES)


def test_wrong_folders_are_named(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match=r"not a PunMemeCN release: none of these was found: _Meta\.json"
    ):
        read_samples(tmp_path)
    (tmp_path / "_Meta.json").write_text('{"CN00001.png": {"caption_1": 3}}')
    with pytest.raises(DataError, match=r"row CN00001\.png"):
        read_samples(tmp_path)


@pytest.mark.slow
@needs_shared_data
def test_official_captions_with_core_data_alone(tmp_path: Path) -> None:
    """A fifth of the groups keeps it quick; the documented command measures all of them."""
    rows = json.loads((SHARED_DATA / "punmemecn" / "_Meta.json").read_bytes())
    some = {name: row for name, row in rows.items() if int(name[2:7]) % 5 == 0}
    (tmp_path / "_Meta.json").write_text(json.dumps(some), encoding="utf-8")
    metrics = evaluate(tmp_path, "dictionary")
    assert metrics.homophones > 60
    assert metrics.first >= 0.5
    assert metrics.first_five >= 0.68
    assert metrics.quiet <= 0.2
    assert metrics.detector.f1 >= 0.7
