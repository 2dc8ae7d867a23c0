"""Draws against the SPEC, told once more in the plainest way with Python's one generator."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from memantics.benchmarks.punmemecn.examples import (
    authors_orders,
    balance,
    draw_transcribed,
    is_official,
    seeded_order,
)
from memantics.benchmarks.punmemecn.load import PunMeme, open_release
from memantics.core.data import Source
from memantics.core.errors import DataError, InputError
from tests.places import SHARED_DATA, needs_shared_data
from tests.punmemecn.release import SAMPLE, make_task, write_release

POOL = {"self": 244, "both": 59, "other": 347}


@pytest.fixture(autouse=True)
def _keep_the_generator() -> Iterator[None]:
    state = random.getstate()
    yield
    random.setstate(state)


def meme(number: int, target: str) -> PunMeme:
    name = f"CN{number:05d}"
    return PunMeme(name, name, "pun", "茶", "查", target, "neutral", (), "", None)


def official_pool() -> list[PunMeme]:
    targets = [target for target, size in POOL.items() for _ in range(size)]
    random.Random(7).shuffle(targets)
    return [meme(number, target) for number, target in enumerate(targets, 1)]


def test_balanced_set_is_the_authors() -> None:
    pool = official_pool()
    random.seed(2025)
    expected: list[str] = []
    for target in ("self", "both", "other"):
        names = [m.file for m in pool if m.target == target]
        times = 0
        while (times + 1) * len(names) <= 400:
            times += 1
            expected += [f"{name}@{times}" for name in names]
        left = 400 - times * len(names)
        expected += [f"{name}@{times + 1}" for name in random.sample(names, left)]
    expected.sort()
    random.shuffle(pool)  # the order in the file plays no part
    drawn = balance(pool)
    assert [f"{m.file}@{turn}" for m, turn in drawn] == expected
    assert Counter(m.target for m, _ in drawn) == {"self": 400, "both": 400, "other": 400}
    turns = Counter((m.target, turn) for m, turn in drawn)
    assert turns == {
        ("self", 1): 244,
        ("self", 2): 156,
        **{("both", n): 59 for n in range(1, 7)},
        ("both", 7): 46,
        ("other", 1): 347,
        ("other", 2): 53,
    }


def test_balancing_down_and_without_a_target() -> None:
    memes = [meme(n, "self") for n in range(1, 8)] + [meme(n, "other") for n in (8, 9)]
    drawn = balance(memes, 3)
    assert Counter(m.target for m, _ in drawn) == {"self": 3, "other": 3}
    assert len({(m.id, turn) for m, turn in drawn}) == 6
    assert balance([], 3) == []


def test_authors_orders_are_two_shuffles_of_one_generator() -> None:
    chats = [f"chat_{n:05d}" for n in range(1, 2009) if n != 100]
    random.seed(2025)
    random.shuffle(chats)
    random.shuffle(chats)
    expected = {}
    for chat in chats:
        options = ["correct", "text", "image", "sentiment"]
        random.shuffle(options)
        random.shuffle(options)
        expected[chat] = options
    names = ("correct", "text", "image", "sentiment")
    orders = authors_orders()
    assert len(orders) == 2008
    assert {c: [names[i] for i in orders[c]] for c in expected} == expected


def test_the_authors_example_has_its_answer_at_c() -> None:
    random.seed(2024)
    options = [0, 1, 2, 3]
    random.shuffle(options)
    random.shuffle(options)
    assert authors_orders()["chat_00100"] == tuple(options)
    assert options.index(0) == 2


def test_seeded_orders_are_stable_even_and_differ_by_seed() -> None:
    assert [seeded_order(f"chat_0000{n}", 2025) for n in (1, 2, 3)] == [
        (2, 3, 1, 0),
        (0, 3, 2, 1),
        (3, 0, 1, 2),
    ]
    ids = [f"chat_{n:05d}" for n in range(1, 2009)]
    places = Counter(seeded_order(chat, 2025).index(0) for chat in ids)
    assert all(0.22 < places[n] / len(ids) < 0.28 for n in range(4))
    moved = sum(seeded_order(chat, 2025) != seeded_order(chat, 2026) for chat in ids)
    assert moved > 0.9 * len(ids)


def test_transcribed_puns_are_the_authors() -> None:
    numbers = list(range(1, 654))
    random.seed(2025)
    random.shuffle(numbers)
    random.shuffle(numbers)
    assert draw_transcribed() == tuple(f"CN{n:05d}" for n in numbers[:200])
    assert all(map(is_official, draw_transcribed()))


def test_option_order_does_not_depend_on_what_else_is_asked(tmp_path: Path) -> None:
    whole = write_release(tmp_path, range(1, 13))
    part = Source("release", write_release(tmp_path / "part", range(1, 9)).root)
    for order in ("seeded", "authors"):
        kinds = {i.id: i.tags["kinds"] for i in make_task("chat", whole, order=order).items()}
        fewer = {i.id: i.tags["kinds"] for i in make_task("chat", part, order=order).items()}
        assert {chat: kinds[chat] for chat in fewer} == fewer
        assert len(fewer) == 8
    assert kinds["chat_00001"].split()[authors_orders()["chat_00001"].index(0)] == "correct"


def test_images_letters_and_gold_follow_the_order(tmp_path: Path) -> None:
    source = write_release(tmp_path, range(1, 7))
    for level in ("hard", "easy"):
        for item in make_task("chat", source, level=level, seed="3").items():
            options = item.form.fields[0].options
            assert [o.image for o in options] == list(item.images)
            right = options["ABCD".index(str(item.gold))].image
            assert right is not None
            assert right.path.name == f"{item.group}.png"
            assert item.tags["kinds"].split()["ABCD".index(str(item.gold))] == "correct"


@pytest.mark.parametrize(
    ("task", "option", "value"),
    [
        ("chat", "seed", "x"),
        ("chat", "seed", "0"),
        ("sentiment", "temperature", "hot"),
        ("sentiment", "temperature", "nan"),
        ("sentiment", "per_target", "-4"),
    ],
)
def test_a_bad_number_is_refused_by_name(task: str, option: str, value: str) -> None:
    with pytest.raises(InputError, match=option):
        list(make_task(task, SAMPLE, **{option: value}).items())


def test_evaluation_sizes_leave_the_examples_out(tmp_path: Path) -> None:
    labels = ("self-positive", "both-neutral", "other-negative")
    source = write_release(tmp_path, [*range(30, 36), 601, 602, 603, 604], labels)

    def ids(task: str, **options: str) -> set[str]:
        return {item.id for item in make_task(task, source, **options).items()}

    found = ids("detection")
    assert len(found) == 27
    assert not any(name.startswith("CN00601") for name in found)
    assert len(ids("detection", examples="include")) == 30
    plain = ids("sentiment", set="plain")
    assert len(plain) == 7
    assert not plain & {"CN00601", "CN00603", "CN00604"}
    assert len(ids("sentiment", set="plain", examples="include")) == 10
    assert len(ids("sentiment")) == 1200
    assert len(ids("sentiment", per_target="5")) == 15
    assert "chat_00100" not in ids("chat")
    assert len(ids("chat")) == 9
    assert "chat_00100" in ids("chat", examples="include")


def test_what_lacks_its_image_is_left_out_before_balancing(tmp_path: Path) -> None:
    source = write_release(tmp_path, range(1, 9), ("self-positive", "other-negative"))
    for number in (1, 2, 3):
        (tmp_path / f"CN{number:05d}.png").unlink()
    items = list(make_task("sentiment", source, images="present", per_target="6").items())
    assert Counter(item.tags["target"] for item in items) == {"self": 6, "other": 6}
    with pytest.raises(DataError, match=r"meme CN00001: its image.*images=present"):
        list(make_task("sentiment", source).items())
    chats = make_task("chat", source, images="present").items()
    assert [chat.id for chat in chats] == ["chat_00004", "chat_00005"]


def test_the_sample_is_balanced_to_its_own_size() -> None:
    items = list(make_task("sentiment").items())
    counts = Counter(item.tags["target"] for item in items)
    assert len(set(counts.values())) == 1
    assert counts["self"] < 100


@needs_shared_data
def test_sizes_on_the_shared_part() -> None:
    source = Source("release", SHARED_DATA / "punmemecn")
    release = open_release(source)
    memes = release.memes
    drawn = balance(m for m in memes if m.is_pun)
    assert len(drawn) == 1200
    assert {chat.id for chat in release.hard} <= authors_orders().keys()
    pinyin = list(make_task("pinyin", source).items())
    assert {i.id for i in pinyin} == set(draw_transcribed()) & {m.id for m in memes}
