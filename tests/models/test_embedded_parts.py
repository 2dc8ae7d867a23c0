"""The senses of the reader, one by one."""

from __future__ import annotations

import gc
import sqlite3
import time
import unicodedata
from collections import Counter, OrderedDict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image as Pillow

from memantics.core import errors
from memantics.core.errors import ImageError, MissingExtra, Unavailable
from memantics.core.lines import ImageReading, TextLine, order_lines
from memantics.models.embedded import encoder, ocr
from memantics.models.embedded.choices import spell
from memantics.models.embedded.encoder import SentenceEncoder, Vectors
from memantics.models.embedded.lexicon import MoodLexicon, PunReading
from memantics.models.embedded.ocr import RapidReader, RememberingOcr, open_reader
from memantics.models.embedded.reader import open_senses
from memantics.workbench.embedded import PhoneticReader
from tests.encoders import GramEncoder
from tests.models.forms import READER, draw
from tests.places import SHARED_DATA, needs_shared_data


@pytest.fixture(scope="module")
def eye() -> RapidReader:
    return RapidReader()


@pytest.fixture(scope="module")
def mind() -> SentenceEncoder:
    return SentenceEncoder()


class CountingOcr:
    def __init__(self, version: str = "1") -> None:
        self.version = version
        self.calls = 0

    def read(self, data: bytes, name: str) -> ImageReading:
        self.calls += 1
        return ImageReading((TextLine(data.decode(), (0, 0, 9, 9), 0.5),))


def test_a_drawn_caption_is_read_in_order(eye: RapidReader, tmp_path: Path) -> None:
    path = draw(tmp_path / "meme.png", "MONDAY MORNING\nNEED MORE COFFEE")
    reading = eye.read(path.read_bytes(), path.name)
    letters = "".join(c for c in reading.text.upper() if c.isalpha())
    assert letters == "MONDAYMORNINGNEEDMORECOFFEE"
    first, last = reading.lines[0], reading.lines[-1]
    assert first.box[3] <= last.box[3]
    assert 0 <= first.box[0] < first.box[2] <= 480


@pytest.mark.parametrize("size", [(1, 1), (3, 900), (300, 200)])
def test_pictures_without_words_say_nothing(
    eye: RapidReader, tmp_path: Path, size: tuple[int, int]
) -> None:
    path = tmp_path / "blank.png"
    Pillow.new("RGB", size, "white").save(path)
    assert eye.read(path.read_bytes(), path.name).text == ""


