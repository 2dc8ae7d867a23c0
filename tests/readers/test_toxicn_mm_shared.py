"""The reader of ToxiCN MM on the official training files that lie beside the checkout."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from memantics.benchmarks.published import read_expected
from memantics.benchmarks.toxicn_mm.load import TARGETS, HarmRelease, open_release
from memantics.benchmarks.toxicn_mm.statistics import statistics, survey
from memantics.core.data import Source
from tests.places import SHARED_DATA, needs_shared_data

pytestmark = needs_shared_data
FOLDER = SHARED_DATA / "toxicn_mm"
EXPECTED = Path(open_release.__code__.co_filename).parent / "expected" / "statistics.json"
HARMS = {1: "targeted", 2: "sexual", 3: "offence", 4: "dispirited"}


@pytest.fixture(scope="module")
def release() -> HarmRelease:
    return open_release(Source("release", FOLDER))


@pytest.fixture(scope="module")
def numbers(release: HarmRelease) -> dict[str, Any]:
    return dict(statistics(release))


def rows(name: str) -> list[dict[str, Any]]:
    data: list[dict[str, Any]] = json.loads((FOLDER / name).read_text(encoding="utf-8"))
    return data


def test_all_of_this_part_is_read_and_its_gaps_named(release: HarmRelease) -> None:
    found = survey(release)
    assert found.records == 9600
    assert (found.images_found, found.images_expected) == (0, 9600)
    assert len(release.repairs) == 1
    assert [note.split(":")[0] for note in found.notes] == [
        "This copy contains no images",
        "Labels v1 have no test split in this copy (test_data_discription.json is missing)",
        "Labels v2 have no test split in this copy (test_data_discription_2.0.json is missing)",
    ]


def test_tables_3_and_4_of_version_1(numbers: dict[str, Any]) -> None:
    data = rows("train_data_discription.json")
    types = Counter(row["type"] for row in data)
    assert numbers["table3.v1.train.non_harmful"] == types[0]
    for code, name in HARMS.items():
        part = [row for row in data if row["type"] == code]
        assert numbers[f"table3.v1.train.{name}"] == len(part)
        # The file's own fourth code: 1 fusion, 2 text, 3 image, 4 both.
        kinds = Counter(row["new_modal"] for row in part)
        prefix = f"table4.v1.train.{name}"
        assert numbers[f"{prefix}.fusion"] == kinds[1]
        assert numbers[f"{prefix}.text"] == kinds[2] + kinds[4]
        assert numbers[f"{prefix}.image"] == kinds[3] + kinds[4]


def test_targets_and_changes_of_version_2(numbers: dict[str, Any]) -> None:
    first, second = rows("train_data_discription.json"), rows("train_data_discription_2.0.json")
    targets = Counter(row["target"] for row in second)
    for code, name in enumerate(TARGETS, 1):
        assert numbers[f"targets.v2.train.{name}"] == targets[code]
    pairs = list(zip(first, second, strict=True))
    assert numbers["versions.label.train"] == sum(a["label"] != b["label"] for a, b in pairs)
    assert numbers["versions.type.train"] == sum(a["type"] != b["type"] for a, b in pairs)
    assert numbers["versions.modality.train"] == sum(
        a["modal"] != [b["text_modal"], b["image_modal"]] for a, b in pairs
    )
    assert numbers["versions.text.train"] == 0


def test_the_code_book_is_the_one_our_names_follow() -> None:
    with (FOLDER / "target_info.csv").open(encoding="utf-8", newline="") as file:
        book = {row["ID"]: row["Category"] for row in csv.DictReader(file)}
    assert book["1"].lower() == TARGETS[0]
    assert book["8"].lower() == TARGETS[7]
    assert book["13"].split()[-1].lower() == TARGETS[12]
    assert book["15"].lower().startswith(TARGETS[14])


def test_what_this_part_can_tell_is_what_the_release_is_known_to_say(
    numbers: dict[str, Any],
) -> None:
    known = {row.key: row.known for row in read_expected(EXPECTED)}
    later = ("versions.type.", "table4.v2.")  # counted in no complete copy yet
    told = {
        key: value
        for key, value in numbers.items()
        if value is not None and not (key.startswith(later) and known[key] is None)
    }
    assert len(told) > 80
    assert told == {key: known[key] for key in told}
