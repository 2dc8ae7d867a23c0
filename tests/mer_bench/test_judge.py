"""The judge task from images to tables: requests, retries, views, and the checks beside it."""

from __future__ import annotations

import asyncio
import json
import math
import re
import statistics
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from memantics.benchmarks.registry import find_tasks
from memantics.core.data import Source
from memantics.core.errors import DataError, InputError
from memantics.core.records import Image, Item, Outcome, Request, Score
from memantics.core.rundir import RunWriter, Scores, read_answers
from memantics.core.task import InvalidPolicy, LayoutTags, Services, Task, Unparsed
from memantics.evaluation.ask import ask
from memantics.evaluation.scoring import score_run
from memantics.models.baseline import open_baseline
from memantics.models.engine import AskSettings
from memantics.models.fake import FakeModel
from tests.engine.toy import facts
from tests.mer_bench.samples import bare, draw, reply, write_release
from tests.setups import make_setup, make_task

POLICY = InvalidPolicy.read("retry:6")


def no_check(captions: bool) -> LayoutTags:
    return lambda source, edited: {}  # noqa: ARG005


def task_on(source: Source | None, **options: str) -> Task:
    return look_on(source, no_check, options)


def look_on(
    source: Source | None, check: Callable[[bool], LayoutTags], options: Mapping[str, str]
) -> Task:
    setup = make_setup("mer_bench/judge", options, source, "all", POLICY, Services(layout=check))
    return make_task(setup)


def find(scores: tuple[Score, ...], key: str, by: str = "", label: str = "") -> Score:
    found = [s for s in scores if (s.key, s.by, s.label) == (key, by, label)]
    assert len(found) == 1, (key, by, label, len(found))
    return found[0]


def value(scores: tuple[Score, ...], key: str, by: str = "", label: str = "") -> float:
    found = find(scores, key, by, label).value
    assert found is not None
    return found


def judged(task: Task, rate: Callable[[Item], Mapping[str, Any] | None]) -> tuple[Score, ...]:
    """Scores of replies made from items; None: never a valid one."""
    outcomes = []
    for item in task.items():
        body = rate(item)
        parsed = None if body is None else task.parse(json.dumps(body), item.form)
        outcomes.append(Outcome(item, "unparsed" if body is None else "answered", parsed))
    return task.score(outcomes)


def run(folder: Path, task: Task, model: FakeModel) -> Scores:
    async def scenario() -> Scores:
        with RunWriter(folder, facts()) as writer:
            await ask(task, model, writer, None, AskSettings(concurrency=2))
        return await score_run(folder, task, [open_baseline("baseline/constant")])

    return asyncio.run(scenario())


def target_of(request: Request) -> str:
    return request.form.context["target_emotion"]


@pytest.fixture
def source(tmp_path: Path) -> Source:
    return write_release(tmp_path / "release", 12)


def texts_of(request: Request) -> str:
    return "\n".join(p for m in request.messages for p in m.parts if isinstance(p, str))


def test_images_stand_before_or_behind_the_text(source: Source) -> None:
    item = next(task_on(source).items())
    kinds = {}
    for placement in ("VF", "VL"):
        request = task_on(source, placement=placement).ask(item, None)
        assert [message.role for message in request.messages] == ["system", "user"]
        kinds[placement] = ["i" if isinstance(p, Image) else "t" for p in request.messages[1].parts]
        assert [p for p in request.messages[1].parts if isinstance(p, Image)] == list(item.images)
    assert kinds == {"VF": list("titit"), "VL": list("ttiti")}
    assert item.images[0].path.parent.name == "Original"
    assert item.images[1].path.parent.name == "one"


def test_reasons_first_or_last_in_schema_and_prompt(source: Source) -> None:
    item = next(task_on(source).items())
    for rationale, place in (("RF", 0), ("RL", -1)):
        request = task_on(source, rationale=rationale).ask(item, None)
        assert request.schema is not None
        parts: Any = request.schema["properties"]
        assert all(part["required"][place] == "rationale" for part in parts.values())
        template = texts_of(request)[texts_of(request).index("{\n") :]
        shape = json.loads(re.sub("<[^>]*>", "null", template))
        assert all(list(part)[place] == "rationale" for part in shape.values())
    assert request.sampling.temperature == 0.0
    assert request.sampling.max_tokens == 900


