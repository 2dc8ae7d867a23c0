"""Answers of other tools become runs whose figures equal a computation by hand."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import orjson
import pytest

import memantics as mm
from memantics.core.records import Item
from memantics.core.rundir import last_answers, read_facts, read_items
from memantics.evaluation.answers import TaskChoiceSettings, pose_one
from memantics.evaluation.reports.tables import render_markdown
from tests.commands import Shell
from tests.exchange.replies import plan_reply

# Inspect calls its retry library in a way that library has deprecated.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
FIXTURES = Path(__file__).parent / "fixtures"
TASK = "mquest/qa"
# Of 24 items every third is wrong: 8. Of the other 16, the sixth is a call that failed.
RIGHT = 15


def items(limit: int = 24) -> list[Item]:
    """The first items, which other tools take where they are limited."""
    return list(islice(pose_one(TASK, TaskChoiceSettings()).task.items(), limit))


def bring(path: Path, out: Path, **more: object) -> mm.Imported:
    settings = mm.ImportSettings(limit=24, out=out, **more)  # type: ignore[arg-type]
    return mm.import_answers(path, task=TASK, model="some-vlm", settings=settings)


@pytest.mark.parametrize(
    ("pattern", "kind", "scored", "counts"),
    [
        ("20*_samples_*.jsonl", "lmms-eval", 24, (22, 0, 2, 0)),
        ("samples_*.jsonl", "lmms-eval", 24, (22, 0, 2, 0)),
        ("*.xlsx", "vlmevalkit", 23, (22, 0, 1, 1)),
        ("*.tsv", "vlmevalkit", 23, (22, 0, 1, 1)),
        ("*.json", "vlmevalkit", 23, (22, 0, 1, 1)),
    ],
)
def test_files_that_the_tools_wrote_give_the_metrics_of_a_hand_computation(
    pattern: str, kind: str, scored: int, counts: Sequence[int], tmp_path: Path
) -> None:
    (path,) = FIXTURES.glob(pattern)
    done = bring(path, tmp_path)
    assert (done.format, done.rows, done.answers, done.skipped) == (kind, 24, 24, ())
    accuracy = done.run.scores["accuracy"]
    assert accuracy.value == pytest.approx(RIGHT / scored)
    assert accuracy.n == scored
    assert tuple(done.run.counts.values()) == counts
    # The same figure stands in the table, which says where the answers come from.
    table = render_markdown([done.run], {})
    assert f"some-vlm (imported from {kind})" in table
    assert f"{RIGHT / scored:.3f}" in table
    source = read_facts(done.run.folder).imported
    assert (source["format"], source["file"], source["rows"]) == (kind, path.name, 24)


@pytest.mark.slow
def test_a_log_that_inspect_wrote(tmp_path: Path) -> None:
    # Inspect imports this in the middle of an evaluation, where older Pythons stumble over it.
    import acp  # noqa: F401
    from inspect_ai import Task, eval  # noqa: A004
    from inspect_ai.dataset import Sample
    from inspect_ai.log import read_eval_log, write_eval_log
    from inspect_ai.model import ModelOutput, ModelUsage, get_model

    asked = items()
    said = [plan_reply(n, str(item.gold)) for n, item in enumerate(asked)]
    outputs = [ModelOutput.from_content("mockllm/model", text) for text in said]
    outputs[2] = ModelOutput.from_content("mockllm/model", "no", stop_reason="content_filter")
    for output in outputs:  # else it would count tokens with a table it has to download
        output.usage = ModelUsage(input_tokens=7, output_tokens=3, total_tokens=10)
    samples = [Sample(id=item.id, input=item.form.question) for item in asked]
    (log,) = eval(
        Task(dataset=samples),
        model=get_model("mockllm/model", custom_outputs=outputs),
        log_dir=str(tmp_path / "logs"),
        display="none",
        max_samples=1,
    )
    plain = tmp_path / "log.json"
    write_eval_log(read_eval_log(log.location), str(plain))
    for path in (Path(log.location.removeprefix("file://")), plain):
        done = bring(path, tmp_path / path.suffix)
        assert done.format == "inspect"
        # Item 2 was right and is now a refusal, which counts as wrong.
        assert done.run.scores["accuracy"].value == pytest.approx((RIGHT - 1) / 24)
        assert tuple(done.run.counts.values()) == (21, 1, 2, 0)
        assert done.run.results.usage.tokens_in == 24 * 7


@pytest.mark.slow
def test_epochs_of_inspect_are_repeats_and_their_reasoning_can_be_audited(tmp_path: Path) -> None:
    import acp  # noqa: F401
    from inspect_ai import Task, eval  # noqa: A004
    from inspect_ai.dataset import Sample
    from inspect_ai.model import (
        ChatMessageAssistant,
        ContentReasoning,
        ContentText,
        ModelOutput,
        ModelUsage,
        get_model,
    )

    asked = items(4)
    gold = {item.id: str(item.gold) for item in asked}
    outputs = []
    for number in range(12):
        chain = ContentReasoning(reasoning=f"Hm. So the answer is {'ABC'[number % 3]}.")
        said = ContentText(text=f"Answer: {'ABCD'[number % 4]}")
        output = ModelOutput.from_message(ChatMessageAssistant(content=[chain, said]))
        output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
        outputs.append(output)
    (log,) = eval(
        Task(dataset=[Sample(id=item.id, input=item.form.question) for item in asked]),
        model=get_model("mockllm/model", custom_outputs=outputs),
        log_dir=str(tmp_path / "logs"),
        display="none",
        max_samples=1,
        epochs=3,
    )
    assert log.samples is not None
    right: dict[int, list[bool]] = {1: [], 2: [], 3: []}
    for sample in log.samples:
        right[sample.epoch].append(sample.output.completion[-1] == gold[str(sample.id)])
    settings = mm.ImportSettings(limit=4, out=tmp_path / "runs")
    path = Path(log.location.removeprefix("file://"))
    done = mm.import_answers(path, task=TASK, model="some-vlm", settings=settings)
    runs = [done.run, *done.repeats]
    assert (done.rows, done.answers, done.skipped, done.without_answer) == (12, 12, (), 0)
    assert [run.facts.repeat for run in runs] == [0, 1, 2]
    assert [run.scores["accuracy"].value for run in runs] == pytest.approx(
        [sum(own) / 4 for own in right.values()]
    )
    found = {(s.key, s.label): s.value for s in done.run.results.scores if s.by == "repeats"}
    everything = [hit for own in right.values() for hit in own]
    assert found["accuracy", "mean of 3"] == pytest.approx(sum(everything) / 12)
    assert found["right", "pass@1"] == pytest.approx(sum(everything) / 12)
    # The chains decide for A, B or C in turn, the answers for A to D.
    chains = {
        (sample.epoch, str(sample.id)): sample.output.choices[0].message.content
        for sample in log.samples
    }
    contrary = sum(
        not isinstance(parts, str) and parts[0].reasoning[-2] != parts[1].text[-1]  # type: ignore[union-attr]
        for (epoch, _), parts in chains.items()
        if epoch == 2
    )
    audit = mm.audit_reasoning(runs[1])
    assert (audit.chains, audit.decided, len(audit.contrary)) == (4, 4, contrary)
    assert contrary > 0
    page = mm.report(runs, tmp_path / "page.md").read_text(encoding="utf-8")
    assert "repeat 3" in page


def test_a_chain_that_a_tool_left_in_the_text_is_parted_from_the_answer(tmp_path: Path) -> None:
    asked = items(2)
    path = tmp_path / "said.jsonl"
    said = ["<think>B? So the answer is A.</think>Answer: B", "Answer: C"]
    rows = [{"id": item.id, "output": text} for item, text in zip(asked, said, strict=True)]
    path.write_bytes(b"\n".join(map(orjson.dumps, rows)))
    settings = mm.ImportSettings(limit=2, out=tmp_path / "runs")
    done = mm.import_answers(path, task=TASK, model="thinker", settings=settings)
    answers = last_answers(done.run.folder)
    assert [answers[item.id].reply.text for item in asked] == ["Answer: B", "Answer: C"]
    audit = mm.audit_reasoning(done.run)
    assert (audit.answers, audit.chains, audit.contrary) == (2, 1, (asked[0].id,))


@pytest.mark.parametrize(
    ("answered", "by_place", "spread"),
    [
        ("first", False, ""),  # another tool, limited to the first eight
        ("chosen", False, "dimension"),  # those that we choose and export
        ("every", False, "dimension"),  # all fit: the same items as in our runs
        ("every", True, ""),  # a place counts from the first item
    ],
)
def test_a_limit_is_that_of_the_tool_that_answered(
    answered: str, by_place: bool, spread: str, tmp_path: Path
) -> None:
    every = items(99)
    chosen = list(pose_one(TASK, TaskChoiceSettings(limit=8)).task.items())
    assert chosen != every[:8]
    said: list[object] = []
    for item in {"first": every[:8], "chosen": chosen, "every": every}[answered]:
        doc: dict[str, object] = {"doc": {}} if by_place else {"doc": {"id": item.id}}
        replies = {"resps": [[str(item.gold)]], "filtered_resps": [str(item.gold)]}
        said.append({"doc_id": every.index(item), **doc, "target": "", **replies})
    path = tmp_path / "samples_said.jsonl"
    path.write_bytes(b"\n".join(map(orjson.dumps, said)))
    settings = mm.ImportSettings(limit=8, out=tmp_path / "runs", format="lmms-eval")
    done = mm.import_answers(path, task=TASK, model="m", settings=settings)
    assert (done.answers, done.without_answer, done.run.facts.spread) == (8, 0, spread)
    assert done.run.scores["accuracy"].value == 1
    asked = [line.item.id for line in read_items(done.run.folder)]
    assert asked == [item.id for item in (chosen if spread else every[:8])]


def test_the_output_of_an_openai_batch(tmp_path: Path) -> None:
    exported = mm.export_task(
        TASK,
        format="openai-batch",
        out=tmp_path / "batch",
        settings=mm.ExportSettings(limit=24, model="some-vlm", params={"max_tokens": "64"}),
    )
    lines = [orjson.loads(line) for line in exported.files[0].read_bytes().splitlines()]
    assert lines[0]["url"] == "/v1/chat/completions"
    assert lines[0]["body"]["model"] == "some-vlm"
    assert lines[0]["body"]["max_tokens"] == 64
    gold = {item.id: str(item.gold) for item in items(99)}
    answers = []
    for number, line in enumerate(lines):
        text = plan_reply(number, gold[line["custom_id"]])
        body = {"choices": [{"message": {"content": text}}], "usage": {"prompt_tokens": 7}}
        answer: dict[str, object]
        if text.startswith("Failed"):
            answer = {"response": {"status_code": 500, "body": {"error": {"message": "no"}}}}
        else:
            answer = {"response": {"status_code": 200, "body": body}, "error": None}
        answers.append({"id": f"b{number}", "custom_id": line["custom_id"], **answer})
    path = tmp_path / "output.jsonl"
    # A server answers in whatever order it likes.
    path.write_bytes(b"\n".join(orjson.dumps(one) for one in reversed(answers)))
    done = bring(path, tmp_path)
    assert done.format == "openai-batch"
    assert done.run.scores["accuracy"].value == pytest.approx(RIGHT / 23)
    assert done.run.results.usage.tokens_in == 23 * 7
    failed = [one.reason for one in last_answers(done.run.folder).values() if one.reason[:6]]
    assert "status 500: no" in failed


PILOT = "dimension,image_id,ground_truth,model_choice,correct,question,ground_truth_text"


def pilot_rows() -> list[list[str]]:
    rows = []
    for number, item in enumerate(items()):
        options = {option.key: option.text for option in item.form.fields[0].options}
        gold = str(item.gold)
        said = gold if number % 3 else "BCDA"["ABCD".index(gold)]
        right = str(said == gold)
        question = item.form.question
        rows.append(["Scene", item.group, gold, said, right, question, options[gold]])
    return rows


def write_pilot(path: Path, rows: Sequence[Sequence[str]]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(PILOT.split(","))
        writer.writerows(rows)
    return path


def test_the_published_pilot_shape_is_joined_by_image_and_question(tmp_path: Path) -> None:
    path = write_pilot(tmp_path / "full_results.csv", pilot_rows())
    done = bring(path, tmp_path)
    assert (done.format, done.answers, done.without_answer) == ("table", 24, 0)
    assert done.run.scores["accuracy"].value == pytest.approx(16 / 24)
    assert done.listed is None
    again = bring(path, tmp_path)
    assert again.run.folder == done.run.folder
    assert again.run.results == done.run.results


def test_rows_that_fit_no_item_or_several_are_listed_and_not_guessed(tmp_path: Path) -> None:
    rows = pilot_rows()
    rows[1][5] = "Is this asked anywhere?"  # no such question
    rows[2][1] = "\x1b[31mnowhere\u202e"  # no such image
    rows[4][2] = "BCDA"["ABCD".index(rows[4][2])]  # options in another order
    rows[5][6] = "Something else entirely"  # another right option
    rows[7][5] = ""  # an image with two questions
    rows += [rows[8], [*rows[10][:3], "ABCD".replace(rows[10][3], "")[0], *rows[10][4:]]]
    done = bring(write_pilot(tmp_path / "full.csv", rows), tmp_path)
    assert [own.row for own in done.skipped] == [2, 3, 5, 6, 8, 11, 26]
    reasons = [own.reason for own in done.skipped]
    assert reasons[0] == "no item has this image and this question"
    assert reasons[1] == "no item has this image"
    assert reasons[2].startswith("gold answers differ")
    assert reasons[3] == "the text of the correct option differs"
    assert reasons[4] == "ambiguous: 2 items match"
    assert reasons[5] == reasons[6]
    assert reasons[6].startswith("ambiguous: 2 rows answer item")
    assert "\x1b" not in done.skipped[1].image
    assert (done.repeated, done.answers, done.without_answer) == (1, 18, 6)
    assert done.run.counts["failed"] == 0
    assert done.run.facts.origin == "imported from full.csv, 18 of 24 items"
    assert done.listed is not None
    assert len(done.listed.read_bytes().splitlines()) == 7
    # Of rows 1, 2, 4, 5, 7 and 10, only those were right.
    lost = sum(number % 3 != 0 for number in (1, 2, 4, 5, 7, 10))
    assert done.run.scores["accuracy"].value == pytest.approx((16 - lost) / 18)


def test_columns_and_values_are_named_by_flags(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    asked = items(6)
    lines = [
        {"key": item.id, "said": str("ABCD".index(str(item.gold))), "why": "x"} for item in asked
    ]
    lines[0]["said"] = "9"
    path = tmp_path / "mine.jsonl"
    path.write_bytes(b"\n".join(orjson.dumps(line) for line in lines))
    base = ["import-answers", str(path), "--task", TASK, "--model", "mine", "--limit", "6"]
    assert "--column answer=NAME" in shell.refused(*base)
    assert "--column id=NAME" in shell.refused(*base, "--column", "answer=said")
    named = [*base, "--column", "answer=said", "--column", "id=key"]
    values = [f"{place}={letter}" for place, letter in enumerate("ABCD")]
    flags = [word for value in values for word in ("--value", value)]
    ran = shell.run(*named, *flags, "--json")
    assert ran.code == 0, ran
    found = orjson.loads(ran.out)
    assert found["scores"]["accuracy"]["value"] == pytest.approx(5 / 6)
    assert found["counts"]["unparsed"] == 1
    # Without the renaming no digit is a letter.
    ran = shell.run(*named, "--json")
    assert orjson.loads(ran.out)["counts"]["unparsed"] == 6
    assert "unknown column" in shell.refused(*base, "--column", "answer=sad")
    assert "column role" in shell.refused(*base, "--column", "replies=said")


def test_what_was_imported_is_compared_scored_and_reported_like_any_run(tmp_path: Path) -> None:
    first = bring(next(FIXTURES.glob("*.tsv")), tmp_path).run
    path = write_pilot(tmp_path / "full_results.csv", pilot_rows())
    settings = mm.ImportSettings(limit=24, out=tmp_path)
    second = mm.import_answers(path, task=TASK, model="other", settings=settings).run
    found = mm.compare(first, second)
    assert found.shared == 23
    (row,) = found.differences
    # Item 5 of the pilot is right, and failed in the first run.
    assert [row.first, row.second] == pytest.approx([15 / 23, 15 / 23])
    assert mm.score(first, invalid="drop").scores["accuracy"].value == pytest.approx(15 / 22)
    page = mm.report([first, second], tmp_path / "page.html").read_text(encoding="utf-8")
    assert "imported from vlmevalkit" in page


def test_nothing_that_fits_is_an_error_that_says_why(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    path = tmp_path / "x.csv"
    path.write_text("id,prediction\nnobody,A\n", encoding="utf-8")
    line = shell.refused("import-answers", path, "--task", TASK, "--model", "m")
    assert "none of 1 rows matches an item; first row (nobody): no item has this id" in line
    path.write_text("id,prediction\n", encoding="utf-8")
    assert "has no rows" in shell.refused("import-answers", path, "--task", TASK, "--model", "m")
    assert "several tasks" in shell.refused(
        "import-answers", path, "--task", "punmemecn", "--model", "m"
    )
