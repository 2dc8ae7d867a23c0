"""Which items a limited run asks."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

import memantics as mm
from memantics.benchmarks.card import Card, SampleCard, TaskCard
from memantics.benchmarks.registry import DataFacts, find_tasks
from memantics.core.errors import InputError
from memantics.core.records import Form, Item
from memantics.core.task import ItemWalk, Task
from memantics.evaluation.facts import Scope
from memantics.evaluation.reports.leaderboard import make_boards
from memantics.evaluation.reports.tables import render_json, render_markdown
from memantics.evaluation.run import PosedTask, choose, pose
from memantics.evaluation.tasks import pose_task
from tests.engine.toy import toy_task


def make_item(number: int, kind: str = "", language: str = "", meme: str = "") -> Item:
    tags = {name: value for name, value in (("kind", kind), ("language", language)) if value}
    return Item(f"i{number}", meme or f"m{number}", "B", Form("Which?", ()), tags=tags)


def make_items(kinds: str) -> list[Item]:
    """An item of each letter's kind, in this order."""
    return [make_item(number, kind) for number, kind in enumerate(kinds)]


def take(items: Sequence[Item], limit: int, languages: Sequence[str] = ()) -> list[Item]:
    chosen = choose(items, limit, ["kind"], languages)
    if chosen is None:
        return list(items[:limit])
    return [item for item in items if item.id in chosen.ids]


def kinds_of(items: Sequence[Item]) -> str:
    return "".join(item.tags.get("kind", "-") for item in items)


@pytest.mark.parametrize(
    ("kinds", "limit", "found"),
    [
        ("aaaabbc", 1, "a"),
        ("aaaabbc", 2, "ab"),  # fewer than strata: those that come first in the data
        ("aaaabbc", 3, "abc"),  # as many as strata: one of each
        ("aaaabbc", 4, "aabc"),  # the next round begins with the first stratum again
        ("aaaabbc", 5, "aabbc"),
        ("aaaabbc", 6, "aaabbc"),  # a stratum without more is passed over
        ("aaaabbc", 7, "aaaabbc"),
        ("aaaabbc", 8, "aaaabbc"),  # more than there are: all
        ("aaaa", 2, "aa"),  # one stratum
        ("cba", 2, "cb"),  # strata come in the order of the data, not of their names
        ("", 3, ""),
    ],
)
def test_every_kind_gives_an_item_in_turn(kinds: str, limit: int, found: str) -> None:
    assert kinds_of(take(make_items(kinds), limit)) == found


def test_the_items_stay_in_the_order_of_the_data_and_a_larger_limit_only_adds() -> None:
    items = make_items("aabacabbcaddbacab")
    before: set[str] = set()
    for limit in range(1, len(items) + 2):
        found = take(items, limit)
        assert len(found) == min(limit, len(items))
        assert found == [item for item in items if item in found]
        now = {item.id for item in found}
        assert before <= now
        assert limit < 4 or set(kinds_of(found)) == set("abcd")
        before = now


def test_none_says_that_the_first_items_are_chosen() -> None:
    assert choose(make_items("abc"), 2, ["kind"]) is None
    assert choose(make_items("abc"), 3, ["kind"]) is None
    assert choose(make_items("aab"), 3, ["kind"]) is None
    assert choose(make_items("aab"), 4, ["kind"]) is None
    chosen = choose(make_items("aab"), 2, ["kind"])
    assert chosen is not None
    assert (chosen.ids, chosen.spread) == (frozenset({"i0", "i2"}), "kind")
    assert choose(make_items("aab"), 2, ["other"]) is None


def test_languages_alternate_before_kinds_are_through() -> None:
    items = [make_item(n, kind, "en") for n, kind in enumerate("abcd")]
    items += [make_item(n, kind, "zh") for n, kind in enumerate("xy", 4)]
    both = ("en", "zh")
    assert kinds_of(take(items, 1, both)) == "a"
    assert kinds_of(take(items, 2, both)) == "ax"
    assert kinds_of(take(items, 4, both)) == "abxy"
    assert kinds_of(take(items, 5, both)) == "abcxy"
    chosen = choose(items, 2, ["kind"], both)
    assert chosen is not None
    assert chosen.spread == "language, kind"
    # In a benchmark of one language a stray meme in another one is like the rest.
    assert kinds_of(take(items, 2, ["en"])) == "ab"
    assert choose(items[3:], 2, [], ["en"]) is None