@pytest.mark.parametrize(
    ("references", "shown", "hidden"),
    [
        ("on", ["it rains", "ducks love day 1", "umbrella"], []),
        ("source", ["it rains"], ["ducks", "umbrella"]),
        ("off", [], ["it rains", "ducks", "umbrella"]),
    ],
)
def test_references_can_be_withheld(
    source: Source, references: str, shown: list[str], hidden: list[str]
) -> None:
    task = task_on(source, references=references)
    item = next(item for item in task.items() if item.id == "one/1.png")
    text = texts_of(task.ask(item, None))
    assert all(words in text for words in shown)
    assert not any(words in text or words in str(item.form.context) for words in hidden)
    assert "sad" in text
    assert "happy" in text


def test_an_empty_caption_is_not_shown_as_one(source: Source) -> None:
    task = task_on(source)
    item = next(item for item in task.items() if item.id == "one/0.png")
    assert "What the source meme says" not in texts_of(task.ask(item, None))


def test_the_complaint_is_told_at_the_next_attempt(source: Source) -> None:
    task = task_on(source)
    item = next(task.items())
    assert "it broke" in texts_of(task.ask(item, "it broke"))
    assert "cannot be used" not in texts_of(task.ask(item, None))


def test_broken_rules_are_asked_again_and_counted(source: Source, tmp_path: Path) -> None:
    """A judge that forgets the gate until told of it, and one meme that it never gets right."""
    stubborn = "ducks love day 3"

    def script(request: Request) -> str:
        target = target_of(request)
        text = texts_of(request)
        if stubborn in text or "may not pass 2" not in text:
            return json.dumps(reply("tense"))
        return json.dumps(reply(target))

    task = task_on(source, editors="one")
    scores = run(tmp_path / "run", task, FakeModel(script))
    assert scores.counts == {"answered": 11, "refused": 0, "unparsed": 1, "failed": 0}
    assert find(scores.scores, "rfs").n == 12
    by = "invalid after the last attempt"
    assert find(scores.scores, "proportion", by, "a rule still broken").note == "1 of 12 replies"
    assert find(scores.scores, "proportion", by, "no judgement").note == "0 of 12 replies"
    assert value(scores.scores, "proportion", "format compliance", "valid at once") == 0.0
    attempts = list(read_answers(tmp_path / "run"))
    assert len(attempts) == 11 * 2 + 6
    assert all("may not pass 2" in a.reason for a in attempts if a.status == "unparsed")
    assert scores.baselines[0].scores[0].value == pytest.approx(0.0, abs=1e-9)


def test_a_stubborn_judge_does_not_flatter(source: Source) -> None:
    """Misses whose gate stays broken count: clipped, lowest or not at all, and all are shown."""

    def outcomes(task: Task) -> list[Outcome]:
        found = []
        for place, item in enumerate(task.items()):
            target = item.form.context["target_emotion"]
            body = reply(target if place % 3 else "tense" if target != "tense" else "sad")
            try:
                found.append(Outcome(item, "answered", task.parse(json.dumps(body), item.form)))
            except Unparsed as error:
                worth = error.worth if place % 2 else None  # every second one was no judgement
                found.append(Outcome(item, "unparsed", worth, 6))
        return found

    def ppe(invalid: str) -> tuple[float, int]:
        task = task_on(source, after_retries=invalid)
        row = find(task.score(outcomes(task)), "ppe")
        return row.value or 0.0, row.n

    assert ppe("clip") == ppe("lowest") == (2 / 3, 24)
    assert ppe("drop") == (1.0, 16)
    default = task_on(source)
    scores = default.score(outcomes(default))
    by = "invalid replies counted as"
    shown = {label: find(scores, "rfs", by, label) for label in ("clipped", "lowest", "dropped")}
    assert [row.n for row in shown.values()] == [24, 24, 16]
    assert find(scores, "rfs").value == shown["clipped"].value
    values = [row.value or 0 for row in shown.values()]
    assert values[1] < values[0] < values[2]
    # Clipped to the gate: 2 of 5 is 0.25, where the reply said 5 and 4.
    assert value(scores, "vea") == pytest.approx((16 * 1.0 + 4 * 0.25) / 24)
    assert value(scores, "tea") == pytest.approx((16 * 0.75 + 4 * 0.25) / 24)
    marks = default.marks and default.marks(outcomes(default))
    assert marks
    assert statistics.fmean(x for x in marks["rfs"] if x is not None) == pytest.approx(values[0])
    dropped = task_on(source, after_retries="drop")
    assert dropped.marks is not None
    assert dropped.marks(outcomes(dropped))["rfs"].count(None) == 8


