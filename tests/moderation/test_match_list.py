"""Match list: copies of an entry get its label; other memes on the same template do not."""

from __future__ import annotations

import hashlib
import io
import json
import random
from pathlib import Path

import pytest
from PIL import Image, ImageDraw

from memantics.core.errors import InputError, StoreError
from memantics.moderation.detect import Detector
from memantics.moderation.examples import Example
from memantics.moderation.match_index import (
    MOST_APART,
    NEAR_BITS,
    NEAR_EMBEDDING,
    MatchEntry,
    MatchList,
)
from memantics.moderation.screen import screen
from memantics.moderation.screening import ScreenSettings, read_rows
from memantics.moderation.subjects import Subject
from memantics.moderation.verdict import judge
from memantics.understanding.vision.pdq import hash_pdq
from tests.commands import Shell
from tests.scale.inline import InlineEngine

LOOK = 0x0123456789ABCDEF
KIND, CRUEL = ("今天天气真好", "我们一起去吃饭"), ("你这个笨蛋滚开", "讨厌的人都去死吧")


def make(name: str, **known: str) -> MatchEntry:
    return MatchEntry(name, "harmful", **known)


@pytest.fixture
def match_list(tmp_path: Path) -> MatchList:
    return MatchList.beside(tmp_path / "detector.zip")


def test_bytes_come_before_looks_and_looks_need_the_text(match_list: MatchList) -> None:
    sha = hashlib.sha256(b"meme").hexdigest()
    assert match_list.find(text="no memory yet") is None
    match_list.add([make("a", text="so it goes, again", sha256=sha, phash=f"{LOOK:016x}")])
    found = match_list.find(text="", sha256=sha)
    assert found is not None
    assert found.cite() == "matches a (same bytes)"
    near = f"{LOOK ^ 0b111:016x}"
    alike = match_list.find(text="SO IT GOES   again!", sha256="0" * 64, phash=near)
    assert alike is not None
    assert alike.how == "similar image, same text"
    assert match_list.find(text="quite another text", sha256="0" * 64, phash=near) is None
    assert match_list.find(text="", sha256="0" * 64, phash=near) is None
    # The words of a picture say nothing of a text without one.
    assert match_list.find(text="so it goes, again") is None


def test_one_image_with_two_captions_is_two_memes(match_list: MatchList) -> None:
    sha = hashlib.sha256(b"template").hexdigest()
    kind = MatchEntry("kind", "harmless", text="what a lovely day", sha256=sha)
    match_list.add([kind, make("cruel", text="get out of here", sha256=sha)])
    assert {entry.id for entry in match_list.walk()} == {"kind", "cruel"}
    for entry in match_list.walk():
        found = match_list.find(text=entry.text, sha256=sha)
        assert found is not None
        assert (found.entry, found.how) == (entry, "same bytes")
    other = match_list.find(text="a third caption", sha256=sha)
    assert other is not None
    assert (other.how, other.sure) == ("same bytes, another caption", False)
    # The same meme with another label replaces the entry; a text without an image is another meme.
    match_list.add([MatchEntry("new", "harmful", text="What a lovely day!", sha256=sha)])
    assert {entry.id for entry in match_list.walk()} == {"new", "cruel"}
    assert match_list.find(text="what a lovely day") is None


def test_one_caption_on_two_images_is_two_memes(match_list: MatchList) -> None:
    text, images = (
        "love the way you smell today",
        [hashlib.sha256(b).hexdigest() for b in (b"1", b"2")],
    )
    looks = [f"{LOOK:016x}", f"{LOOK ^ 0xFFFF:016x}"]
    match_list.add(
        [
            MatchEntry("rose", "harmless", text=text, sha256=images[0], phash=looks[0]),
            MatchEntry("skunk", "harmful", text=text, sha256=images[1], phash=looks[1]),
        ]
    )
    for sha, look, label in zip(images, looks, ("harmless", "harmful"), strict=True):
        for found in (
            match_list.find(text=text, sha256=sha),
            match_list.find(text=text, phash=look),
        ):
            assert found is not None
            assert (found.entry.label, found.sure) == (label, True)
    assert match_list.find(text=text, sha256="0" * 64, phash=f"{LOOK ^ 0xFFFF0000:016x}") is None


