"""One command registers each layout of the field; counts, labels and images are those written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from memantics.benchmarks.dataset_reader import ConfiguredMeme, ConfiguredRelease
from memantics.benchmarks.registry import find_benchmark
from memantics.core.images import read_bytes
from memantics.core.registry import find_registered, read_registry
from tests.commands import Shell
from tests.readers import layouts as made
from tests.readers.layouts import Row, by_split, embed, make_rows, plain

pytest.importorskip("pyarrow", reason="the extra parquet is not installed")
SHORT = {"train": "train", "validation": "val", "test": "test"}


def open_set(name: str) -> list[ConfiguredMeme]:
    release = find_benchmark(name).open(find_registered(name).source)
    assert isinstance(release, ConfiguredRelease)
    return list(release.memes)


def check(name: str, rows: list[Row], label: str = "label", *, ids: bool = True) -> None:
    """Compare a registered data set with the rows that were written."""
    memes = open_set(name)
    spelled = {"val": "validation", "dev": "validation"}
    said = Counter(spelled.get(meme.split, meme.split) for meme in memes)
    assert said == Counter(row.split for row in rows)
    if ids:
        assert {meme.id: meme.labels[label] for meme in memes} == {r.id: (r.label,) for r in rows}
        assert {meme.id: meme.text for meme in memes} == {row.id: row.text for row in rows}
    pictures = Counter(read_bytes(meme.image) for meme in memes if meme.image)
    assert pictures == Counter(row.image for row in rows)


def hub(folder: Path, rows: list[Row]) -> None:
    for split, some in by_split(rows, embed).items():
        half = len(some) // 2
        for part, piece in enumerate((some[:half], some[half:])):
            made.write_parquet(folder / f"data/{split}-0000{part}-of-00002.parquet", piece)


def one_parquet(folder: Path, rows: list[Row]) -> None:
    values = [embed(row) | {"split": row.split} for row in rows]
    made.write_parquet(folder / "memes.parquet", values)


def json_dictionary(folder: Path, rows: list[Row]) -> None:
    for split, some in by_split(rows, plain).items():
        keyed = {value.pop("id"): value for value in some}
        made.write(folder / f"{SHORT[split]}.json", orjson.dumps(keyed))
    made.write_images(folder / "images", rows)


def json_list(folder: Path, rows: list[Row]) -> None:
    for split, some in by_split(rows, plain).items():
        made.write(folder / f"annotations/memes_{split}.json", orjson.dumps(some))
    made.write_images(folder / "images", rows)


def json_lines(folder: Path, rows: list[Row]) -> None:
    for split, some in by_split(rows, plain).items():
        made.write_lines(folder / f"{'dev' if split == 'validation' else split}.jsonl", some)
    made.write_images(folder / "images", rows)


def separated(mark: str, code: str) -> Callable[[Path, list[Row]], None]:
    def build(folder: Path, rows: list[Row]) -> None:
        for split, some in by_split(rows, plain).items():
            made.write_csv(folder / f"{split}.csv", some, mark, code)
        made.write_images(folder / "images", rows)

    return build


def image_folder(folder: Path, rows: list[Row]) -> None:
    for split in made.SPLITS:
        some = [row for row in rows if row.split == split]
        values = [
            {"file_name": row.file, "id": row.id, "text": row.text, "label": row.label}
            for row in some
        ]
        made.write_csv(folder / split / "metadata.csv", values)
        made.write_images(folder / split, some)


def image_folder_lines(folder: Path, rows: list[Row]) -> None:
    for split in made.SPLITS:
        some = [row for row in rows if row.split == split]
        values = [
            {"file_name": row.file, "id": row.id, "text": row.text, "label": row.label}
            for row in some
        ]
        made.write_lines(folder / split / "metadata.jsonl", values)
        made.write_images(folder / split, some)


def tars(folder: Path, rows: list[Row]) -> None:
    for split in made.SPLITS:
        some = [row for row in rows if row.split == split]
        for part, piece in enumerate((some[::2], some[1::2])):
            if piece:
                made.write_tar(folder / f"{split}-{part:06d}.tar", piece)


def excel(folder: Path, rows: list[Row]) -> None:
    openpyxl = pytest.importorskip("openpyxl", reason="the extra tables is not installed")
    book = openpyxl.Workbook()
    for place, values in enumerate([["id", "image", "text", "label", "split"]], 1):
        for column, value in enumerate(values, 1):
            book.active.cell(place, column, value)
    for place, row in enumerate(rows, 2):
        values = [row.id, f"images/{row.file}", row.text, row.label, row.split]
        for column, value in enumerate(values, 1):
            book.active.cell(place, column, value)
    folder.mkdir()
    book.save(folder / "memes.xlsx")
    made.write_images(folder / "images", rows)


GENERAL = {
    "hub shards": hub,
    "one parquet": one_parquet,
    "json dictionary": json_dictionary,
    "json lists": json_list,
    "json lines": json_lines,
    "commas": separated(",", "utf-8"),
    "semicolons": separated(";", "utf-8"),
    "tabs": separated("\t", "utf-8-sig"),
    "bars, utf-16": separated("|", "utf-16"),
    "gb18030": separated(",", "gb18030"),
    "image folder, csv": image_folder,
    "image folder, lines": image_folder_lines,
    "tar shards": tars,
    "excel": excel,
}


@pytest.mark.parametrize("layout", GENERAL)
def test_every_general_layout_is_registered_by_one_command(layout: str, tmp_path: Path) -> None:
    rows = make_rows()
    if layout == "gb18030":  # has no ¿ and é of other encodings, but all Chinese characters
        rows = [Row(r.id, r.split, f"我又迟到了{r.id}", r.label, r.image) for r in rows]
    GENERAL[layout](tmp_path / "set", rows)
    shell = Shell(tmp_path)
    out = shell.done("data", "add", "set", "--label", "label")
    assert "label: " in out
    assert "images: 12 of 12" in out
    check("set", rows)


def test_a_file_alone_is_read_with_its_split_column(tmp_path: Path) -> None:
    one_parquet(tmp_path, make_rows())
    Shell(tmp_path).done("data", "add", "memes.parquet", "--label", "label")
    check("memes", make_rows())


def test_windows_texts_are_read_and_the_encoding_is_said(tmp_path: Path) -> None:
    rows = [Row(r.id, r.split, f"¿quién? {r.id}", r.label, r.image) for r in make_rows()]
    separated(";", "cp1252")(tmp_path / "set", rows)
    out = Shell(tmp_path).done("data", "add", "set", "--label", "label")
    assert "separated by semicolon, encoding cp1252" in " ".join(out.split())
    check("set", rows)


def test_names_of_numbered_classes_come_from_the_file(tmp_path: Path) -> None:
    rows = [{**embed(row), "label": int(row.label == "hateful")} for row in make_rows()]
    classes = {"label": {"names": ["fine", "hateful"], "_type": "ClassLabel"}}
    made.write_parquet(tmp_path / "set/data/test-0.parquet", rows, classes)
    out = Shell(tmp_path).done("data", "add", "set", "--label", "label")
    assert "hateful 50.0 %" in out
    assert {value for meme in open_set("set") for value in meme.labels["label"]} == {
        "fine",
        "hateful",
    }


def test_lists_several_columns_nested_fields_and_spans(tmp_path: Path) -> None:
    rows = [
        {
            "id": f"m{n}",
            "text": "vote for the other one",
            "tags": ["a", "b"][: n % 2 + 1],
            "mood": ["sad", "happy"][n % 2],
            "meta": {"hate": {"level": ["low", "high"][n % 2]}},
            "spans": [{"start": 0, "end": 4, "technique": "slogan", "text": "vote"}],
        }
        for n in range(4)
    ]
    made.write_lines(tmp_path / "set/train.jsonl", rows)
    labels = ("tags", "mood", "meta.hate.level", "spans.technique")
    flags = [word for name in labels for word in ("--label", name)]
    Shell(tmp_path).done("data", "add", "set", *flags)
    first, second, *_ = open_set("set")
    assert (first.labels["tags"], second.labels["tags"]) == (("a",), ("a", "b"))
    assert second.labels["mood"] == ("happy",)
    assert second.labels["meta_hate_level"] == ("high",)
    assert second.labels["spans_technique"] == ("slogan",)


def test_missing_images_are_reported_at_once(tmp_path: Path) -> None:
    rows = [{**plain(row), "id": f"x{n}"} for n, row in enumerate(make_rows())]
    made.write_lines(tmp_path / "set/train.jsonl", rows)
    made.write_images(tmp_path / "set/images", make_rows()[:1])
    out = " ".join(Shell(tmp_path).done("data", "add", "set", "--label", "label").split())
    named = ", ".join(f"images/m{n}.png" for n in range(1, 11))
    assert f"11 of 12 images are missing: {named}, …" in out


# Layouts of published sets: NAME → (writer, the data sets that must be registered, label).


def memelens_hub(folder: Path, rows: list[Row]) -> None:
    for place in ("Hateful_en__One", "Mood_ar__Two"):
        for split, some in by_split(rows, embed).items():
            values = [v | {"task_description": "x", "explanation": "because"} for v in some]
            path = folder / place / f"{split}-00000-of-00001.parquet"
            made.write_parquet(path, values)


def memelens_vlm(folder: Path, rows: list[Row]) -> None:
    for place in ("en/one", "ar/two"):
        for split, some in by_split(rows, plain).items():
            values = [v | {"task_description": "x", "explanation": "because"} for v in some]
            made.write_lines(folder / place / f"{SHORT[split]}.jsonl", values)
        made.write_images(folder / place / "images", rows)


def memereason(folder: Path, rows: list[Row]) -> None:
    for place in ("hateful_memes", "armeme"):
        for split, some in by_split(rows, embed).items():
            made.write_parquet(folder / place / f"{split}-00000-of-00001.parquet", some)


def unsafebench(folder: Path, rows: list[Row]) -> None:
    for split in ("train", "test"):
        values = [
            {"image": {"bytes": row.image, "path": row.file}, "safety_label": row.label}
            | {"category": "Hate", "source": "Laion5B", "text": row.text}
            for row in rows
            if row.split == split
        ]
        made.write_parquet(folder / f"data/{split}-00000-of-00001.parquet", values)


def ra_hmd(folder: Path, rows: list[Row]) -> None:
    for place in ("FB", "HarMeme", "HarmP", "MAMI"):
        for split, some in by_split(rows, plain).items():
            values = [v | {"label": int(v["label"] == "yes")} for v in some]
            made.write_lines(folder / f"data/{place}/{SHORT[split]}.jsonl", values)
        made.write_images(folder / f"data/{place}/images", rows)


def dankmemes(folder: Path, rows: list[Row]) -> None:
    for split in ("train", "test"):
        values = [
            {"File": row.file, "Engagement": 3, "Date": "2019-08-20", "Picture manipulation": 1}
            | {
                "Visual actors": "0",
                "Text": row.text,
                "Hate Speech": int(row.label == "hate speech"),
            }
            for row in rows
            if row.split == split
        ]
        made.write_csv(folder / f"dankmemes_task2_{split}.csv", values)
    made.write_images(folder / "Images", rows)


def harmeme(folder: Path, rows: list[Row]) -> None:
    for split in made.SPLITS:
        values = [
            {"id": row.id, "image": row.file, "labels": [row.label, "individual"], "text": row.text}
            for row in rows
            if row.split == split
        ]
        made.write_lines(folder / f"{SHORT[split]}.jsonl", values)
    made.write_images(folder / "images", rows)


def memotion3(folder: Path, rows: list[Row]) -> None:
    for split in ("train", "validation"):
        values = [
            {
                "image_url": f"u/{row.file}",
                "ocr": row.text,
                "humour": "funny",
                "sarcastic": "general",
            }
            | {"offensive": "slight", "motivational": "not", "overall": row.label}
            for row in rows
            if row.split == split
        ]
        made.write_csv(folder / f"memotion_{SHORT[split]}.csv", values)
    made.write_images(folder / "images", rows)


PUBLISHED = {
    "memelens, hub": (
        memelens_hub,
        (("set_hateful_en__one", "label"), ("set_mood_ar__two", "label")),
        ("hateful", "fine"),
    ),
    "memelens, vlm": (
        memelens_vlm,
        (("set_en_one", "label"), ("set_ar_two", "label")),
        ("hateful", "fine"),
    ),
    "memereason": (
        memereason,
        (("memereason_hateful", "hate"), ("memereason_armeme", "propaganda")),
        ("hateful", "fine"),
    ),
    "unsafebench": (unsafebench, (("unsafebench", "safety"),), ("safe", "unsafe")),
    "ra-hmd": (
        ra_hmd,
        (("ra_hmd_fb", "hate"), ("ra_hmd_harmeme", "harm"), ("ra_hmd_mami", "misogyny")),
        ("yes", "no"),
    ),
    "dankmemes": (dankmemes, (("dankmemes_task2", "hate"),), ("hate speech", "no hate speech")),
    "memotion 3": (memotion3, (("memotion3", "sentiment"),), ("positive", "negative")),
}


@pytest.mark.slow
@pytest.mark.parametrize("layout", PUBLISHED)
def test_every_published_layout_is_recognised(layout: str, tmp_path: Path) -> None:
    write, sets, labels = PUBLISHED[layout]
    rows = make_rows(labels)
    if layout in ("unsafebench", "dankmemes"):
        rows = [row for row in rows if row.split != "validation"]
    if layout == "memotion 3":
        rows = [row for row in rows if row.split != "test"]
    given = rows
    if layout == "unsafebench":  # its values have capitals
        given = [Row(r.id, r.split, r.text, r.label.title(), r.image) for r in rows]
    write(tmp_path / "set", given)
    out = Shell(tmp_path).done("data", "add", "set")
    assert "registered" in out
    assert {name for name, _ in sets} <= set(read_registry())
    for name, label in sets:
        check(name, rows, label, ids=layout not in ("unsafebench", "dankmemes", "memotion 3"))


def test_harmeme_is_named_because_three_sets_have_its_layout(tmp_path: Path) -> None:
    rows = make_rows(("very harmful", "not harmful"))
    harmeme(tmp_path / "set", rows)
    shell = Shell(tmp_path)
    assert "NAME is one of harm_c, harm_p, harmeme" in shell.refused("data", "add", "set")
    shell.done("data", "add", "harmeme", "set")
    check("harmeme", rows, "harm")


EXIST = {
    2024: ("labels_task4", "labels_task5", "labels_task6"),
    2025: ("labels_task2_1", "labels_task2_2", "labels_task2_3"),
    2026: ("labels_task2_1", "labels_task2_2", "labels_task2_3"),
}


def exist_record(row: Row, names: tuple[str, str, str]) -> dict[str, object]:
    sexist, intention, category = names
    return {
        "id_EXIST": row.id,
        "lang": "en",
        "text": row.text,
        "meme": row.file,
        "path_memes": f"memes/{row.file}",
        "number_annotators": 3,
        "annotators": ["Annotator_1", "Annotator_2", "Annotator_3"],
        "gender_annotators": ["F", "F", "M"],
        "age_annotators": ["18-22", "23-45", "46+"],
        "study_levels_annotators": ["Bachelor", "Master", "Doctorate"],
        "countries_annotators": ["Spain", "Mexico", "Chile"],
        sexist: ["YES", "NO", "YES"],
        intention: ["DIRECT", "-", "JUDGEMENTAL"],
        category: [["OBJECTIFICATION", "SEXUAL-VIOLENCE"], ["-"], ["OBJECTIFICATION"]],
        "split": "TRAIN-MEME_EN",
    }


@pytest.mark.parametrize("year", EXIST)
def test_exist_keeps_every_vote_with_its_attributes(year: int, tmp_path: Path) -> None:
    rows = [row for row in make_rows() if row.split == "train"]
    keyed = {row.id: exist_record(row, EXIST[year]) for row in rows}
    made.write(tmp_path / f"set/training/EXIST{year}_training.json", orjson.dumps(keyed))
    made.write_images(tmp_path / "set/training/memes", rows)
    Shell(tmp_path).done("data", "add", "set")
    memes = open_set(f"exist_{year}")
    assert len(memes) == len(rows)
    first = memes[0]
    assert first.labels == {
        "sexist": ("YES",),
        "intention": (),
        "category": ("OBJECTIFICATION",),
    }
    votes = first.votes["sexist"]
    assert [vote.values for vote in votes] == [("YES",), ("NO",), ("YES",)]
    assert votes[2].annotator == "Annotator_3"
    assert votes[2].attributes == {
        "gender": "M",
        "age": "46+",
        "study_level": "Doctorate",
        "country": "Chile",
    }
    assert first.votes["category"][1].values == ("NO",)
    assert first.language == "en"
    assert all(meme.image is not None for meme in memes)


def test_semeval_2021_has_labels_and_spans(tmp_path: Path) -> None:
    rows = make_rows()
    some = [
        {"id": row.id, "text": row.text, "image": row.file, "labels": ["Smears", "Doubt"]}
        for row in rows
    ]
    made.write(tmp_path / "set/data/training_set_task3.txt", orjson.dumps(some))
    made.write_images(tmp_path / "set/data", rows)
    span = {"start": 0, "end": 4, "technique": "Smears", "text": "when"}
    spans = [{"id": row.id, "text": row.text, "labels": [span]} for row in rows if row.text > "m"]
    made.write(tmp_path / "set/data/training_set_task2.txt", orjson.dumps(spans))
    Shell(tmp_path).done("data", "add", "set")
    assert open_set("semeval2021_task6")[0].labels["technique"] == ("Smears", "Doubt")
    (found,) = open_set("semeval2021_task6_spans")[0].spans["technique"]
    assert (found.start, found.end, found.value) == (0, 4, "Smears")


def test_semeval_2024_memecap_and_checkthat(tmp_path: Path) -> None:
    rows, shell = make_rows(), Shell(tmp_path)
    for split, file in (("train", "train"), ("validation", "validation")):
        some = [
            {"id": row.id, "text": row.text, "image": row.file, "labels": ["Smears"], "link": "x"}
            for row in rows
            if row.split == split
        ]
        made.write(tmp_path / f"s24/data/subtask2a/{file}.json", orjson.dumps(some))
    shell.done("data", "add", "s24")
    assert open_set("semeval2024_task4")[0].labels["technique"] == ("Smears",)

    caps = [
        {"img_fname": row.file, "title": row.text, "meme_captions": ["a joke", "so tired"]}
        | {"post_id": row.id, "img_captions": ["a man"], "metaphors": [], "url": "x"}
        for row in rows
    ]
    body = orjson.dumps(caps).replace(b'"url":"x"', b'"url":NaN')
    made.write(tmp_path / "cap/data/memes-trainval.json", body)
    made.write(
        tmp_path / "cap/data/memes-test.json", body.replace(b'"post_id":"m', b'"post_id":"t')
    )
    made.write_images(tmp_path / "cap/data/memes", rows)
    shell.done("data", "add", "cap")
    assert open_set("memecap")[0].texts["meaning"] == ("a joke", "so tired")

    roles = [
        {"OCR": row.text, "image": row.file, "hero": ["us"], "villain": [], "victim": ["you"]}
        | {"other": []}
        for row in rows
    ]
    made.write_lines(tmp_path / "hvv/annotations/train.jsonl", roles)
    shell.done("data", "add", "hvv")
    first = open_set("checkthat_2024_task4")[0]
    assert (first.entities["role"], first.labels["role"]) == (("us", "you"), ("hero", "victim"))


def damage_json(folder: Path) -> None:
    made.write(folder / "train.json", '{"a": {"text": "x", "label": "y"}')


def damage_lines(folder: Path) -> None:
    made.write(folder / "train.jsonl", '{"id": 1, "text": "x", "label": "a"}\n{"id": 2,')


def damage_list(folder: Path) -> None:
    made.write(folder / "train.json", '["a", "b"]')


def damage_scalar(folder: Path) -> None:
    made.write(folder / "train.json", "7")


def damage_parquet(folder: Path) -> None:
    hub(folder, make_rows())
    path = folder / "data/train-00000-of-00002.parquet"
    path.write_bytes(path.read_bytes()[:-40])


def damage_tar(folder: Path) -> None:
    tars(folder, make_rows())
    path = folder / "train-000000.tar"
    path.write_bytes(path.read_bytes()[:3000])


def damage_tar_json(folder: Path) -> None:
    tars(folder, make_rows())
    path = folder / "train-000000.tar"
    path.write_bytes(path.read_bytes().replace(b'{"id":', b'{"id";', 1))


def write_csv_text(text: str | bytes, name: str = "train.csv") -> Callable[[Path], None]:
    return lambda folder: made.write(folder / name, text)


HEAD = "id,text,label\n"


def write_two(folder: Path) -> None:
    for name in ("a.csv", "b.csv"):
        made.write(folder / name, HEAD + "1,a,x\n2,b,y\n")


DAMAGED: dict[str, tuple[Callable[[Path], None], tuple[str, ...], str]] = {
    "cut json": (damage_json, (), "train.json: not valid JSON"),
    "cut line": (damage_lines, (), "train.jsonl: row 2: not valid JSON"),
    "json of texts": (damage_list, (), "train.json: row 1: is not a JSON object"),
    "json number": (damage_scalar, (), "neither a list nor a dictionary of records"),
    "cut parquet": (damage_parquet, (), "is not a valid Parquet file"),
    "cut tar": (damage_tar, (), "train-000000.tar: is truncated or damaged"),
    "bad json in tar": (damage_tar_json, (), ".json is not valid JSON"),
    "no excel": (write_csv_text("x", "train.xlsx"), (), "is not a complete archive"),
    "short row": (write_csv_text(HEAD + "1,a,x\n2,b\n"), (), "row 2: has more or fewer cells"),
    "long row": (write_csv_text(HEAD + "1,a,x\n2,b,y,z\n"), (), "row 2: has more or fewer"),
    "open quote": (write_csv_text(HEAD + '1,"a,x\n'), (), "unexpected end of data"),
    "zero bytes": (write_csv_text(HEAD.encode() + b"1,\x81,x\n2,b,y\n"), (), "save it as UTF-8"),
    "header only": (write_csv_text(HEAD), (), "train.csv: has no rows"),
    "empty id": (write_csv_text(HEAD + "1,a,x\n,b,y\n"), (), "row 2: id '' is empty"),
    "hidden character": (
        write_csv_text(HEAD + "1,a,x\nb\u200bc,b,y\n"),
        (),
        "row 2: id 'b\\u200bc' contains U+200B",
    ),
    "no label column": (write_csv_text("id,text\n1,a\n"), (), "unknown column of train.csv"),
    "one value": (write_csv_text(HEAD + "1,a,x\n2,b,x\n"), (), "has 1 different values"),
    "two texts": (
        write_csv_text("id,text,caption,label\n1,a,b,x\n2,b,c,y\n"),
        (),
        "several columns could be the text: text, caption; name one with --text NAME",
    ),
    "two files": (write_two, (), "the data could be any of a.csv, b.csv; give the one file to use"),
    "empty split": (
        write_csv_text("id,text,label,split\n1,a,x,train\n2,b,y,\n", "memes.csv"),
        (),
        "1 rows have no value in the column 'split'",
    ),
    "uneven votes": (
        lambda folder: made.write_lines(
            folder / "train.jsonl",
            [
                {"id": "a", "text": "x", "v": ["y", "n"], "annotators": ["p", "q"]},
                {"id": "b", "text": "x", "v": ["y", "n"], "annotators": ["p"]},
            ],
        ),
        ("--votes", "v"),
        "row 2: column 'annotators' has 1 values for 2 votes",
    ),
    "image outside": (
        write_csv_text("id,image,label\n1,../../x.png,a\n2,b.png,b\n"),
        (),
        "points outside its folder",
    ),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_damaged_data_give_one_clear_line(case: str, tmp_path: Path) -> None:
    damage, flags, said = DAMAGED[case]
    (tmp_path / "set").mkdir()
    damage(tmp_path / "set")
    words = flags or ("--label", "label")
    assert said in Shell(tmp_path).refused("data", "add", "set", *words)
    assert "set" not in read_registry()
    assert not (Shell(tmp_path).home / "datasets/set.toml").exists()


@pytest.mark.parametrize(
    "text", ["Größe 0, nice", "ça va à Zürich", "niño señor", "naïve Fußgänger"]
)
def test_letters_within_latin_words_are_not_read_as_chinese(text: str, tmp_path: Path) -> None:
    rows = f"id;text;label\n1;{text};a\n2;plain;b\n"
    made.write(tmp_path / "semi.csv", rows.encode("latin-1"))
    out = Shell(tmp_path).done("data", "add", "semi.csv")  # the column label is stated by its name
    assert "label label = label" in out
    assert open_set("semi")[0].text == text


def test_an_undecided_encoding_is_asked_for(tmp_path: Path) -> None:
    body = b"id;text;label\n1;a" + "你好".encode("gb18030") + b";a\n2;Gr\xf6\xdfe \xf6\xdfx;b\n"
    made.write(tmp_path / "both.csv", body)
    shell = Shell(tmp_path)
    told = shell.refused("data", "add", "both.csv")
    assert "could be GB 18030 or Windows-1252; name it: --encoding" in told
    assert "unknown encoding" in shell.refused("data", "add", "both.csv", "--encoding", "nothing")
    shell.done("data", "add", "both.csv", "--encoding", "gb18030")
    assert open_set("both")[0].text == "a你好"


def test_lists_beside_annotators_are_votes_and_other_lists_are_several_labels(
    tmp_path: Path,
) -> None:
    rows = {
        f"m{n}": {"text": f"t{n}", "annotators": ["a", "b"], "tags": ["x", "y", "z"][: n % 3 + 1]}
        | {"labels_task4": ["YES", ["NO", "YES"][n % 2]]}
        for n in range(6)
    }
    made.write(tmp_path / "exist.json", orjson.dumps(rows))
    shell = Shell(tmp_path)
    shell.done("data", "add", "exist.json", "--label", "labels_task4", "--label", "tags")
    first = open_set("exist")[1]
    assert [vote.values for vote in first.votes["labels_task4"]] == [("YES",), ("YES",)]
    tasks = {task.name for task in find_benchmark("exist").card.task}
    assert tasks == {"labels_task4", "labels_task4_votes", "tags"}
    shell.done("run", "exist/tags", "--model", "baseline/majority")


def test_a_damaged_config_of_the_user_breaks_no_other_command(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    made.write(shell.home / "datasets/bad.toml", "title = 3")
    no_task = """title = "x"
summary = "x"
languages = ["en"]
source = "x"
licence = "x"
citation = "x"
files.test = ["a.json"]
columns = { id = "id" }
[label.tags]
what = "tags"
several = true
"""
    made.write(shell.home / "datasets/none.toml", no_task)
    ran = shell.run("data", "list")
    assert ran.code == 0
    assert ran.err.count("is ignored: ") == 2
    assert "the dataset config defines no task" in ran.err


def test_an_image_in_a_changed_container_is_refused(tmp_path: Path) -> None:
    tars(tmp_path / "set", make_rows())
    Shell(tmp_path).done("data", "add", "set", "--label", "label")
    meme = open_set("set")[0]
    assert meme.image is not None
    path = tmp_path / "set/train-000000.tar"
    path.write_bytes(b"\0" * 512 + path.read_bytes())
    with pytest.raises(Exception, match="the archive was changed: register it again"):
        read_bytes(meme.image)


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMANTICS_HOME", str(Shell(tmp_path).home))
