"""Leaks through metadata and images: each planted one is found, and clean data have none."""

from __future__ import annotations

import random
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw

from memantics.core.finding import Finding
from memantics.evaluation.audit import AuditSettings, audit
from memantics.evaluation.audits.labels import LabelWishes, audit_label
from memantics.evaluation.audits.metadata import cut_name, judge_metadata
from memantics.evaluation.audits.pictures import find_shared_images, list_same, read_pictures
from memantics.moderation.classifier import find_labelled
from memantics.moderation.resplit import settle_verdicts
from tests.audit.planted import make_memes, write_table

Rows = list[dict[str, str]]


def look(folder: Path, rows: Rows) -> dict[str, Finding]:
    """The findings about metadata of a table, by key."""
    table = write_table(rows, folder / "memes.csv")
    data = find_labelled(f"{table}/label")
    drafts = judge_metadata(data, table, read_pictures(data))
    return {found.key: found for found in settle_verdicts(drafts)}


def plant(rows: Rows, column: str, *values: str, told: float = 1.0) -> Rows:
    """Fill a column with one of two values by the label, in ``told`` of the memes."""
    chance = random.Random(3)
    for row in rows:
        harmful = row["label"] == "harmful"
        harmful = harmful if chance.random() < told else chance.random() < 0.5
        row[column] = values[harmful].format(n=chance.randrange(10_000))
    return rows


@pytest.mark.parametrize(
    ("column", "values", "key", "cue"),
    [
        ("image", ("ok_{n}.png", "hate_{n}.png"), "file_name", "word hate"),
        ("image", ("a/{n}.png", "b/{n}.png"), "file_name", "folder b"),
        ("image", ("{n}.jpg", "{n}.png"), "file_name", "ending png"),
        ("id", ("n{n}-{n}", "p{n}-{n}"), "id", "word p"),
        ("date", ("2021-05-02", "2023-05-02"), "date", "month 2023-05"),
        ("created_at", ("2021-05-02 10:00", "2021-05-02 22:30"), "column.created_at", "hour 22: "),
        ("camera", ("nikon", "canon"), "column.camera", "value canon"),
        ("likes", ("1{n}", "9{n}"), "column.likes", "from "),
        ("source", ("reddit", "4chan"), "column.source", "value 4chan"),
    ],
)
def test_each_planted_leak_is_found_with_its_cue(
    column: str, values: tuple[str, str], key: str, cue: str, tmp_path: Path
) -> None:
    rows = make_memes(1, 200)
    for place, row in enumerate(rows):
        row |= {"id": f"m{place}"}
    rows = plant(rows, column, *values)
    if column == "id":
        for place, row in enumerate(rows):
            row["id"] += f"-{place}"
    found = look(tmp_path, rows)
    told = found[f"metadata.{key}"]
    assert told.score.value is not None
    assert told.score.value > 0.85
    # A column that may be an annotation is never called broken.
    assert told.verdict == ("worth knowing" if key.startswith("column.") else "broken")
    assert cue in " ".join(told.details)
    assert [own for own, finding in found.items() if finding.verdict != "sound"] == [told.key]


def test_the_value_is_the_planted_one(tmp_path: Path) -> None:
    rows = plant(make_memes(0, 1000), "image", "ok_{n}.png", "hate_{n}.png", told=0.5)
    told = look(tmp_path, rows)["metadata.file_name"]
    # Half of the names follow the label, half of the others by chance.
    assert told.score.low is not None
    assert told.score.low <= 0.75 <= (told.score.high or 0)


def test_annotations_and_texts_are_not_metadata(tmp_path: Path) -> None:
    rows = plant(make_memes(0, 120), "hate_type", "none", "insult")
    rows = plant(rows, "alt", "a very long sentence about a friendly kitten, number {n}" * 2,
                 "a very long sentence about an unfriendly person, number {n}" * 2)  # fmt: skip
    assert set(look(tmp_path, rows)) == {"metadata.id"}


@pytest.mark.slow
def test_clean_metadata_give_no_alarm(tmp_path: Path) -> None:
    """Draws with random names, dates, columns and ids: at most the nominal number of findings."""
    alarms = []
    for seed in range(30):
        chance = random.Random(seed)
        rows = make_memes(seed, 160)
        for row in rows:
            row["image"] = f"{chance.choice(['cat', 'dog', 'sky'])}_{chance.randrange(999)}.png"
            row["date"] = f"202{chance.randrange(5)}-0{chance.randrange(1, 10)}-11"
            row["likes"] = str(chance.randrange(1000))
            row["camera"] = chance.choice(["nikon", "canon", "phone"])
        found = look(tmp_path, rows)
        assert len(found) == 5
        alarms += [key for key, own in found.items() if own.verdict != "sound"]
    assert len(alarms) <= 3, alarms


def test_names_are_cut_where_letters_and_digits_meet() -> None:
    assert cut_name("") is None
    assert sorted(cut_name("hate12x.tar") or ()) == [
        "ending tar", "number of 2 digits", "word hate", "word x",
    ]  # fmt: skip


def draw(seed: int, words: str) -> Image.Image:
    """A picture of coloured boxes (the template, by ``seed``) with words along its lower edge."""
    chance = random.Random(seed)

    def mix() -> tuple[int, int, int]:
        return chance.randrange(256), chance.randrange(256), chance.randrange(256)

    image = Image.new("RGB", (320, 240), mix())
    pen = ImageDraw.Draw(image)
    for _ in range(12):
        left, top = chance.randrange(240), chance.randrange(160)
        box = (left, top, left + chance.randrange(20, 120), top + 60)
        pen.rectangle(box, fill=mix())
    pen.rectangle((0, 196, 320, 240), fill="white")
    pen.text((8, 200), words, fill="black", font_size=30)
    return image


