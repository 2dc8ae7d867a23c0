"""Memes unlike the training texts, template clusters, images for review, hostile images."""

from __future__ import annotations

import json
import os
import random
import re
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageDraw, ImageFont

from memantics.benchmarks.registry import SAMPLE_IMAGES
from memantics.core.errors import InputError
from memantics.core.images import decode
from memantics.core.lines import ImageReading, TextLine
from memantics.core.memes import Meme
from memantics.core.queue import read_queue
from memantics.moderation.detect import Detector, Moderator
from memantics.moderation.examples import Example
from memantics.moderation.scale.records import Ref
from memantics.moderation.screen import Screened, screen
from memantics.moderation.screening import ScreenSettings, read_rows
from memantics.moderation.storage import load_with_card, save
from memantics.moderation.training import tabulate
from memantics.moderation.unseen_ngrams import OUTSIDE_NOTE, UnseenNgrams, fit_unseen_ngrams
from memantics.understanding.analysis.records import Harm
from memantics.workbench.analyze import _open_screen
from memantics.workbench.studio import HarmFound, Studio
from memantics.workbench.studio import judge as judge_in_studio
from tests.commands import Shell
from tests.hostile.images import generate
from tests.hostile.test_images import look
from tests.scale.inline import InlineEngine

KIND = ("今天天气真好", "我们一起去吃饭", "周末又要加班了", "猫咪睡着了真可爱")
CRUEL = ("你这个笨蛋滚开", "讨厌的人都去死吧", "你们全是废物垃圾", "没人喜欢你这个丑八怪")
FONTS = Path(str(files("memantics.core.fonts")))
FAR = "硝酸甘油舌下含服扩张冠状动脉"


