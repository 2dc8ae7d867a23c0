"""What a row of each tool becomes: answer, failure, and what it is about."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest
from inspect_ai.log import EvalSample
from inspect_ai.model import ModelOutput, ModelUsage

from memantics.core.records import Reply
from memantics.evaluation.exchange import (
    GivenAnswer,
    ReadSettings,
    _read_sample,
    find_format,
    read_given,
)


def read(path: Path, *lines: object, **settings: object) -> list[GivenAnswer]:
    path.write_bytes(b"\n".join(orjson.dumps(line) for line in lines))
    return list(read_given(path, ReadSettings(**settings))[1])  # type: ignore[arg-type]


def said(text: str) -> dict[str, object]:
    return {"status_code": 200, "body": {"choices": [{"message": {"content": text}}]}}


@pytest.mark.parametrize(
    ("line", "failure"),
    [
        ({"response": said("A"), "error": None}, ""),
        ({"response": said("A"), "error": {"message": "cut  off"}}, "cut off"),
        ({"response": None, "error": None}, "no response"),
        (
            {"response": {"status_code": 201, "body": {"error": {"message": "no"}}}},
            "status 201: no",
        ),
        (
            {"response": {"status_code": 500, "body": {"error": "y" * 400}}},
            "status 500: " + "y" * 300,
        ),
        ({"response": {"status_code": 200, "body": {"choices": []}}}, "no choices"),
    ],
)
def test_a_line_of_a_batch_is_an_answer_or_a_failure(
    tmp_path: Path, line: dict[str, object], failure: str
) -> None:
    (given,) = read(tmp_path / "a.jsonl", {"custom_id": "one"} | line, format="openai-batch")
    assert (given.row, given.id, given.reply.text) == (1, "one", "" if failure else "A")
    assert (failure in given.failure) if failure else not given.failure


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ({"doc_id": 0}, {"place": 0}),
        ({"doc_id": -1}, {"place": None}),
        ({"doc_id": "3"}, {"place": None}),
        ({"resps": [["B"]], "filtered_resps": ["C"]}, {"reply": Reply("B")}),
        ({"filtered_resps": ["C"]}, {"reply": Reply("C")}),
        ({"resps": []}, {"reply": Reply("")}),
        ({"resps": [[[-3.0, False]], [[-1, False]], [[-2.0, True]]]}, {"reply": Reply("B")}),
        ({"doc": {"id": "a", "image_id": "i", "meme": "m"}}, {"id": "a", "image": "i"}),
        ({"doc": {"meme": "m", "question": "Why?"}}, {"image": "m", "question": "Why?"}),
        ({"memantics": {"id": "ours"}}, {"id": "ours"}),
        ({"memantics": {"id": "ours"}, "doc": {"id": "theirs"}}, {"id": "theirs"}),
        ({"target": "A"}, {"gold": "A"}),
    ],
)
def test_a_sample_of_lmms_eval(
    tmp_path: Path, line: dict[str, object], wanted: dict[str, object]
) -> None:
    (given,) = read(tmp_path / "a.jsonl", {"doc_id": 7} | line, format="lmms-eval")
    usual: dict[str, object] = {"place": 7, "reply": Reply("")}
    assert given == GivenAnswer(1, **(usual | wanted))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("stop", "finish", "refusal", "failure"),
    [
        ("stop", "", "", ""),
        ("max_tokens", "length", "", ""),
        ("content_filter", "", "Answer: A", ""),
        (None, "", "", "the log has no output"),
    ],
)
def test_why_a_sample_of_inspect_ended(
    stop: str | None, finish: str, refusal: str, failure: str
) -> None:
    output = ModelOutput()
    if stop is not None:
        output = ModelOutput.from_content("m", "Answer: A", stop_reason=stop)  # type: ignore[arg-type]
        output.usage = ModelUsage(input_tokens=5, output_tokens=3)
    facts = {"meme": "m1", "image": 4, "question": "Why?"}
    sample = EvalSample(id="s", epoch=2, input="", target="", output=output, metadata=facts)
    given = _read_sample(9, sample)
    assert (given.row, given.id, given.epoch) == (9, "s", 2)
    assert (given.image, given.question, given.failure) == ("4", "Why?", failure)
    assert (given.reply.finish, given.reply.refusal) == (finish, refusal)
    tokens = (0, 0) if stop is None else (5, 3)
    assert (given.reply.tokens_in, given.reply.tokens_out) == tokens


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("a.eval", "", "inspect"),
        ("a.JSON", ' {"eval": {}}', "inspect"),
        ("a.json", '[{"index": 1, "prediction": "A"}]', "vlmevalkit"),
        ("a.jsonl", '{"custom_id": "a", "response": null}', "openai-batch"),
        ("a.jsonl", '{"doc_id": 1, "filtered_resps": []}', "lmms-eval"),
        ("a.jsonl", '{"custom_id": "a", "doc_id": 1}', "table"),
        ("a.csv", "index,prediction\n1,A\n", "vlmevalkit"),
        ("a.csv", "index,answer\n1,A\n", "table"),
    ],
)
def test_the_tool_that_wrote_a_file_is_told_by_its_first_record(
    tmp_path: Path, name: str, text: str, kind: str
) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    assert find_format(path) == kind


def test_a_table_keeps_what_a_row_is_about_and_renames_values(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("id,image,question,answer,gold\n1,i,Why?, 1 ,0\n2,j,How?,2,1\n")
    columns = {"answer": "answer", "gold": "gold"}
    first, second = read_given(path, ReadSettings("table", columns, {"1": "yes", "0": "no"}))[1]
    assert (first.id, first.image, first.question) == ("1", "i", "Why?")
    assert (first.reply.text, first.gold) == ("yes", "no")
    assert (second.reply.text, second.gold) == ("2", "yes")