def test_all_looks_within_the_bound_are_found_and_none_beyond(match_list: MatchList) -> None:
    match_list.add([make("a", text="same", phash=f"{LOOK:016x}")])
    draw = random.Random(1)
    for bits in range(NEAR_BITS + 2):
        for _ in range(20):
            other = LOOK
            for bit in draw.sample(range(64), bits):
                other ^= 1 << bit
            found = match_list.find(text="same", sha256="0" * 64, phash=f"{other:016x}")
            assert (found is not None) == (bits <= NEAR_BITS)


def flip(look: str, bits: list[int]) -> str:
    return f"{int(look, 16) ^ sum(1 << bit for bit in bits):064x}"


@pytest.mark.parametrize("kind", ["pdq", "embedding_hash"])
def test_all_wide_hashes_within_the_bound_are_found_and_none_beyond(
    kind: str, match_list: MatchList
) -> None:
    draw = random.Random(kind)
    looks = [f"{draw.getrandbits(256):064x}" for _ in range(50)]
    match_list.add(
        MatchEntry(
            str(n), "harmful", text=f"text {n}" if kind == "embedding_hash" else "", **{kind: look}
        )
        for n, look in enumerate(looks)
    )
    most = MOST_APART if kind == "pdq" else NEAR_EMBEDDING
    for bits in (0, 1, most - 1, most, most + 1, most + 2):
        for number in (0, 17, 49):
            near = flip(looks[number], draw.sample(range(256), bits))
            if kind == "pdq":
                found = match_list.find(text="", pdq=near)
            else:
                found = match_list.find(
                    text="said otherwise", embed={"said otherwise": near}.__getitem__
                )
            assert (found is not None) == (bits <= most), bits
            if found is not None:
                assert found.entry.id == str(number)
    match_list.remove([str(n) for n in range(49)])
    assert [one.id for one in match_list.walk()] == ["49"]
    assert match_list.has_pdq == (kind == "pdq")


def test_a_listed_picture_whose_text_is_not_known_is_for_people(match_list: MatchList) -> None:
    look = "0f" * 32
    match_list.add([make("listed", pdq=look), make("read", pdq="f0" * 32, text="so it goes")])
    unsure = match_list.find(text="a caption of its own", pdq=look)
    assert unsure is not None
    assert (unsure.sure, unsure.entry.id) == (False, "listed")
    bare = match_list.find(text="", pdq=look)
    assert bare is not None
    assert bare.sure
    assert match_list.find(text="a caption of its own", pdq="f0" * 32) is None
    same = match_list.find(text="So it goes!", pdq="f0" * 32)
    assert same is not None
    assert same.how == "similar image, same text"


def test_a_list_of_pdq_meets_pictures(detector: Path, tmp_path: Path) -> None:
    image = tmp_path / "meme.png"
    draw_meme("orange").save(image)
    opened = Detector.load(detector)
    assert opened.match_list is not None
    opened.match_list.add([make("listed", pdq=hash_pdq(draw_meme("orange")))])
    assert opened.wants_pictures
    text = KIND[0] + KIND[1]
    copy, other = opened.verdicts([Example("a", text, image=image), Example("b", text, image=None)])
    assert copy.outcome == "review"
    assert copy.label == "harmless"
    assert "matches listed (similar image, text of the entry unknown)" in copy.review
    assert other.matched_id == ""
    opened.match_list.remove(["listed"])