def test_hostile_images_are_refused_by_name(eye: RapidReader, tmp_path: Path) -> None:
    whole = draw(tmp_path / "whole.png", "HELLO").read_bytes()
    bomb = tmp_path / "bomb.png"
    Pillow.new("1", (12_000, 12_000)).save(bomb)
    with pytest.raises(ImageError, match=r"cut\.png: truncated"):
        eye.read(whole[: len(whole) // 2], "cut.png")
    with pytest.raises(ImageError, match=r"bomb\.png: too many pixels"):
        eye.read(bomb.read_bytes(), "bomb.png")


def test_missing_weights_are_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = draw(tmp_path / "meme.png", "HELLO")
    monkeypatch.setattr(ocr, "find_spec", lambda _name: None)
    with pytest.raises(Unavailable, match="the weights of rapidocr are missing"):
        RapidReader().read(path.read_bytes(), path.name)


BOXES = st.tuples(st.integers(0, 400), st.integers(0, 400), st.integers(5, 90), st.integers(5, 40))


@given(st.lists(BOXES, max_size=12))
def test_order_keeps_every_line(boxes: list[tuple[int, int, int, int]]) -> None:
    lines = [TextLine(str(i), (x, y, x + w, y + h), 1.0) for i, (x, y, w, h) in enumerate(boxes)]
    ordered = order_lines(lines)
    assert Counter(ordered) == Counter(lines)
    assert order_lines(reversed(lines)) == ordered


def test_a_reader_that_nobody_closes_closes_its_table(tmp_path: Path) -> None:
    """Python 3.13 warns of a connection that is let go open."""
    reader = RememberingOcr(RapidReader(), tmp_path)
    table = reader._db
    assert table is not None
    assert table.execute("SELECT count(*) FROM readings").fetchone() == (0,)
    del reader
    gc.collect()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        table.execute("SELECT 1")


def test_an_image_is_read_once_across_processes(tmp_path: Path) -> None:
    first, second = CountingOcr(), CountingOcr()
    one = RememberingOcr(first, tmp_path / "ocr")
    fresh = one.read(b"hello", "a.png")
    assert one.read(b"hello", "b.png") == fresh
    one.close()
    other = RememberingOcr(second, tmp_path / "ocr")
    assert other.read(b"hello", "a.png") == fresh
    other.close()
    assert (first.calls, second.calls) == (1, 0)


def test_another_version_reads_afresh(tmp_path: Path) -> None:
    for version in ("1", "2"):
        ocr = CountingOcr(version)
        store = RememberingOcr(ocr, tmp_path)
        store.read(b"hello", "a.png")
        store.close()
        assert ocr.calls == 1


def test_empty_readings_are_remembered_too(tmp_path: Path) -> None:
    class Blind(CountingOcr):
        def read(self, data: bytes, name: str) -> ImageReading:
            self.calls += 1
            return ImageReading()

    ocr = Blind()
    store = RememberingOcr(ocr, None)
    assert store.read(b"x", "a").text == store.read(b"x", "a").text == ""
    assert ocr.calls == 1


def test_damaged_or_unwritable_tables_cost_only_speed(tmp_path: Path) -> None:
    (tmp_path / "readings.sqlite").write_bytes(b"not a database" * 100)
    broken = RememberingOcr(CountingOcr(), tmp_path)
    assert broken.read(b"hello", "a").text == "hello"
    (tmp_path / "file").write_text("in the way")
    blocked = RememberingOcr(CountingOcr(), tmp_path / "file")
    assert blocked.read(b"hello", "a").text == "hello"


def test_a_damaged_row_is_read_again(tmp_path: Path) -> None:
    store = RememberingOcr(CountingOcr(), tmp_path)
    store.read(b"hello", "a")
    store.close()
    db = sqlite3.connect(tmp_path / "readings.sqlite")
    db.execute("UPDATE readings SET body = ?", (b"{]",))
    db.commit()
    db.close()
    ocr = CountingOcr()
    again = RememberingOcr(ocr, tmp_path)
    assert again.read(b"hello", "a").text == "hello"
    again.close()
    assert ocr.calls == 1


@pytest.mark.slow
def test_meaning_crosses_languages_and_does_not_depend_on_neighbours(
    mind: SentenceEncoder,
) -> None:
    cat, zh_cat, tax = mind.encode(["a sleeping cat", "一只睡觉的猫", "the tax law of 1987"])
    assert cat @ zh_cat > cat @ tax + 0.2
    mind._recent.clear()
    assert np.array_equal(cat, mind.encode(["a sleeping cat"])[0])


@given(st.text(max_size=80))
def test_any_text_has_a_unit_vector(text: str) -> None:
    row = GramEncoder().encode([text])[0]
    assert np.isclose(np.linalg.norm(row), 1.0)


def test_odd_texts_are_encoded(mind: SentenceEncoder) -> None:
    rows = mind.encode(["", "\ud800 half", "word " * 4000])
    assert np.allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-3)


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(errors, "find_spec", lambda _name: None)
    for opened in (SentenceEncoder, open_reader, open_senses):
        with pytest.raises(MissingExtra, match=r"memantics\[offline\]"):
            opened()


@pytest.mark.parametrize(
    ("text", "sign"),
    [
        ("I love this, what a wonderful day", 1),
        ("this is terrible and I am sad", -1),
        ("今天好开心", 1),
        ("真倒霉，气死我了", -1),
        ("不开心", -1),
        ("the table", 0),
        ("桌子", 0),
    ],
)
def test_valence(text: str, sign: int) -> None:
    assert np.sign(MoodLexicon().feel(text).valence) == sign


def test_rude_and_gloomy_words_are_whole_words() -> None:
    mood = MoodLexicon().feel("You IDIOT, shut up. I am so tired, giving up. 你这个笨蛋")
    assert mood.rude == ("idiot", "shut up", "笨蛋")
    assert mood.gloomy == ("so tired", "giving up")
    assert MoodLexicon().feel("dumbbells and trashcans, foolproof").rude == ()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pun", "plain"), [("暗中观茶", "暗中观察"), ("我不梨解", "我不理解"), ("无盐以对", "无言以对")]
)
def test_puns_gain_and_plain_captions_do_not(pun: str, plain: str) -> None:
    reading = READER.read(pun)
    assert reading.is_pun
    assert reading.intended == plain
    assert reading.homophone in plain
    assert READER.read(plain) == PunReading()