@pytest.fixture(scope="module")
def detector(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Trained on texts that are made of few sentences, so that others are far from them."""
    draw = random.Random(1)
    examples = [
        Example(str(n), draw.choice(own) + draw.choice(own), label=int(own is CRUEL))
        for n in range(60)
        for own in (KIND, CRUEL)
    ]
    return Detector.train(examples, "ridge").save(
        tmp_path_factory.mktemp("detector") / "detector.zip"
    )


def run(
    source: Any, out: Path, detector: Path, **settings: Any
) -> tuple[Screened, dict[str, dict[str, Any]]]:
    chosen = ScreenSettings(detector=detector, **({"readings": "none"} | settings))
    done = screen(source, chosen, out=out, engine=InlineEngine())
    return done, {row["id"]: row for row in read_rows(out)}


def write(path: Path, rows: dict[str, dict[str, Any]]) -> Path:
    lines = [json.dumps({"id": name, **row}) for name, row in rows.items()]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def test_english_is_not_harmless_to_a_detector_of_chinese(tmp_path: Path, detector: Path) -> None:
    """The same rule wherever a detector judges: screening, the service and the studio."""
    slur = "you are all stupid and I hate every one of you"
    source = write(tmp_path / "a.jsonl", {"a": {"text": slur}, "b": {"text": CRUEL[0]}})
    _, rows = run(source, tmp_path / "out", detector)
    reason = "the text is in en, a script without training texts; the detector was trained on zh"
    assert (rows["a"]["status"], rows["a"]["reason"], rows["a"]["label"]) == (
        "not_scored",
        reason,
        "review",
    )
    assert rows["b"]["status"] == "scored"
    judge = Detector.load(detector)
    served, other = Moderator(judge).judge([slur, CRUEL[0]])
    assert (served.status, served.reason, served.label) == ("not_scored", reason, None)
    assert (served.review, served.flagged) == (reason, True)
    assert other.status == "scored"
    studio = Studio(judge)
    assert judge_in_studio(studio, slur, "en") == HarmFound(
        "not_scored", judge.name, sample=False, foreign=True, reason=reason
    )
    assert judge_in_studio(studio, CRUEL[0], "zh").status == "scored"


@pytest.mark.parametrize(
    ("text", "claimed", "status", "language"),
    [
        (CRUEL[0], "zh-CN", "scored", "zh"),
        (CRUEL[0], "ZH_Hans", "scored", "zh"),
        (CRUEL[0], "Chinese", "scored", "zh"),
        (CRUEL[0], "und", "scored", "zh"),
        (CRUEL[0], "en", "scored", "zh"),
        (CRUEL[0], "ja", "scored", "ja"),
        ("我们 so happy today", "", "scored", "und"),
        ("我们 so happy today", "zh", "scored", "zh"),
        ("you are all stupid and I hate every one of you", "zh", "not_scored", "en"),
        ("1450", "zh", "scored", "und"),
    ],
)
def test_what_a_list_claims_of_a_language_does_not_outweigh_the_text(
    tmp_path: Path, detector: Path, text: str, claimed: str, status: str, language: str
) -> None:
    source = write(tmp_path / "a.jsonl", {"a": {"text": text, "language": claimed}})
    _, rows = run(source, tmp_path / "out", detector)
    assert (rows["a"]["status"], rows["a"]["language"]) == (status, language)


def test_a_text_of_which_nothing_is_known_needs_review() -> None:
    """A few training texts of rare words set no limit, and emoji and digits are no words."""
    kind, cruel = ("lovely day at home", "we eat with friends"), ("you are stupid", "i hate you")
    examples = [
        Example(f"{n}{place}", text, label=label)
        for label, texts in enumerate((kind, cruel))
        for place, text in enumerate(texts)
        for n in range(20)
    ]
    rare = [Example(f"r{n}", f"{chr(97 + n) * 4} {chr(98 + n) * 5}") for n in range(4)]
    examples += [replace(one, label=n % 2) for n, one in enumerate(rare)]
    detector = Detector.train(examples, "words")
    assert detector.unseen_ngram_rate is not None
    assert detector.unseen_ngram_rate.most == 1
    for verdict in detector.verdicts(["🐒🐒🐒", "1488", "!!!", "quux blorb"]):
        assert verdict.label == "harmful" or OUTSIDE_NOTE in verdict.review
    assert detector.verdicts("we eat at home with friends")[0].outcome == "harmless"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("你" * 20_000, ""),
        (f"{KIND[0]}.png", "the text is the name of an image file, which was not opened"),
        (f"memes/{KIND[0]}.JPEG ", "the text is the name of an image file, which was not opened"),
        (f"{KIND[0]}.png?size=2#a", "the text is the name of an image file, which was not opened"),
        (f"{KIND[0]}.png? 好", ""),
        (f"{KIND[0]}\n.png", ""),
        (f"{KIND[0]}.png 好", ""),
    ],
)
def test_texts_that_are_cut_or_name_a_file_are_not_judged(
    tmp_path: Path, detector: Path, text: str, reason: str
) -> None:
    source = write(tmp_path / "a.jsonl", {"a": {"text": text}})
    _, rows = run(source, tmp_path / "out", detector)
    assert rows["a"]["reason"] == reason or (not reason and rows["a"]["reason"] == OUTSIDE_NOTE)
    assert not reason or rows["a"]["label"] == "review"
    judge = Detector.load(detector)
    assert Moderator(judge).judge([text])[0].reason == reason
    assert judge.predict([Example("a", text)])[0].not_scored == reason


def test_a_long_text_is_scored_in_part_and_reviewed(detector: Path) -> None:
    judge = Detector.load(detector)
    whole, cut = judge.verdicts([KIND[0] * 3333 + "好好", KIND[0] * 3333 + "好好好"])
    assert (len(whole.text), whole.review) == (20_000, "")
    assert (cut.status, cut.outcome) == ("scored", "review")
    assert cut.review == "only the first 20,000 characters of the text were scored"


def test_the_samples_card_says_what_it_was_trained_on() -> None:
    assert Detector.load_sample().languages == ("en", "zh")


def test_a_text_unlike_the_training_texts_is_left_to_people(tmp_path: Path, detector: Path) -> None:
    source = write(
        tmp_path / "a.jsonl", {"near": {"text": KIND[0] + KIND[1]}, "far": {"text": FAR}}
    )
    done, rows = run(source, tmp_path / "out", detector, threshold=0.99)
    near, far = rows["near"], rows["far"]
    assert (near["label"], near["out_of_domain"]) == ("harmless", False)
    assert (far["label"], far["out_of_domain"], far["status"]) == ("review", True, "scored")
    assert near["unseen_ngram_rate"] < far["unseen_ngram_rate"] == 1.0
    assert done.labels == {"harmless": 1, "harmful": 0, "review": 1}
    assert done.review_queue is not None
    assert [item.group for item in read_queue(done.review_queue)[1]] == ["far"]
    page = (done.folder / "summary.html").read_text(encoding="utf-8")
    assert "1 meme differs from the training texts" in page


def test_at_its_threshold_a_meme_is_harmful_to_all_who_judge(
    tmp_path: Path, detector: Path
) -> None:
    made, card = load_with_card(detector)
    text = KIND[0] + KIND[1]
    (said,) = made.predict([Example("a", text)])
    source = write(tmp_path / "a.jsonl", {"a": {"text": text}})
    # Decisions are taken to six digits: what processors differ in does not count.
    above = said.probability + 2e-6
    for threshold, label in ((said.probability, "harmful"), (above, "harmless")):
        file = tmp_path / f"{label}.zip"
        save(replace(made, decision=replace(made.decision, threshold=threshold)), file, card)
        _, rows = run(source, tmp_path / label, file)
        judge = Detector.load(file)
        assert judge.threshold == threshold
        assert rows["a"]["label"] == label
        assert judge.predict([text])[0].name == label
        assert Moderator(judge).judge([text])[0].label == label


def test_it_is_said_wherever_a_detector_judges(detector: Path) -> None:
    """Those who have no queue for people say so beside their verdict."""
    judge, note = Detector.load(detector), OUTSIDE_NOTE
    near, far = Moderator(judge).judge([KIND[0] + KIND[1], FAR])
    assert (near.out_of_domain, near.note) == (False, "")
    assert (far.status, far.out_of_domain, far.note) == ("scored", True, note)
    assert not judge_in_studio(Studio(judge), KIND[0] + KIND[1], "zh").outside
    assert judge_in_studio(Studio(judge), FAR, "zh").outside
    examples = [Example("near", KIND[0]), Example("far", FAR)]
    said = judge.predict(examples)
    assert [own.out_of_domain for own in said] == [False, True]
    verdicts = [row[1] for row in tabulate(examples, said).rows]
    assert ["unlike the training texts" in own for own in verdicts] == [False, True]
    analyst = _open_screen(judge)
    unread = ImageReading()
    reasons = [analyst(Meme(own.id, Path("a.png"), own.text, "zh"), unread) for own in examples]
    assert [own.reason for own in reasons if isinstance(own, Harm)] == ["", note]


def test_an_explanation_says_where_it_explains_no_verdict(
    tmp_path: Path, detector: Path, shell: Shell
) -> None:
    texts = {"near": KIND[0] + KIND[1], "far": FAR, "foreign": "you are all so stupid"}
    found = {
        name: (
            shell.done("detector", "explain", detector, text, "--page", tmp_path / f"{name}.html"),
            (tmp_path / f"{name}.html").read_text(encoding="utf-8"),
        )
        for name, text in texts.items()
    }
    reason = "the text is in en, a script without training texts; the detector was trained on zh"
    for said, (printed, page) in found.items():
        assert (f"not scored: {reason}" in " ".join(printed.split())) == (said == "foreign")
        assert (f"not scored: {reason}" in page) == (said == "foreign")
        (verdict,) = Detector.load(detector).verdicts(texts[said])
        title = "Needs human review" if verdict.outcome == "review" else str(verdict.outcome)
        assert f"<h1>{title[0].upper()}{title[1:]}" in page
        assert printed.startswith(title.lower())
        assert ("probability of harm" in printed) == (said != "foreign")
        flat = " ".join(printed.split())
        assert (OUTSIDE_NOTE in flat) == (said == "far")
        assert (f"Note: {OUTSIDE_NOTE}." in re.sub("</?bdi>", "", page)) == (said == "far")


def test_a_sample_says_both_that_it_is_one_and_what_it_has_not_seen(detector: Path) -> None:
    judge = Detector.load(detector)
    judge.card = {**judge.card, "sample": True}
    near, far = judge.verdicts([KIND[0], FAR])
    assert near.note == judge.note != ""
    assert far.note == f"{judge.note}; {OUTSIDE_NOTE}"


def test_a_detector_that_does_not_know_its_texts_says_so(tmp_path: Path, detector: Path) -> None:
    made, card = load_with_card(detector)
    assert card["unseen_ngram_rate"] < 1
    save(
        made,
        tmp_path / "old.zip",
        {name: card[name] for name in card if name != "unseen_ngram_rate"},
    )
    assert Detector.load(tmp_path / "old.zip").unseen_ngram_rate is None
    (said,) = Detector.load(tmp_path / "old.zip").verdicts(FAR)
    assert (said.unseen_ngram_rate, said.out_of_domain, said.note) == (None, None, "")
    source = write(tmp_path / "a.jsonl", {"far": {"text": FAR}})
    _, rows = run(source, tmp_path / "out", tmp_path / "old.zip")
    assert (rows["far"]["unseen_ngram_rate"], rows["far"]["out_of_domain"]) == (None, None)
    assert rows["far"]["label"] in ("harmless", "harmful")


def test_the_bound_of_unseen_ngram_rate_belongs_inside() -> None:
    unseen_ngram_rate = UnseenNgrams({"a", "b", "ab"}, 0.4)
    assert not unseen_ngram_rate.is_outside(unseen_ngram_rate.measure("abc"))
    assert unseen_ngram_rate.is_outside(0.41)
    assert unseen_ngram_rate.measure("") == 0.0
    # Each text is measured against the others: what only itself and one more have is new to it.
    assert fit_unseen_ngrams(["甲乙"] * 3) == 0.0
    assert fit_unseen_ngrams(["甲乙"] * 2) == 1.0


def draw_pictures(folder: Path) -> None:
    """A template with two captions, another one, and a copy saved again without loss."""
    folder.mkdir(exist_ok=True)
    chance = random.Random(4)
    for name in ("a", "b"):
        image = Image.new("RGB", (320, 240), "white")
        pen = ImageDraw.Draw(image)
        for _ in range(12):
            x, y = chance.randrange(300), chance.randrange(160)
            colour = tuple(chance.randrange(256) for _ in range(3))
            pen.ellipse((x, y, x + chance.randrange(40, 160), y + 60), fill=colour)
        for caption in ("one", "two"):
            own = image.copy()
            ImageDraw.Draw(own).text((20, 215), caption, fill="black")
            own.save(folder / f"{name}-{caption}.png")


def test_pictures_that_look_alike_are_a_family(tmp_path: Path, detector: Path) -> None:
    import pyarrow.parquet as pq

    draw_pictures(tmp_path / "memes")
    names = ("a-one", "a-two", "b-one")
    rows = {name: {"image": f"memes/{name}.png", "text": CRUEL[0] + CRUEL[1]} for name in names}
    source = write(tmp_path / "a.jsonl", rows)
    done, found = run(source, tmp_path / "out", detector, threshold=0.0)
    table = pq.read_table(tmp_path / "out" / "template_clusters.parquet").to_pylist()
    template_cluster = {row["phash"]: row["template_cluster"] for row in table}
    a, again, b = (template_cluster[found[name]["phash"]] for name in names)
    assert a == again != b
    assert sum(row["flagged"] for row in table) == 3
    assert "Template clusters of flagged memes" in done.summary.read_text(encoding="utf-8")  # type: ignore[union-attr]
    assert {row["template_cluster"] for row in found.values()} == {None}
    # The same pictures as a collection: their template clusters are known, and named in the rows.
    (tmp_path / "known").mkdir()
    lines = [
        {"id": "t", "hash": found["a-one"]["phash"], "template_cluster": "drake"},
        {"id": "no hash"},
    ]
    (tmp_path / "known" / "memes.jsonl").write_text("\n".join(map(json.dumps, lines)))
    _, found = run(source, tmp_path / "named", detector, templates=tmp_path / "known")
    assert [found[name]["template_cluster"] for name in names] == ["drake", "drake", None]
    with pytest.raises(InputError, match="is not an output folder of"):
        run(source, tmp_path / "no", detector, templates=tmp_path / "memes")


@pytest.mark.slow
def test_no_queue_is_offered_where_nothing_is_for_people(
    tmp_path: Path, detector: Path, shell: Shell
) -> None:
    source = write(tmp_path / "a.jsonl", {"a": {"text": KIND[0] + KIND[1]}})
    words = ("screen", source, "--detector", detector, "--readings", "none", "--workers", "1")
    said = shell.done(*words, "--review-range", "0.999..1", "--out", tmp_path / "none")
    assert "needs human review: none" in said
    assert not (tmp_path / "none" / "review").exists()
    assert "for people" not in shell.done(*words, "--out", tmp_path / "unasked")
    # One that an earlier run wrote is emptied.
    strict = {"threshold": 0.99}
    _, before = run(write(source, {"a": {"text": FAR}}), tmp_path / "again", detector, **strict)
    assert before["a"]["label"] == "review"
    os.utime(write(source, {"a": {"text": KIND[0] + KIND[1]}}), (1, 1))
    done, after = run(source, tmp_path / "again", detector, **strict)
    assert (after["a"]["label"], done.review_queue) == ("harmless", None)
    assert read_queue(tmp_path / "again" / "review")[1] == []


def test_the_review_queue_shows_images(tmp_path: Path, detector: Path) -> None:
    draw_pictures(tmp_path / "memes")
    rows: dict[str, dict[str, Any]] = {
        "picture": {"image": "memes/a-one.png", "text": KIND[0]},
        "text": {"text": KIND[1]},
    }
    done, found = run(
        write(tmp_path / "a.jsonl", rows), tmp_path / "out", detector, review_range=(0.0, 1.0)
    )
    assert done.review_queue is not None
    one, other = read_queue(done.review_queue)[1]
    assert one.images == [f"images/{found['picture']['sha256']}.png"]
    shown = done.review_queue / one.images[0]
    assert shown.read_bytes() == (tmp_path / "memes" / "a-one.png").read_bytes()
    assert other.images == []


@pytest.mark.slow
def test_a_hundred_hostile_images_among_ten_thousand(tmp_path: Path, detector: Path) -> None:
    refused = (data for name, data in generate(13, 4800) if look(data, name) != "read")
    rows: dict[str, dict[str, Any]] = {
        str(n): {"image": f"{n}.png", "text": (KIND + CRUEL)[n % 8] + (KIND + CRUEL)[n % 7]}
        for n in range(10_000)
    }
    hostile = random.Random(2).sample(sorted(rows), 100)
    for name in rows:
        if name in hostile:
            (tmp_path / f"{name}.png").write_bytes(next(refused))
        else:
            colour = (int(name) % 256, int(name) // 256, 90)
            Image.new("RGB", (24, 24), colour).save(tmp_path / f"{name}.png")
    done, found = run(write(tmp_path / "a.jsonl", rows), tmp_path / "out", detector)
    # Their texts are scored; an image that cannot be read sends a meme to people unless it is
    # blocked for its text.
    assert done.statuses == {"scored": 10_000, "not_scored": 0, "failed": 0}
    assert sorted(name for name, row in found.items() if not row["sha256"]) == sorted(hostile)
    assert {found[name]["label"] for name in hostile} <= {"review", "harmful"}
    reviewed = [name for name in hostile if found[name]["label"] == "review"]
    assert len(reviewed) > 10
    unseen = "only the text was scored, not the image: "
    assert all(f"{unseen}image {name}" in found[name]["reason"] for name in reviewed)


def test_a_copy_saved_again_is_read_once_and_another_character_is_read(tmp_path: Path) -> None:
    import io

    from memantics.moderation.operating_points import OperatingPoint
    from memantics.moderation.screening import ScreenWork

    image = decode((SAMPLE_IMAGES / "CN90001.png").read_bytes(), "meme")
    swapped = image.copy()
    # As large as a character of small print, and drawn where the picture is plain.
    font = ImageFont.truetype(FONTS / "NotoSansSC-Regular-subset.otf", 14)
    ImageDraw.Draw(swapped).text((12, 12), "健", fill="black", font=font)
    ImageDraw.Draw(image).text((12, 12), "键", fill="black", font=font)
    bodies = []
    for own, options in ((image, {}), (image, {"compress_level": 1}), (swapped, {})):
        body = io.BytesIO()
        own.save(body, "PNG", **options)
        bodies.append(body.getvalue())
    refs = []
    for place, data in enumerate(bodies):
        path = tmp_path / f"{place}.png"
        path.write_bytes(data)
        refs.append(Ref(str(place), "file", str(path)))
    work = ScreenWork(ScreenSettings(readings="none"), OperatingPoint(0.5), "test")
    screener = work.open().__self__  # type: ignore[attr-defined]
    asked: list[str] = []

    def read(_data: bytes, name: str) -> ImageReading:
        asked.append(name)
        return ImageReading((TextLine(f"第{name}张", (40, 40, 300, 90)),))

    screener._ocr.read = read
    rows = screener.screen(refs)
    assert asked == ["0", "2"]
    assert [row["text"] for row in rows] == ["第0张", "第0张", "第2张"]
    assert rows[0]["phash"] == rows[2]["phash"]


def test_a_mixed_text_that_is_harmless_by_the_known_part_is_for_people(detector: Path) -> None:
    judge = Detector.load(detector)
    kind, cruel, alone = judge.verdicts(
        [f"{texts[0]}{texts[1]} {more}" for texts in (KIND, CRUEL) for more in ("so happy today",)]
        + [KIND[0] + KIND[1]]
    )
    reason = "part of the text is in en; the detector was trained on zh"
    assert kind.status == cruel.status == "scored"
    assert kind.outcome == "review"
    assert reason in kind.review
    assert (cruel.label, alone.outcome) == ("harmful", "harmless")


def test_a_language_is_said_once_for_all_texts(tmp_path: Path, detector: Path) -> None:
    source = write(
        tmp_path / "a.jsonl", {"a": {"text": CRUEL[0]}, "b": {"text": CRUEL[0], "language": "zh"}}
    )
    _, rows = run(source, tmp_path / "out", detector, language="ja")
    assert [rows[name]["language"] for name in ("a", "b")] == ["ja", "zh"]
    judge = Detector.load(detector)
    doubt = "the text may be in ja; the detector was trained on zh"
    assert doubt in judge.verdicts(KIND[0], "ja")[0].review
    assert doubt in judge.predict(KIND[0], "ja")[0].review
    assert doubt in Moderator(judge, language="ja").judge([KIND[0]])[0].review
    assert doubt not in Moderator(judge, language="zh").judge([KIND[0]])[0].review
    with pytest.raises(InputError, match="is not a valid language code"):
        ScreenSettings(language="chinese?")


def test_words_tell_a_text_apart_where_a_detector_learnt_words(tmp_path: Path) -> None:
    draw = random.Random(3)
    kind, cruel = (
        ("what a lovely day", "we eat at home"),
        ("you are all so stupid", "i hate you all"),
    )
    examples = [
        Example(str(n), f"{draw.choice(own)} {draw.choice(own)}", label=int(own is cruel))
        for n in range(40)
        for own in (kind, cruel)
    ]
    made = Detector.train(examples, "words")
    near, far = made.verdicts(["we eat you all", "semua baik saja kawan"], "en")
    assert (near.out_of_domain, far.out_of_domain) == (False, True)
    assert made.unseen_ngram_rate == UnseenNgrams(made.unseen_ngram_rate.known, 0.0, "phrases")  # type: ignore[union-attr]


def test_a_prediction_that_was_not_scored_has_no_label(
    tmp_path: Path, detector: Path, shell: Shell
) -> None:
    texts = (CRUEL[0] + CRUEL[1], "you are all stupid")
    said = json.loads(shell.done("detector", "predict", detector, *texts, "--json"))
    shell.done("detector", "predict", detector, *texts, "--out", tmp_path / "p.jsonl")
    lines = (tmp_path / "p.jsonl").read_text(encoding="utf-8").splitlines()
    for scored, other in (said, map(json.loads, lines)):
        assert (scored["label"], scored["not_scored"]) == (1, "")
        assert (other["label"], other["probability"], other["types"]) == (None, None, {})
        assert other["review"] == other["not_scored"] != ""