@pytest.mark.slow
def test_a_text_that_means_the_same_follows_where_it_was_taught_so(
    detector: Path, shell: Shell
) -> None:
    text, same, other = "今天的天气真的很好", "今天天气真的很好", "我们明天一起去吃饭吧"
    words = ("match-list", "add", detector, text, "--label", "harmful")
    (name,) = [line.split()[0] for line in shell.done(*words).splitlines()]
    opened = Detector.load(detector)
    assert opened.verdicts([same])[0].matched_id == ""
    shell.done(*words, "--semantic")
    near, far = opened.verdicts([same, other])
    assert (near.matched_id, near.match_reason) == (name, "similar text embedding")
    assert near.label == "harmful"
    assert far.matched_id == ""
    shell.done("match-list", "remove", detector, name)
    assert opened.verdicts([same])[0].matched_id == ""


def test_teaching_again_replaces_and_forgetting_undoes(match_list: MatchList) -> None:
    (first,) = match_list.add([MatchEntry("", "harmful", "a slur", "so it goes")])
    other = MatchList(match_list.folder)  # another process, which has looked before
    assert other.find(text="So it\u200b goes!") is not None
    match_list.add([MatchEntry("", "harmless", "a quotation", "so it goes"), make("b", text="b")])
    found = other.find(text="so it goes")
    assert found is not None
    assert (found.entry.label, found.entry.id) == ("harmless", first.id)
    assert [one.id for one in match_list.walk()] == [first.id, "b"]
    assert [one.id for one in match_list.remove([first.id])] == [first.id]
    assert other.find(text="so it goes") is None
    with pytest.raises(InputError, match="has no entry with the id"):
        match_list.remove([first.id])
    with pytest.raises(InputError, match="needs a text or an image"):
        match_list.add([make("c")])
    match_list.remove(["b"])
    assert list(match_list.walk()) == []
    (match_list.folder / "sha.npy").write_bytes(b"no array")
    with pytest.raises(StoreError, match="cannot be read"):
        MatchList(match_list.folder).find(text="so it goes")


@pytest.fixture(scope="module")
def detector(tmp_path_factory: pytest.TempPathFactory) -> Path:
    draw = random.Random(1)
    examples = [
        Example(str(n), draw.choice(own) + draw.choice(own), label=int(own is CRUEL))
        for n in range(40)
        for own in (KIND, CRUEL)
    ]
    return Detector.train(examples, "ridge").save(tmp_path_factory.mktemp("d") / "detector.zip")


def draw_meme(colour: str) -> Image.Image:
    image = Image.new("RGB", (320, 240), colour)
    pen, draw = ImageDraw.Draw(image), random.Random(colour)
    for _ in range(9):
        x, y = draw.randrange(300), draw.randrange(200)
        pen.ellipse((x, y, x + 90, y + 50), fill=f"#{draw.randrange(1 << 24):06x}")
    return image


def test_verdicts_of_every_interface_name_the_match(detector: Path, tmp_path: Path) -> None:
    judge_of = Detector.load(detector)
    kind = KIND[0] + KIND[1]
    before, foreign = judge_of.verdicts([kind, "you are all so stupid"])
    assert (before.label, before.matched_id, foreign.status) == ("harmless", "", "not_scored")
    assert judge_of.match_list is not None
    made = judge_of.match_list.add(
        [MatchEntry("", "harmful", "a code", kind), make("x", text="you are all so stupid")]
    )
    cited = f"matches {made[0].id} (same text: a code)"
    expected = (made[0].id, "same text: a code")
    after, told = judge_of.verdicts([kind, "you are all so stupid"])
    assert (after.label, after.probability) == ("harmful", 1.0)
    assert (after.matched_id, after.match_reason) == expected
    assert cited in after.note
    assert (told.status, told.label) == ("scored", "harmful")
    assert judge_of.predict([kind])[0].name == "harmful"
    source = tmp_path / "a.jsonl"
    source.write_text(json.dumps({"id": "a", "text": kind}), encoding="utf-8")
    settings = ScreenSettings(detector=detector, readings="none")
    screen(source, settings, out=tmp_path / "out", engine=InlineEngine())
    (row,) = read_rows(tmp_path / "out")
    assert (row["label"], row["matched_id"], row["match_reason"]) == ("harmful", *expected)
    judge_of.match_list.remove([one.id for one in made])
    assert judge_of.verdicts([kind])[0].matched_id == ""
    with pytest.raises(InputError, match="other settings: match_list"):
        screen(source, settings, out=tmp_path / "out", engine=InlineEngine())