def test_without_invalid_replies_there_is_nothing_to_choose(source: Source) -> None:
    scores = judged(task_on(source), lambda item: reply(item.form.context["target_emotion"]))
    assert not [s for s in scores if s.by == "invalid replies counted as"]
    assert value(scores, "proportion", "invalid after the last attempt", "no judgement") == 0.0


def test_alpha_and_floor_are_options(source: Source) -> None:
    def rate(item: Item) -> dict[str, Any]:
        return reply("bored" if item.tags["editor"] == "two" else item.tags["target"]) | {
            "visual_assessment": reply("x")["visual_assessment"] | {"emotion_accuracy_1_5": 2},
            "text_assessment": reply("x")["text_assessment"] | {"emotion_accuracy_1_5": 2},
        }

    plain = judged(task_on(source), rate)
    steep = judged(task_on(source, alpha="6"), rate)
    assert value(plain, "sss") == pytest.approx(1 - math.exp(-3 * 0.75))
    assert value(steep, "sss") == pytest.approx(1 - math.exp(-6 * 0.75))
    lifted = judged(task_on(source, floor="0.1"), rate)
    missed = [value(own, "rfs", "editor", "two") for own in (plain, lifted)]
    assert missed[1] > missed[0] > 0
    for wrong in ("0", "x", "0.3"):
        with pytest.raises(InputError, match="floor"):
            task_on(source, floor=wrong)


def test_editors_are_crossed_with_categories(source: Source) -> None:
    scores = judged(task_on(source), lambda item: reply(item.form.context["target_emotion"]))
    rows = [s for s in scores if s.by == "editor × layout"]
    assert [s.label for s in rows] == [
        f"{editor} × {layout}"
        for editor in ("one", "two")
        for layout in ("MultiPanel", "SinglePanel")
    ]
    assert sum(s.n for s in rows) == 24
    alone = judged(task_on(source, editors="one"), lambda item: reply(item.tags["target"]))
    assert not [s for s in alone if s.by.startswith("editor ×")]


def test_run_means_are_the_headline_where_there_are_runs(source: Source) -> None:
    assert task_on(source).main == "rfs"
    assert {task_on(source, view=v).main for v in ("model", "category", "overall")} == {"rfs_run"}
    task = task_on(source, view="model")
    scores = judged(task, lambda item: reply(item.form.context["target_emotion"]))
    assert "run's mean ratings" in find(scores, "rfs_run").note
    assert "mean over judgements" in find(scores, "rfs").note


def test_known_judgements_give_the_expected_table(source: Source) -> None:
    """Editor one is always (4, 5, 3, 4, kept, 4, hit, 4); two misses, drifts, and is half kept."""

    def rate(item: Item) -> dict[str, Any]:
        number = int(item.id.partition("/")[2].removesuffix(".png"))
        target = item.form.context["target_emotion"]
        if item.tags["editor"] == "one":
            return reply(target)
        return reply(
            "bored",
            visual_assessment__emotion_accuracy_1_5=2,
            text_assessment__emotion_accuracy_1_5=1,
            layout_consistency__consistent=number % 2 == 0,
        )

    scores = judged(task_on(source), rate)
    one = {key: value(scores, key, "editor", "one") for key in ("tas", "cfs", "sss", "rfs")}
    assert one == pytest.approx(
        {"tas": 6 / 7, "cfs": 0.28125 ** (1 / 3), "sss": 0.8946007754, "rfs": 0.7957721768},
        abs=1e-6,
    )
    assert value(scores, "rfs_run", "editor", "one") == pytest.approx(one["rfs"], abs=1e-6)
    two = {key: value(scores, key, "editor", "two") for key in ("vea", "tea", "lc", "ppe", "tas")}
    assert two == pytest.approx({"vea": 0.25, "tea": 0, "lc": 0.5, "ppe": 0, "tas": 0}, abs=1e-9)
    # Half of the layouts kept: the two levels part ways.
    kept, lost = (
        (((0.001) * (0.001 + cfs) * (0.001 + one["sss"])) ** (1 / 3) - 0.001) / 0.999
        for cfs in (one["cfs"], 0.0)
    )
    half = (((0.001) * (0.001 + one["cfs"] / 2) * (0.001 + one["sss"])) ** (1 / 3) - 0.001) / 0.999
    assert value(scores, "rfs", "editor", "two") == pytest.approx((kept + lost) / 2, abs=1e-6)
    assert value(scores, "rfs_run", "editor", "two") == pytest.approx(half, abs=1e-6)
    assert find(scores, "rfs").n == 24
    assert value(scores, "mean", "rating 1 to 5", "vgq") == pytest.approx(4.0)
    for target in ("calm", "happy", "relaxed", "excited"):
        by = f"perceived, target {target}"
        assert value(scores, "proportion", by, target) == pytest.approx(0.5)
        assert value(scores, "proportion", by, "bored") == pytest.approx(0.5)
        assert sum(s.value or 0 for s in scores if s.by == by) == pytest.approx(1.0)
    assert value(scores, "memes", "failure filter", "kept") == 1.0


