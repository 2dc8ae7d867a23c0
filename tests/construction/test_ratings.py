"""A rated sample of questions: its queue, the proportion of good ones, and paired comparisons."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import JsonValue

from memantics.construction.publish.datacard import describe_ratings, describe_roles
from memantics.construction.publish.publish import UNRATED, publish
from memantics.construction.questions.chain import pair_subjects
from memantics.construction.questions.records import (
    DraftQuestion,
    QuestionOption,
    RejectedQuestion,
)
from memantics.construction.questions.report import (
    REJECTED,
    Roles,
    read_questions,
    write_questions,
    write_review,
)
from memantics.construction.ratings import (
    RATINGS,
    RUBRIC,
    compare_questions,
    draw_sample,
    rate_questions,
    summarise_ratings,
)
from memantics.core.errors import InputError
from memantics.core.files import write_lines
from memantics.core.meaning import Dimension
from memantics.core.memes import MEMES, read_memes
from memantics.core.queue import (
    AggregatedAnnotation,
    IndividualAnnotation,
    read_annotations,
    read_queue,
    read_review,
    write_annotations,
)
from memantics.core.samples import image_path, read_samples
from memantics.metrics.interval import clustered_wilson
from memantics.understanding.knowledge.records import KNOWLEDGE, dump_knowledge, read_knowledge
from tests.commands import Shell
from tests.construction.questions.scripts import sample_subjects

ASKED: tuple[Dimension, ...] = ("Scene", "Emotion", "OverallIntent")
NAMES = [meme.id for meme in read_samples() if meme.language == "en"][:6]
ROLES = Roles("openai/w", "openai/c", "openai/c")


def ask(meme: str, dimension: Dimension) -> DraftQuestion:
    focus = sample_subjects()[meme].knowledge.of(dimension)[0].key
    options = (
        QuestionOption("It mocks late trains", "correct"),
        QuestionOption("It praises early birds", "plausible"),
        QuestionOption("It warns of long roads", "plausible"),
        QuestionOption("None of the others", "none"),
    )
    name = f"{meme}/{dimension}/1"
    return DraftQuestion(
        name, meme, dimension, "What is meant?", options, 0, "So.", (focus,), focus, 0
    )


def make_build(folder: Path, left_out: frozenset[str] = frozenset()) -> Path:
    """A build of three questions about each of six memes."""
    (folder / "images").mkdir(parents=True)
    lines, known = [], b""
    for name in NAMES:
        shutil.copy(image_path(name), folder / "images")
        lines.append(f'{{"id": "{name}", "image": "images/{image_path(name).name}"}}\n')
        known += dump_knowledge(sample_subjects()[name].knowledge)
    (folder / MEMES).write_text("".join(lines))
    (folder / KNOWLEDGE).write_bytes(known)
    questions = [ask(name, dimension) for name in NAMES for dimension in ASKED]
    questions = [question for question in questions if question.id not in left_out]
    write_questions(folder, questions, ())
    subjects = pair_subjects(read_memes(folder), list(read_knowledge(folder)))
    write_review(folder, questions, subjects, "en", roles=ROLES)
    return folder


def rate(queue: Path, judge: Callable[[str, str], set[str]]) -> None:
    """Two raters; ``judge`` gives the points of the rubric that fail."""
    _, items = read_queue(queue)
    found = []
    for item in items:
        votes = []
        for rater in ("r1", "r2"):
            failed = judge(rater, item.id)
            values: dict[str, JsonValue] = {name: name not in failed for name in RUBRIC}
            votes.append(IndividualAnnotation(annotator=rater, stage="rate", values=values))
        found.append(
            AggregatedAnnotation(
                item=item.id,
                group=item.group,
                workflow="rate-questions",
                kept=True,
                values=votes[0].values,
                annotations=votes,
            )
        )
    write_annotations(queue / "annotations.jsonl", found)


def split(rater: str, item: str) -> set[str]:
    """Scenes need no understanding; the second rater alone doubts one key."""
    if "/Scene/" in item:
        return {"needs_understanding"}
    return {"key_right"} if rater == "r2" and item == f"{NAMES[0]}/Emotion/1" else set()


def test_a_sample_is_even_over_dimensions_and_the_same_for_one_seed() -> None:
    questions = [ask(name, dimension) for name in NAMES for dimension in ASKED]
    drawn = draw_sample(questions, 9, 0)
    assert Counter(one.dimension for one in drawn) == dict.fromkeys(ASKED, 3)
    assert drawn == draw_sample(questions, 9, 0) != draw_sample(questions, 9, 1)
    assert draw_sample(questions, 100, 0) == questions


def test_the_queue_shows_the_marked_answer_and_hides_the_dimension(tmp_path: Path) -> None:
    build = make_build(tmp_path / "b")
    made = rate_questions(build, size=7)
    card, items = read_queue(made.queue)
    assert (made.items, made.questions, len(items)) == (7, 18, 7)
    assert card.workflow == "rate-questions"
    assert {shown.label for shown in items[0].shown} >= {"Question", "Options", "Answer"}
    assert all((made.queue / image).is_file() for item in items for image in item.images)
    assert not any("Scene" in str(shown.value) for item in items for shown in item.shown)


def test_good_is_what_every_rater_calls_good_on_every_point(tmp_path: Path) -> None:
    build = make_build(tmp_path / "b")
    rate(rate_questions(build).queue, split)
    found = summarise_ratings(build)
    assert [(row.name, row.good, row.n) for row in found.rows] == [
        ("all", 11, 18),
        ("Emotion", 5, 6),
        ("OverallIntent", 6, 6),
        ("Scene", 0, 6),
    ]
    overall = found.rows[0]
    hits = [d != "Scene" and (m, d) != (NAMES[0], "Emotion") for m in NAMES for d in ASKED]
    assert (overall.low, overall.high) == clustered_wilson(hits, [m for m in NAMES for _ in ASKED])
    assert overall.agreement == pytest.approx(17 / 18)
    assert found.faults == {"needs_understanding": 6, "key_right": 1}
    section = describe_ratings(found)
    assert ("good, all", "11 of 18 (61 %, 95 % interval 39–80 %)") in section.rows or any(
        name == "good, all" and value.startswith("11 of 18 (61 %") for name, value in section.rows
    )
    with pytest.raises(InputError, match="already annotated"):
        rate_questions(build)


def test_nobody_rated_is_an_error_with_the_next_step(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no ratings") as caught:
        summarise_ratings(make_build(tmp_path / "b"))
    assert "build rate" in str(caught.value.hint)


def test_two_versions_are_compared_by_planned_question(tmp_path: Path) -> None:
    lost = f"{NAMES[0]}/Emotion/1"
    first = make_build(tmp_path / "one")
    second = make_build(tmp_path / "two", frozenset({lost}))
    rate(rate_questions(first).queue, split)
    rate(rate_questions(second).queue, lambda *_: set())
    found = compare_questions(first, second)
    assert (found.memes, found.questions) == (6, 18)
    assert (found.kept_first, found.kept_second) == (18, 17)
    assert (found.good_first, found.good_second) == (11, 17)
    assert found.test is not None
    assert found.test.difference == pytest.approx(6 / 18)
    assert found.test.low < found.test.difference < found.test.high
    assert next(found.lines()).startswith("difference +33.3%")


def test_a_meme_that_one_version_lost_counts_against_it(tmp_path: Path) -> None:
    lost = frozenset(f"{NAMES[0]}/{dimension}/1" for dimension in ASKED)
    first = make_build(tmp_path / "one")
    second = make_build(tmp_path / "two", lost)
    gone = [RejectedQuestion(name, NAMES[0], "Scene", "trial", "solved") for name in sorted(lost)]
    both = RejectedQuestion(f"{NAMES[1]}/Toxicity/1", NAMES[1], "Toxicity", "trial", "solved")
    write_lines(first / REJECTED, [both])
    write_lines(second / REJECTED, [*gone, both])
    for build in (first, second):
        rate(rate_questions(build).queue, lambda *_: set())
    found = compare_questions(first, second)
    # The question that both rejected was planned, too, and is good in neither.
    assert (found.memes, found.questions, found.unrated) == (6, 19, 0)
    assert (found.good_first, found.good_second) == (18, 15)
    assert found.test is not None
    assert found.test.difference == pytest.approx(-3 / 19)


def test_what_is_not_rated_is_said(tmp_path: Path) -> None:
    first, second = make_build(tmp_path / "one"), make_build(tmp_path / "two")
    rate(rate_questions(first).queue, split)
    rate(rate_questions(second, size=6).queue, split)
    found = compare_questions(first, second)
    assert (found.questions, found.unrated) == (6, 12)
    assert next(found.lines()).startswith("left out: 12 kept but not rated")
    confirm(first)
    with pytest.raises(InputError, match="workflow validate, not of ratings"):
        summarise_ratings(first / "queue")


def test_ratings_of_questions_that_changed_do_not_count(tmp_path: Path) -> None:
    build = make_build(tmp_path / "b")
    rate(rate_questions(build).queue, lambda *_: set())
    asked = list(read_questions(build))
    write_questions(build, [replace(asked[0], question="What is new?"), *asked[1:]], ())
    ratings = summarise_ratings(build)
    assert (ratings.rows[0].good, ratings.rows[0].n, ratings.changed) == (17, 17, 1)
    assert list(ratings.warnings()) == ["1 rated questions changed since and do not count"]
    write_questions(build, [replace(one, question="What is new?") for one in asked], ())
    with pytest.raises(InputError, match="all 18 rated questions changed since"):
        summarise_ratings(build)


def test_a_sample_that_few_rated_is_a_warning_on_the_card(tmp_path: Path) -> None:
    build = make_build(tmp_path / "b")
    queue = rate_questions(build).queue
    rate(queue, split)
    found = list(read_annotations(queue / "annotations.jsonl"))
    alone = [one.model_copy(update={"annotations": one.annotations[:1]}) for one in found[:5]]
    write_annotations(queue / "annotations.jsonl", [*alone, *found[5:12]])
    ratings = summarise_ratings(build)
    told = [
        "6 of 18 questions of the sample are not rated",
        "one person alone rated 5 of 12 questions",
    ]
    assert list(ratings.warnings()) == told
    assert describe_ratings(ratings).lines[1:] == tuple(f"{one.capitalize()}." for one in told)


def confirm(build: Path) -> None:
    _, items = read_queue(build / "queue")
    yes: dict[str, JsonValue] = {"question": "yes", "answer": "yes"}
    write_annotations(
        build / "queue" / "annotations.jsonl",
        [
            AggregatedAnnotation(
                item=item.id, group=item.group, workflow="validate", kept=True, values=yes
            )
            for item in items
        ],
    )


def test_the_card_says_which_models_judged(tmp_path: Path) -> None:
    build = make_build(tmp_path / "b")
    confirm(build)
    section = describe_roles(read_review(build / "queue", None))
    assert ("judged with the meme by openai/c", "18 of 18") in section.rows
    assert ("answered without it by openai/c", "18 of 18") in section.rows
    assert section.lines == ("One model had several of these roles for 18 of 18 questions.",)


@pytest.mark.slow
def test_publish_warns_without_ratings_and_shows_them_on_card_and_readme(shell: Shell) -> None:
    build = make_build(shell.folder / "b")
    confirm(build)
    words = {"licence": "CC0-1.0", "out": shell.folder / "published"}
    first = publish(build, name="unrated", **words)  # type: ignore[arg-type]
    assert first.warnings == (UNRATED,)
    assert f"warning: {UNRATED}" in list(first.lines())
    assert "Nobody rated a sample" in (first.folder / "README.md").read_text()
    rate(rate_questions(build).queue, split)
    second = publish(build, name="rated", **words)  # type: ignore[arg-type]
    assert second.warnings == ()
    told = "Questions that raters call good: 11 of 18 (61 %, 95 % interval"
    for name in ("README.md", "card.toml"):
        assert told in (second.folder / name).read_text()
    readme = (second.folder / "README.md").read_text()
    assert "| good, Scene | 0 of 6 (0 %" in readme
    assert "| failed: needs understanding | 6 |" in readme
    assert "| agreement of raters | 94 % |" in readme
    assert "## Roles of models" in readme
    # Its data are in its folder, so it is added by name or without.
    assert "memantics run rated" in shell.done("data", "add", "rated", second.folder)
    assert "memantics run rated" in shell.done("data", "add", second.folder)
    assert (build / RATINGS / "annotations.jsonl").is_file()


def test_the_commands_print_the_figures(shell: Shell) -> None:
    build = make_build(shell.folder / "b")
    assert "18 of 18 questions" in shell.done("build", "rate", build)
    assert "no ratings" in shell.refused("build", "ratings", build)
    rate(build / RATINGS, split)
    said = shell.done("build", "ratings", build)
    assert "11 of 18" in said
    assert "needs understanding 6" in said
    other = shutil.copytree(build, shell.folder / "c")
    assert "18 planned questions about 6 memes" in shell.done("build", "compare", build, other)