def test_a_copy_of_an_image_follows_and_a_sibling_does_not(detector: Path) -> None:
    from memantics.understanding.vision.hashes import hash_image

    def see(image: Image.Image, text: str, **options: int) -> Subject:
        body = io.BytesIO()
        image.save(body, "JPEG", **options)
        with Image.open(io.BytesIO(body.getvalue())) as again:
            look = f"{hash_image(again):016x}"
        sha = hashlib.sha256(body.getvalue()).hexdigest()
        return Subject(Example("", text), image=True, sha256=sha, phash=look)

    open_detector = Detector.load(detector)
    assert open_detector.match_list is not None
    image, text = draw_meme("orange"), KIND[0] + KIND[1]
    first = see(image, text, quality=95)
    made = open_detector.match_list.add(
        [make("", text=text, sha256=first.sha256 or "", phash=first.phash or "")]
    )
    copy, sibling, other = judge(
        open_detector,
        [
            see(image, text, quality=40),
            see(image, KIND[1] + KIND[1], quality=90),
            see(draw_meme("navy"), text, quality=95),
        ],
    )
    assert (copy.label, copy.matched_id) == ("harmful", made[0].id)
    assert (sibling.label, sibling.matched_id) == ("harmless", "")
    assert (other.label, other.matched_id) == ("harmless", "")
    open_detector.match_list.remove([made[0].id])


def test_commands_teach_list_exchange_and_forget(
    detector: Path, tmp_path: Path, shell: Shell
) -> None:
    words = ("match-list", "add", detector, CRUEL[0], "--label", "harmful", "--reason", "an insult")
    name = shell.done(*words).split()[0]
    assert "an insult" in shell.done("match-list", "list", detector)
    listed = tmp_path / "in.csv"
    listed.write_text(f"signal_type,indicator,label\nsha256,{'ab' * 32},harmful\n", "utf-8")
    assert "imported: 1" in shell.done("match-list", "import", detector, listed)
    out = tmp_path / "out.csv"
    assert "1 hashes" in shell.done("match-list", "export", detector, "--out", out)
    assert f"sha256,{'ab' * 32},harmful" in out.read_text("utf-8")
    listed.write_text("signal_type,indicator,label\npdq,ff,harmful\n", "utf-8")
    refused = shell.refused("match-list", "import", detector, listed)
    assert "line 2: 'ff' is not a valid hash of the type 'pdq'" in refused
    # Lists of PDQ as others write them; twice the same is once, and a poor hash is none.
    listed.write_text(f"hash,quality\n{'CD' * 32},50\n{'ef' * 32},49\n", "utf-8")
    for _ in range(2):
        assert "imported: 1" in shell.done("match-list", "import", detector, listed)
    shell.done("match-list", "export", detector, "--out", out)
    assert out.read_text("utf-8").count(f"pdq,{'cd' * 32},harmful") == 1
    assert "ef" * 32 not in out.read_text("utf-8")
    listed.write_text(f"hash,quality\n{'cd' * 32},good\n", "utf-8")
    refused = shell.refused("match-list", "import", detector, listed)
    assert "'good' is not a valid quality" in refused
    known = [one["id"] for one in json.loads(shell.done("match-list", "list", detector, "--json"))]
    assert name in known
    shell.done("match-list", "remove", detector, *known)
    assert json.loads(shell.done("match-list", "list", detector, "--json")) == []