def test_marks_average_to_the_metrics(source: Source) -> None:
    task = task_on(source)
    assert task.marks is not None
    outcomes = []
    for place, item in enumerate(task.items()):
        body = bare(item.form.context["target_emotion"], 1 + place % 5)
        outcomes.append(Outcome(item, "answered", task.parse(json.dumps(body), item.form)))
    outcomes[-1] = Outcome(outcomes[-1].item, "unparsed")
    scores, marks = task.score(outcomes), task.marks(outcomes)
    assert len(marks) == 12
    for key, own in marks.items():
        assert statistics.fmean(x for x in own if x is not None) == pytest.approx(
            value(scores, key)
        )
    drawn = task_on(source, view="model")
    assert drawn.marks is not None
    assert not drawn.marks([Outcome(item, "unparsed") for item in drawn.items()])


def test_the_older_product_is_an_option(source: Source) -> None:
    def rate(item: Item) -> dict[str, Any]:
        return reply(item.form.context["target_emotion"])

    scores = judged(task_on(source, rfs="product"), rate)
    parts = [value(scores, key) for key in ("tas", "cfs", "sss")]
    assert value(scores, "rfs") == pytest.approx(parts[0] * parts[1] * parts[2])


def test_model_view_reports_mean_and_sd_over_runs(tmp_path: Path) -> None:
    source = write_release(tmp_path / "big", 120)
    task = task_on(source, view="model")

    def good(item: Item) -> bool:
        return int(item.group.removesuffix(".png")) % 3 == 0

    scores = judged(
        task,
        lambda item: bare(item.form.context["target_emotion"], 5 if good(item) else 3),
    )
    by_run: dict[int, list[float]] = {}
    for item in task.items():
        if item.tags["editor"] == "two":
            for number in item.tags["runs"].split():
                by_run.setdefault(int(number), []).append(1.0 if good(item) else 0.5)
    assert [len(own) for own in by_run.values()] == [100] * 10
    means = [statistics.fmean(own) for own in by_run.values()]
    row = find(scores, "vgq", "editor", "two")
    assert row.value == pytest.approx(statistics.fmean(means))
    sd = statistics.stdev(means)
    assert row.note == f"{100 * statistics.fmean(means):.2f} ± {100 * sd:.2f} over 10 runs"
    assert value(scores, "sd", "over runs", "vgq") == pytest.approx(sd)
    both = [value(scores, "rfs_sd", "editor", name) for name in ("one", "two")]
    assert both == pytest.approx([value(scores, "sd", "over runs", "rfs")] * 2)
    assert not [s for s in scores if s.by in ("visual_type", "layout", "polarity")]


def test_category_view_reports_each_category(tmp_path: Path) -> None:
    source = write_release(tmp_path / "big", 60)
    task = task_on(source, view="category")
    scores = judged(
        task,
        lambda item: bare(
            item.form.context["target_emotion"], 5 if item.tags["layout"] == "MultiPanel" else 1
        ),
    )
    assert value(scores, "vgq", "layout", "MultiPanel") == 1
    assert value(scores, "vgq", "layout", "SinglePanel") == 0
    assert value(scores, "rfs_sd", "layout", "SinglePanel") == pytest.approx(0)
    assert {s.label for s in scores if s.by == "visual_type"} == {
        *("Template_StylizedMeme", "Object_Animal_Dominant", "Photo_RealPerson", "Cartoon_Anime")
    }
    assert not [s for s in scores if s.by == "editor"]
    assert find(scores, "rfs").n == len(list(task.items()))


