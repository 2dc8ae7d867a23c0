"""One rule for ids: what enters is normalised and checked, and no later step rejects it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memantics.core.errors import DataError, InputError
from memantics.core.ids import LONGEST, escape_id, find_id_fault, normalise_id, read_id
from memantics.core.memes import read_captions, read_memes
from memantics.core.queue import QueueCard, QueueItem, read_queue, write_queue
from memantics.moderation.examples import read_examples
from memantics.moderation.scale.sources import read_sources

ODD = ["a\tb", "a\nb", "a\rb", "a\u200bb", "\ufeffa", "a\x00b", "a\u2028b", "a\u202eb", "a\x85"]
# These are repaired without a message: the visible id is the same.
BLANKS = {" a": "a", "a ": "a", "\u3000a\xa0b": "a b", "a  b": "a b", "e\u0301": "é"}


@pytest.mark.parametrize("text", ODD)
def test_invisible_characters_are_named_with_the_row(text: str) -> None:
    code = next(ord(char) for char in text if char not in "ab")
    with pytest.raises(DataError, match=rf"memes\.csv: row 7: id .* contains U\+{code:04X}"):
        read_id(text, "memes.csv", 7)
    assert find_id_fault(escape_id(text)) == ""
    assert f"\\u{code:04x}" in escape_id(text)


@pytest.mark.parametrize(("text", "clean"), BLANKS.items())
def test_spaces_and_accents_are_normalised(text: str, clean: str) -> None:
    assert normalise_id(text) == read_id(text, "x", 1) == escape_id(text) == clean
    assert find_id_fault(text)
    assert not find_id_fault(clean)


def test_ids_of_millions_of_characters_are_named_by_their_ends() -> None:
    long = "x\n" * 2_000_000
    assert find_id_fault(long) == "has 4,000,000 characters, more than 300"
    found = escape_id(long)
    assert find_id_fault(found) == ""
    assert escape_id(f"{long[:900_000]}y{long[900_000:]}") != found


def test_lengths_on_both_sides_of_the_limit() -> None:
    for letter in ("x", "好"):
        assert read_id(letter * LONGEST, "x", 1) == letter * LONGEST
        with pytest.raises(DataError, match="has 301 characters, more than 300"):
            read_id(letter * (LONGEST + 1), "x", 1)
        long = [escape_id(letter * size) for size in (LONGEST + 1, LONGEST + 2, 9000)]
        assert len(set(long)) == 3
        assert {len(one) for one in long} == {LONGEST}
    with pytest.raises(DataError, match="is empty"):
        read_id("  ", "x", 1)
    assert not find_id_fault("x" * 500, 500)
    assert find_id_fault("x" * 501, 500)
    assert escape_id(" ") == "unnamed-1"


@given(st.text(max_size=400))
def test_every_name_gives_an_id_that_annotation_accepts(name: str) -> None:
    from memantics.annotation.intake import find_id_problem

    made = escape_id(name)
    assert find_id_fault(made) == ""
    assert read_id(made, "x", 1) == made
    assert find_id_problem(QueueItem(id=made, group=made)) == ""
    clean = normalise_id(name)
    if not find_id_fault(clean):
        assert find_id_problem(QueueItem(id=clean, group=clean)) == ""


@pytest.mark.parametrize("text", [*ODD, *BLANKS])
def test_queues_are_neither_written_nor_read_with_an_invalid_id(text: str, tmp_path: Path) -> None:
    card = QueueCard(title="t", workflow="review")
    for item in (QueueItem(id=text, group="g"), QueueItem(id="i", group=text)):
        with pytest.raises(DataError, match=r"items\.jsonl: row 2: (id|group) "):
            write_queue(tmp_path, card, [QueueItem(id="x", group="x"), item])
        write_queue(tmp_path, card, [QueueItem(id="x", group="x")])
        with (tmp_path / "items.jsonl").open("a") as file:
            file.write(json.dumps(item.model_dump()) + "\n")
        with pytest.raises(DataError, match=r"items\.jsonl: row 2: (id|group) "):
            read_queue(tmp_path)


@pytest.mark.parametrize("text", ODD)
def test_tables_of_labelled_memes_name_the_row(text: str, tmp_path: Path) -> None:
    table = tmp_path / "t.jsonl"
    rows = [{"id": " ok ", "text": "a", "label": 1}, {"id": text, "text": "b", "label": 0}]
    table.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(DataError, match=r"t\.jsonl: row 2: id "):
        read_examples(table)
    table.write_text(json.dumps(rows[0]) + "\n")
    assert [example.id for example in read_examples(table).examples] == ["ok"]


def test_files_with_odd_names_get_valid_ids(tmp_path: Path) -> None:
    for name in ("a\tb.png", " c.png", "d\u200b.png", "e  f.png"):
        (tmp_path / name).write_bytes(b"")
    ids = {meme.id for meme in read_memes(tmp_path)}
    assert ids == {"a\\u0009b", "c", "d\\u200b", "e f"}
    found = {ref.id for ref in read_sources([tmp_path])}
    assert found == {"a\\u0009b.png", "c.png", "d\\u200b.png", "e f.png"}


def test_listed_memes_and_captions_are_normalised(tmp_path: Path) -> None:
    lines = [{"id": " e\u0301 ", "image": "x.png"}]
    (tmp_path / "memes.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert [meme.id for meme in read_memes(tmp_path)] == ["é"]
    captions = tmp_path / "captions.jsonl"
    captions.write_text(json.dumps({"id": "e\u0301", "text_caption": "t"}) + "\n")
    assert read_captions(captions) == {"é": {"meaning": "t"}}
    captions.write_text(json.dumps({"id": "a\tb"}) + "\n")
    with pytest.raises(InputError, match=r"row 1: id 'a\\tb' contains U\+0009"):
        read_captions(captions)


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
@pytest.mark.parametrize("text", [*ODD, *BLANKS])
def test_a_row_with_an_odd_id_does_not_stop_a_screening(
    text: str, ending: str, tmp_path: Path
) -> None:
    import csv

    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [{"id": "first", "text": "hello"}, {"id": text, "text": "bye"}]
    table = tmp_path / f"t.{ending}"
    if ending == "jsonl":
        table.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif ending == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), table)
    else:
        with table.open("w", newline="") as file:
            writer = csv.DictWriter(file, ["id", "text"])
            writer.writeheader()
            writer.writerows(rows)
    first, second = read_sources([table])
    assert (first.id, first.fault) == ("first", "")
    assert find_id_fault(second.id) == ""
    if text in BLANKS:
        assert (second.id, second.fault) == (BLANKS[text], "")
    else:
        assert second.fault.startswith("the id of row ")
        assert "contains U+" in second.fault
