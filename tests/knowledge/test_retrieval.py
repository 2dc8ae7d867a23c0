"""What is near a meme: by meaning, by picture, with provenance, and without the meme itself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from memantics.core.errors import InputError
from memantics.core.registry import home
from memantics.core.retrieval import SAME_PICTURE, NearMeme, Passage
from memantics.core.samples import image_path
from memantics.models.embedded.encoder import Vectors
from memantics.understanding.kb import retrieve, retrieve_background, tabulate_near
from memantics.understanding.knowledge.records import Individual, Knowledge
from memantics.understanding.knowledge.retrieval import KnownMeme, Pool, open_pool, pool_knowledge
from memantics.understanding.knowledge.store import GraphStore
from memantics.understanding.vision.hashes import hash_image
from tests.encoders import GramEncoder

GRAMS = GramEncoder()


def know(meme: str, says: str, background: str) -> Knowledge:
    return Knowledge(
        meme,
        (
            Individual("TextualMaterial", "caption", says),
            Individual("BackgroundKnowledge", "fact", background),
            Individual("OverallIntent", "joke", f"jokes about {says}"),
        ),
    )


KNOWN = [
    know("1", "cats sleep all day", "cats sleep sixteen hours"),
    know("2", "tax forms again", "taxes are due in April"),
    know("3", "a cat at night", "cats hunt at night"),
]


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMANTICS_HOME", str(tmp_path / "home"))


def test_the_nearest_meme_comes_first_with_what_was_said_of_it() -> None:
    pool = pool_knowledge(KNOWN, "kb", GRAMS)
    found = pool.find_memes("my cats sleep", count=2)
    assert [one.meme for one in found] == ["1", "3"]
    assert found[0].statements[1] == Passage(
        "cats sleep sixteen hours", "kb", "1", "BackgroundKnowledge"
    )
    assert found[0].nearness is not None
    assert found[1].nearness is not None
    assert found[0].nearness > found[1].nearness
    assert pool.find_memes("my cats sleep", count=1, without={"1"})[0].meme == "3"


def test_statements_are_of_the_dimension_asked_for_and_cite_their_meme() -> None:
    pool = pool_knowledge(KNOWN, "kb", GRAMS)
    found = pool.find_passages("do cats sleep at night", count=2)
    assert {one.meme for one in found} == {"1", "3"}
    assert found[0].nearness >= found[1].nearness
    assert found[0].cited.endswith(f"[kb, meme {found[0].meme}]")
    assert all(
        passage.text.startswith("jokes")
        for passage in pool.find_passages("cat", 3, "OverallIntent")
    )
    assert pool.find_passages("  ") == ()
    assert not [each for each in pool.find_passages("cats", without={"1", "3"}) if each.meme != "2"]


def test_the_same_picture_wins_over_a_nearer_text(tmp_path: Path) -> None:
    picture = image_path("en-001")
    with Image.open(picture) as opened:
        look = hash_image(opened)
    near = look ^ ((1 << SAME_PICTURE) - 1)  # exactly as many bits as count as the same picture
    far = look ^ ((1 << (SAME_PICTURE + 1)) - 1)
    memes = [
        KnownMeme("far", "tax forms", "c", hash=far),
        KnownMeme("same", "cats", "c", hash=near, template_cluster="f"),
        KnownMeme("unseen", "tax form", "c"),
    ]
    found = Pool(memes, encoder=GRAMS).find_memes("tax forms", picture)
    assert [one.meme for one in found] == ["same", "far", "unseen"]
    assert [each.bits for each in found] == [SAME_PICTURE, SAME_PICTURE + 1, None]
    assert found[0].template_cluster == "f"
    # Without a text only pictures count.
    assert Pool(memes, encoder=GRAMS).find_memes("", picture)[0].nearness is None


def test_pools_are_read_from_stores_texts_and_tables(tmp_path: Path) -> None:
    GraphStore.create(tmp_path / "kb").add(KNOWN)
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text("Rats carry\nplague.\n\n\n\nCats hunt rats.", "utf-8")
    (tmp_path / "notes" / "b.csv").write_text("text,who\nDogs bark,me\n,nobody\n", "utf-8")
    pool = open_pool(tmp_path / "kb", tmp_path / "notes", encoder=GRAMS)
    assert sorted(meme.meme for meme in pool.memes) == ["1", "2", "3"]
    assert [passage.text for passage in pool.passages] == [
        "Rats carry plague.",
        "Cats hunt rats.",
        "Dogs bark",
    ]
    best = pool.find_passages("rats carry plague", 1)[0]
    assert (best.text, best.source, best.meme) == ("Rats carry plague.", "a.md#1", "")
    with pytest.raises(InputError, match="contains no texts to search"):
        open_pool(tmp_path / "absent")


class CountingEncoder:
    version = "counting-1"

    def __init__(self) -> None:
        self.asked = 0

    def encode(self, texts: Sequence[str]) -> Vectors:
        self.asked += len(texts)
        return GRAMS.encode(texts)


def test_vectors_are_computed_once_and_again_where_the_file_is_damaged() -> None:
    first, second, third = CountingEncoder(), CountingEncoder(), CountingEncoder()
    said = pool_knowledge(KNOWN, "kb", first).find_memes("cats")
    assert first.asked == 4  # three memes and the question
    assert pool_knowledge(KNOWN, "kb", second).find_memes("cats") == said
    assert second.asked == 1
    (kept,) = (home() / "retrieval").glob("*.npy")
    assert np.load(kept).shape[0] == 3
    kept.write_bytes(b"\x93NUMPY no more")
    assert pool_knowledge(KNOWN, "kb", third).find_memes("cats") == said
    assert third.asked == 4


@pytest.mark.slow
def test_the_public_functions_search_the_sample_pack() -> None:
    found = retrieve("work from home", known="sample", count=3)
    assert len(found) == 3
    assert all(one.source == "sample" for one in found)
    assert len(tabulate_near(found).rows) == 3
    assert retrieve_background("work from home", known="sample", count=2)[0].meme
    with pytest.raises(InputError, match="no text and no image to search for"):
        retrieve(known="sample")


def test_a_template_family_is_known_by_its_picture_and_summed_up() -> None:
    picture = image_path("en-001")
    with Image.open(picture) as opened:
        look = hash_image(opened)
    near, far = look ^ ((1 << SAME_PICTURE) - 1), look ^ ((1 << (SAME_PICTURE + 1)) - 1)

    def use(meme: str, text: str) -> tuple[Passage, ...]:
        return (Passage(text, "mine", meme, "OverallIntent"), Passage("x", "mine", meme, "Scene"))

    memes = [
        KnownMeme("a", "one", "mine", use("a", "mocks slow robots"), near, "robot"),
        KnownMeme("b", "two", "mine", use("b", "mocks robots"), None, "robot"),
        KnownMeme("c", "three", "mine", use("c", "praises cats"), look),
        KnownMeme("d", "four", "mine", use("d", "mocks taxes"), far),
    ]
    found = Pool(memes, encoder=GRAMS).find_template_cluster(picture)
    assert found is not None
    # By picture, and by the name that the collection gives them; not what is a bit further off.
    assert (found.template_cluster, found.memes, found.source) == ("robot", ("a", "b", "c"), "mine")
    assert found.use in ("mocks slow robots", "mocks robots")
    assert found.summary.startswith(
        "robot, 3 known memes on this picture in mine; usual use: mocks"
    )
    assert (
        Pool(memes, encoder=GRAMS).find_template_cluster(picture, without={"a", "b", "c"}) is None
    )
    assert Pool((), encoder=GRAMS).find_template_cluster(picture) is None
    silent = Pool([KnownMeme("e", "", "mine", (), look)], encoder=GRAMS).find_template_cluster(
        picture
    )
    assert silent is not None
    assert silent.summary == "e, 1 known meme on this picture in mine"


@pytest.mark.parametrize(
    ("nearness", "bits", "shown"),
    [
        (0.5, None, True),
        (0.49, None, False),
        (None, 8, True),
        (None, 9, False),
        (None, None, False),
    ],
)
def test_only_what_is_near_enough_is_told_of_another_meme(
    nearness: float | None, bits: int | None, shown: bool
) -> None:
    assert NearMeme("m", "", "kb", nearness, bits).shown is shown