def test_invalid_answers_count_as_the_worst_or_not_at_all(source: Source) -> None:
    scores = judged(task_on(source, editors="one"), lambda _: None)
    assert value(scores, "rfs") == pytest.approx(0.0, abs=1e-9)
    assert value(scores, "mean", "rating 1 to 5", "pes") == 1.0
    assert task_on(source).score([])[0] == Score("rfs", None, 0)


def test_rules_let_pass_are_counted(source: Source) -> None:
    scores = judged(task_on(source, checks="schema"), lambda _: reply("sad"))
    by = "format compliance"
    assert value(scores, "proportion", by, "gating broken, accepted") == 1.0
    assert value(scores, "proportion", by, "scope broken, accepted") == 0.0


def test_the_failure_filter_is_reported(tmp_path: Path) -> None:
    source = write_release(tmp_path / "release", 12)
    cut = tmp_path / "release" / "data" / "EditedResults" / "two" / "4.png"
    cut.write_bytes(cut.read_bytes()[:60])
    scores = judged(task_on(source), lambda item: bare(item.form.context["target_emotion"]))
    kept = find(scores, "memes", "failure filter", "kept")
    assert kept.value == pytest.approx(11 / 12)
    assert (kept.n, kept.note) == (12, "11 memes")
    assert find(scores, "memes", "failure filter", "two truncated").note == "1 images"
    assert find(scores, "rfs").n == 22


def test_agreement_with_the_layout_checks(source: Source) -> None:
    """The checks say: odd memes lost a panel, memes from 6 on kept their captions."""

    def open_check(captions: bool) -> Callable[[Path, Path], Mapping[str, str]]:
        def check(before: Path, after: Path) -> Mapping[str, str]:
            assert before.name == after.name
            number = int(before.stem)
            tags = {"panels": f"2 {1 if number % 2 else 2}"}
            return tags | ({"captions": "0.9" if number > 5 else "0.1"} if captions else {})

        return check

    def rate(item: Item) -> dict[str, Any]:
        consistent = int(item.group.removesuffix(".png")) % 2 == 0
        return bare(item.form.context["target_emotion"], consistent=consistent)

    scores = judged(look_on(source, open_check, {"layout": "captions"}), rate)
    assert value(scores, "agreement", "layout check", "panel count") == 1.0
    assert value(scores, "kappa", "layout check", "panel count") == pytest.approx(1.0)
    assert value(scores, "kept", "layout check", "panel count") == 0.5
    assert value(scores, "agreement", "layout check", "caption regions") == 0.5
    assert value(scores, "kappa", "layout check", "caption regions") == pytest.approx(0.0)
    plain = judged(look_on(source, open_check, {}), rate)
    assert not [s for s in plain if s.label == "caption regions"]
    off = judged(look_on(source, open_check, {"layout": "off"}), rate)
    assert not [s for s in off if s.by == "layout check"]


def test_wiring_puts_the_panel_check_beside_the_judge() -> None:
    ref = find_tasks(["mer_bench"])[0]
    items = list(ref.make({}, "all", ref.benchmark.sample(), None).items())
    assert len(items) == 24
    known = {item.group: item.tags["panels"] for item in items}
    assert known["en-001.png"] == "1 1"
    assert known["en-009.png"] == "4 4"
    # What ships with edits that change no line can have no other count.
    assert all(len(set(own.split())) == 1 for own in known.values())


def test_scoring_needs_no_data(source: Source) -> None:
    items = list(task_on(source).items())
    task = task_on(None)
    outcomes = [Outcome(item, "answered", item.gold) for item in items]
    assert value(task.score(outcomes), "rfs") == pytest.approx(0.98410541)
    with pytest.raises(DataError, match="the task has no data to run on"):
        next(task.items())


@pytest.mark.parametrize("options", [{"seed": "x"}, {"max_tokens": "-1"}, {"view": "best"}])
def test_options_that_make_no_sense(source: Source, options: dict[str, str]) -> None:
    with pytest.raises(InputError) as error:
        task_on(source, **options)
    assert re.search(r"seed|max_tokens|view", str(error.value))


def test_no_token_limit(source: Source) -> None:
    task = task_on(source, max_tokens="0")
    assert task.ask(next(task.items()), None).sampling.max_tokens is None


def test_a_stray_file_is_no_editor(source: Source) -> None:
    draw(source.root / "data" / "EditedResults" / "readme.png")
    (source.root / "data" / "EditedResults" / ".ipynb_checkpoints").mkdir()
    assert {item.tags["editor"] for item in task_on(source).items()} == {"one", "two"}