def test_languages_take_turns_in_the_order_of_the_data() -> None:
    """Three languages, the last by name first, two kinds of each: z, a, m, then z, a, m."""
    order = [("p", "zh"), ("q", "zh"), ("r", "ar"), ("s", "ar"), ("t", "ms"), ("u", "ms")]
    items = [make_item(n, kind, language) for n, (kind, language) in enumerate(order)]
    known = ("ar", "ms", "zh")
    taken = [kinds_of(take(items, limit, known)) for limit in range(1, 7)]
    assert taken == ["p", "pr", "prt", "pqrt", "pqrst", "pqrstu"]
    # In every round the language that came first is first, wherever its next kind stands.
    late = [items[0], items[2], items[3], items[1]]
    assert [kinds_of(take(late, limit, known)) for limit in (2, 3)] == ["pr", "prq"]
    # A language without more kinds is passed over.
    few = [items[0], items[2], items[3], items[4], items[5]]
    assert [kinds_of(take(few, limit, known)) for limit in (3, 4)] == ["prt", "prst"]


def test_a_caption_tells_the_language_before_the_question_does() -> None:
    contexts = [{"text": "no"}, {"text": "", "caption": "又失眠了"}, {"source_caption": "又失眠了"}]
    contexts.append({"other": "又失眠了"})
    items = [
        Item(f"i{n}", f"m{n}", "", Form("Which?", (), context=context))
        for n, context in enumerate([{"text": "so"}, *contexts])
    ]
    assert [item.id for item in take(items, 2, ["en", "zh"])] == ["i0", "i2"]
    assert [item.id for item in take(items, 4, ["en", "zh"])] == ["i0", "i1", "i2", "i3"]


def test_the_script_tells_the_language_only_where_the_card_names_several() -> None:
    forms = [Form("Which?", (), context={"text": t}) for t in ("no", "so", "why", "又失眠了")]
    forms.append(Form("这是什么意思？", ()))  # no caption is told: the question's language
    forms.append(Form("Which?", (), context={"caption": "眠れない"}))
    items = [Item(f"i{n}", f"m{n}", "", form) for n, form in enumerate(forms)]
    assert [item.id for item in take(items, 2, ["en", "zh"])] == ["i0", "i3"]
    assert [item.id for item in take(items, 4, ["en", "zh"])] == ["i0", "i1", "i3", "i4"]
    # Japanese is none of the card's languages: it counts with those of Latin letters.
    assert [item.id for item in take(items, 6, ["en", "zh"])] == [item.id for item in items]
    assert choose(items, 2, [], ["zh"]) is None
    assert choose(items, 2, []) is None
    chosen = choose(items, 2, [], ["en", "zh"])
    assert chosen is not None
    assert chosen.spread == "language"


def test_items_of_a_meme_come_together() -> None:
    items = [make_item(n, meme=meme) for n, meme in enumerate("abcabcabc")]
    assert [item.id for item in take(items, 3)] == ["i0", "i3", "i6"]
    assert [item.id for item in take(items, 4)] == ["i0", "i1", "i3", "i6"]
    chosen = choose(items, 3, ["kind"])
    assert chosen is not None
    assert chosen.spread == "meme"
    assert choose([make_item(n, meme=meme) for n, meme in enumerate("aabbb")], 3, []) is None


def test_the_gold_answer_plays_no_part() -> None:
    items = make_items("aabbaabb")
    others = [replace(item, gold="ABCD"[n % 4]) for n, item in enumerate(items)]
    for limit in range(1, 9):
        assert choose(items, limit, ["kind"]) == choose(others, limit, ["kind"])


def test_little_is_kept_of_each_item() -> None:
    tracemalloc.start()
    chosen = choose((make_item(n, "ab"[n > 100]) for n in range(5_000)), 40, ["kind"])
    kept, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert chosen is not None
    assert kept / 5_000 < 60
    assert peak / 5_000 < 600  # 200,000 items: 120 MB


SHOW = """
from memantics.benchmarks.registry import find_tasks
from memantics.evaluation.tasks import pose_task
from memantics.evaluation.facts import Scope
for ref in find_tasks(["mquest", "mer_bench", "punmemecn"]):
    posed = pose_task(ref, {}, Scope("sample", limit=7))
    print(ref.name, posed.scope.spread, *(item.id for item in posed.task.items()))
"""