@settings(deadline=None)
@given(st.text(max_size=60))
def test_any_text_can_be_heard(text: str) -> None:
    assert not READER.read(text).homophone or READER.read(text).intended


@pytest.mark.parametrize(("chance", "is_pun"), [(0.5, True), (0.4999, False)])
def test_a_pun_is_what_is_likelier_one_than_not(
    chance: float, is_pun: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    from memantics.understanding.phonetics import detector

    judged = detector.judge_pun
    monkeypatch.setattr(
        detector, "judge_pun", lambda *given: replace(judged(*given), probability=chance)
    )
    assert PhoneticReader(GramEncoder()).read("今天吃饭").is_pun is is_pun


def test_shapes_that_ocr_reads_into_a_drawing_are_not_heard() -> None:
    """Their number differs between processors; what is said must not."""
    assert READER.read("■ ─ ■ □\n今晚又狮眠了") == READER.read("今晚又狮眠了") != PunReading()
    assert READER.read("今■晚又狮眠了") == READER.read("今晚又狮眠了")


def test_texts_without_chinese_hide_nothing() -> None:
    assert READER.read("no pun intended, 100 %") == PunReading()


@pytest.mark.slow
@needs_shared_data
def test_held_out_captions_are_told_apart_better_than_by_always_saying_pun() -> None:
    rows = orjson.loads((SHARED_DATA / "punmemecn" / "_Meta.json").read_bytes())
    held_out = {k: v["caption_1"] for k, v in rows.items() if 51 <= int(k[2:7]) <= 100}
    puns_found = {name: READER.read(caption).is_pun for name, caption in held_out.items()}
    hits = sum(puns_found[name] for name in puns_found if name.count(".") == 1)
    alarms = sum(puns_found[name] for name in puns_found if name.count(".") > 1)
    puns = sum(name.count(".") == 1 for name in puns_found)
    assert 2 * hits / (hits + alarms + puns) > 0.62  # always "pun": 0.5


@needs_shared_data
def test_real_captions_are_read(eye: RapidReader) -> None:
    folder = SHARED_DATA / "punmemecn"
    rows = orjson.loads((folder / "_Meta.json").read_bytes())
    found = wanted = 0
    for number in (52, 64, 90):
        path = folder / "images" / f"CN{number:05d}.png"
        gold = Counter(c for c in rows[path.name]["caption_1"] if unicodedata.category(c) == "Lo")
        found += sum((gold & Counter(eye.read(path.read_bytes(), path.name).text)).values())
        wanted += gold.total()
    assert found / wanted > 0.9


def test_pinyin_is_spelled_where_it_is_asked_for() -> None:
    assert spell("今晚又狮眠了!") == "jīn wǎn yòu shī mián le"
    assert spell("") == ""


def test_threads_share_one_encoder(monkeypatch: pytest.MonkeyPatch) -> None:
    """One thread drops vectors while another one looks them up."""

    class Plain:
        def encode(self, text: str) -> list[float]:
            return [float(len(text)), 1.0]

    class Slow(OrderedDict[str, Vectors]):
        def get(self, key: str, default: Any = None) -> Any:
            found = super().get(key, default)
            time.sleep(0.0005)
            return found

    monkeypatch.setattr(encoder, "_REMEMBERED", 2)
    shared = SentenceEncoder()
    monkeypatch.setattr(shared, "_model", Plain())
    monkeypatch.setattr(shared, "_recent", Slow())
    texts = ["a" * (number % 4 + 1) for number in range(400)]
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda text: float(shared.encode([text])[0, 0]), texts))
    assert found == [len(text) for text in texts]