def make_set(folder: Path, copies: int) -> Rows:
    """100 memes to train on and 100 for test, ``copies`` of them on images of the training set."""
    rows = make_memes(0, 200)
    for place, row in enumerate(rows):
        test = place >= 100
        row |= {"split": "test" if test else "train", "image": f"{place}.png"}
        del row["template_cluster"]
        source = place - 100 if 100 <= place < 100 + copies else place
        image = draw(source, rows[source]["text"][:20])
        if test and place % 2:  # saved again, smaller and with losses
            body = BytesIO()
            image.resize((200, 150)).save(body, "JPEG", quality=70)
            image = Image.open(body).resize((290, 218))
        image.save(folder / row["image"])
    return rows


@pytest.mark.slow
def test_copies_of_images_in_the_other_split_are_found(tmp_path: Path) -> None:
    table = write_table(make_set(tmp_path, 8), tmp_path / "memes.csv")
    data = find_labelled(f"{table}/label")
    pictures = read_pictures(data)
    ((found,), gaps) = find_shared_images(data, pictures)
    assert not gaps
    assert (found.key, found.verdict, found.score.value) == ("leak.images", "worth knowing", 0.08)
    assert {row.label: row.value for row in found.rows} == {
        "identical file": 0.04,
        "identical or near-identical": 0.08,
    }
    assert set(list_same(pictures)) == {(place, place + 100) for place in range(8)}
    clean = write_table(make_set(tmp_path, 0), tmp_path / "clean.csv")
    data = find_labelled(f"{clean}/label")
    ((found,), _) = find_shared_images(data, read_pictures(data))
    assert (found.verdict, found.score.value) == ("sound", 0.0)


def test_one_template_with_another_caption_is_not_the_same_image(tmp_path: Path) -> None:
    rows = make_memes(0, 60)
    for place, row in enumerate(rows):
        row |= {"split": "test" if place % 2 else "train", "image": f"{place}.png"}
        draw(place // 2, row["text"][:18]).save(tmp_path / row["image"])
    data = find_labelled(f"{write_table(rows, tmp_path / 'memes.csv')}/label")
    assert list(list_same(read_pictures(data))) == []


def test_data_without_splits_or_images_say_so(tmp_path: Path) -> None:
    rows = make_memes(0, 60)
    data = find_labelled(f"{write_table(rows, tmp_path / 'memes.csv')}/label")
    found, (gap,) = find_shared_images(data, read_pictures(data))
    assert (found, gap.reason) == ([], "no image is available")
    for place, row in enumerate(rows):
        row["image"] = f"{place}.png"
        draw(place, "hello").save(tmp_path / row["image"])
    data = find_labelled(f"{write_table(rows, tmp_path / 'memes.csv')}/label")
    found, (gap,) = find_shared_images(data, read_pictures(data))
    assert not found
    assert "splits: none" in gap.reason


@pytest.mark.slow
def test_an_audit_of_a_table_reports_both_leaks(tmp_path: Path) -> None:
    rows = make_set(tmp_path, 8)
    for row in rows:
        name = f"{'hate' if row['label'] == 'harmful' else 'ok'}_{row['id']}.png"
        (tmp_path / row["image"]).rename(tmp_path / name)
        row["image"] = name
    table = write_table(rows, tmp_path / "memes.csv")
    found = audit(f"{table}/label", settings=AuditSettings(runs=tmp_path / "runs"))
    verdicts = {finding.key: finding.verdict for finding in found.findings}
    assert verdicts["metadata.file_name"] == "broken"
    assert verdicts["leak.images"] == "worth knowing"
    assert verdicts["metadata.image_size"] == verdicts["metadata.id"] == "sound"


def test_a_camera_that_tells_the_label_is_found(tmp_path: Path) -> None:
    rows = make_memes(0, 120)
    for place, row in enumerate(rows):
        row["image"] = f"{place}.jpg"
        exif = Image.Exif()
        exif[272] = "Phone A" if row["label"] == "harmful" else "Scanner B"
        Image.new("RGB", (32, 24), (place, 90, 200)).save(tmp_path / row["image"], exif=exif)
    found = look(tmp_path, rows)["metadata.exif"]
    assert (found.verdict, found.score.value) == ("broken", 1.0)


@pytest.mark.slow
def test_a_caption_on_another_image_is_not_a_label_error(tmp_path: Path) -> None:
    """Equal captions with other labels: errors on equal images, none on different ones."""
    rows = make_memes(0, 160)
    for place, row in enumerate(rows):
        row["image"] = f"{place}.png"
        del row["template_cluster"]
    for place in range(20):
        rows[80 + place] |= {
            "text": rows[place]["text"],
            "label": "harmless" if rows[place]["label"] == "harmful" else "harmful",
        }
    for place in range(160):
        same_image = 90 <= place < 100
        draw(place - 80 if same_image else place, "hello").save(tmp_path / f"{place}.png")
    table = write_table(rows, tmp_path / "memes.csv")
    notes = audit_label(f"{table}/label", None, LabelWishes((), True, tmp_path / "out"))
    lines = notes.files["likely label errors"].read_text().splitlines()
    doubted = {
        int(line.split('"id":"')[1].split('"')[0]) for line in lines if "near-duplicate" in line
    }
    pairs = {place % 80 for place in doubted}
    assert pairs == set(range(10, 20))
    assert np.all([place < 20 or 90 <= place < 100 for place in doubted])