@pytest.mark.slow
def test_every_process_chooses_the_same() -> None:
    said = [
        subprocess.run(
            [sys.executable, "-c", SHOW],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert said[0] == said[1]
    assert b"mquest/qa dimension en-001" in said[0]


def limit_task(name: str, limit: int) -> PosedTask:
    (ref,) = find_tasks([name])
    return pose_task(ref, {}, Scope("sample", limit=limit))


@pytest.mark.parametrize(
    ("name", "limit", "tag", "spread", "counts"),
    [
        ("mquest/qa", 10, "dimension", "dimension", [1] * 10),
        ("mquest/qa", 20, "dimension", "dimension", [2] * 10),
        ("mer_bench/judge", 6, "editor", "editor", [3, 3]),
        ("punmemecn/chat", 6, "topic", "topic", [1] * 6),
        # The roles of a triple decide the gold answer: they are whole because they are one group.
        ("punmemecn/detection", 12, "role", "meme", [4, 4, 4]),
        ("toxicn_mm/detection", 4, "split", "", [4]),
    ],
)
def test_the_benchmarks_are_spread_over_their_kinds(
    name: str, limit: int, tag: str, spread: str, counts: list[int]
) -> None:
    posed = limit_task(name, limit)
    items = list(posed.task.items())
    assert posed.total == len(items) == limit
    assert posed.scope.spread == spread
    assert sorted(Counter(item.tags[tag] for item in items).values()) == counts
    assert (posed.first is None) == (posed.unspread is None) == (not spread)


def make_task(kinds: str) -> Task:
    return replace(toy_task(0), items=lambda: iter(make_items(kinds)))


def pose_toy(task: Task, limit: int, languages: tuple[str, ...] = ("en",)) -> PosedTask:
    own = TaskCard(name="choice", title="", main="accuracy", baselines=())
    card = Card(
        name="toy",
        title="Toy",
        summary="",
        languages=languages,  # type: ignore[arg-type]
        citation="",
        sample=SampleCard(licence="CC0-1.0"),
        task=(own,),
    )
    data = DataFacts("sample", "", 1, "", "")
    return pose((card, own), task, lambda: data, Scope(split="all", limit=limit))


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_that_leaves_nothing_is_refused(limit: int) -> None:
    with pytest.raises(InputError, match=rf"limit {limit} selects no items"):
        pose_toy(make_task("ab"), limit)
    assert pose_toy(make_task("ab"), 1).total == 1


def test_the_languages_of_the_card_count() -> None:
    forms = [Form(text, ()) for text in ("Which?", "Why?", "为什么？")]
    items = [Item(f"i{n}", f"m{n}", "", form) for n, form in enumerate(forms)]
    task = replace(toy_task(0), items=lambda: iter(items))
    both = pose_toy(task, 2, ("en", "zh"))
    assert ([item.id for item in both.task.items()], both.scope.spread) == (
        ["i0", "i2"],
        "language",
    )
    assert [item.id for item in pose_toy(task, 2).task.items()] == ["i0", "i1"]


def test_a_fed_task_keeps_its_choice() -> None:
    plain = make_task("aaab")
    fed = replace(plain, feed=lambda _: replace(plain, items=lambda: iter(make_items("aaabbb"))))
    posed = pose_toy(fed, 2)
    assert posed.task.feed is not None
    again = posed.task.feed({})
    assert [item.id for item in again.items()] == [item.id for item in posed.task.items()]
    assert kinds_of(list(again.items())) == "ab"


def test_only_chosen_items_are_made() -> None:
    made: list[str] = []

    def walk(has_ended: Callable[[str], bool]) -> Iterator[Item | str]:
        for item in make_items("aaabb"):
            if has_ended(item.id):
                yield item.id
            else:
                made.append(item.id)
                yield item

    def show(limit: int, outline: Callable[[], Iterator[Item]] | None) -> tuple[str, list[str]]:
        made.clear()
        walked = ItemWalk(walk, lambda: 5, outline)
        posed = pose_toy(replace(toy_task(0), items=walked), limit)
        made.clear()
        return kinds_of(list(posed.task.items())), made

    assert show(2, lambda: iter(make_items("aaabb"))) == ("ab", ["i0", "i3"])
    # Without an outline all are of one kind, and nothing behind the first ones is looked at.
    assert show(2, None) == ("aa", ["i0", "i1"])
    assert show(9, lambda: iter(make_items("aaabb")))[0] == "aaabb"


def test_reports_say_how_a_limited_run_was_chosen(tmp_path: Path) -> None:
    spread = mm.evaluate(
        "mquest/qa", "baseline/longest", out=tmp_path, settings=mm.EvaluationSettings(limit=6)
    )
    first = mm.evaluate(
        "mquest/qa", "baseline/longest", out=tmp_path, settings=mm.EvaluationSettings(limit=3)
    )
    runs = [spread, first]
    assert [run.facts.spread for run in runs] == ["dimension", ""]
    assert "6 items, stratified by dimension" in render_markdown(runs)
    assert "first 3 items" in render_markdown(runs)
    page = mm.report(runs, tmp_path / "page.html").read_text(encoding="utf-8")
    for words in ("6 items, stratified by dimension", "first 3 items"):
        assert f", {words}" in page  # above the table
        assert f"</bdi>, <bdi>{words}</bdi></dd>" in page  # in the provenance of its run
    assert render_json(runs).count('"spread"') == 1
    # The same number of other items is another question.
    other = replace(runs[0], facts=replace(runs[0].facts, spread=""))
    assert len(make_boards([runs[0], other])) == 2
