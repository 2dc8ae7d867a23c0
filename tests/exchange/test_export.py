"""Tasks for other tools: our prompts and images, and ids that come back with the answers."""

from __future__ import annotations

import base64
import csv
import runpy
from pathlib import Path

import orjson
import pytest

import memantics as mm
from memantics.core.records import Image
from memantics.evaluation import answers as writing
from memantics.evaluation.answers import TaskChoiceSettings, pose_one
from tests.commands import Shell


def asked(task: str, **options: str) -> list[tuple[str, str, list[bytes]]]:
    """Id, prompt and images of each item, as a model is asked here."""
    own = pose_one(task, TaskChoiceSettings(limit=3, options=options)).task
    found = []
    for item in own.items():
        parts = own.ask(item, None).messages[0].parts
        texts = [part for part in parts if isinstance(part, str)]
        images = [part.path.read_bytes() for part in parts if isinstance(part, Image)]
        found.append((item.id, "\n\n".join(texts), images))
    return found


SETTINGS = mm.ExportSettings(limit=3, options={"order": "letter_only"}, model="m")


def test_vlmevalkit_gets_a_table_with_our_prompt_and_the_image_inside(tmp_path: Path) -> None:
    done = mm.export_task("mquest/qa", format="vlmevalkit", out=tmp_path, settings=SETTINGS)
    csv.field_size_limit(10_000_000)
    with done.files[0].open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    assert [row["index"] for row in rows] == ["1", "2", "3"]
    found = [(row["id"], row["question"], [base64.b64decode(row["image"])]) for row in rows]
    assert found == asked("mquest/qa", order="letter_only")


@pytest.mark.parametrize("kind", ["lmms-eval", "lm-eval"])
def test_the_folders_of_lmms_eval_and_lm_eval(kind: str, tmp_path: Path) -> None:
    Shell(tmp_path).run(
        "export-task", "mquest/qa", "--format", kind, "--out", "task", "--limit", "3",
        "--set", "order=letter_only",
    )  # fmt: skip
    folder = tmp_path / "task"
    records = [orjson.loads(line) for line in (folder / "data.jsonl").read_bytes().splitlines()]
    functions = runpy.run_path(str(folder / "utils.py"))
    mark = "<image>" if kind == "lm-eval" else ""
    text = functions["doc_to_text_with_marks" if mark else "doc_to_text"]
    found = [
        (one["id"], text(one), [(folder / name).read_bytes() for name in one["images"]])
        for one in records
    ]
    ours = [
        (name, mark + own, images) for name, own, images in asked("mquest/qa", order="letter_only")
    ]
    assert found == ours
    assert functions["doc_to_visual"](records[0])[0].mode == "RGB"
    assert functions["process_results"](records[0], ["A"])["memantics"]["id"] == ours[0][0]
    task = (folder / "memantics_mquest_qa.yaml").read_text(encoding="utf-8")
    assert ("doc_to_image:" in task) == (kind == "lm-eval")
    tool = "lm_eval --model hf-multimodal" if kind == "lm-eval" else "lmms_eval --model MODEL"
    more = "--include_path . --log_samples --output_path results"
    assert f"# Run in this folder: {tool} --tasks memantics_mquest_qa {more}\n" in task
    assert "\ntask: memantics_mquest_qa\n" in task
    assert f"  max_{'gen_toks' if mark else 'new_tokens'}: " in task
    # Without it lm-eval cuts a reply at its first empty line.
    assert "until: []" in task


def test_a_batch_is_cut_where_the_server_would_refuse_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = mm.export_task(
        "mquest/qa", format="openai-batch", out=tmp_path / "a", settings=SETTINGS
    )
    lines = whole.files[0].read_bytes().splitlines(keepends=True)
    monkeypatch.setattr(writing, "_BATCH_LINES", 2)
    done = mm.export_task("mquest/qa", format="openai-batch", out=tmp_path / "b", settings=SETTINGS)
    assert [len(path.read_bytes().splitlines()) for path in done.files] == [2, 1]
    monkeypatch.setattr(writing, "_BATCH_LINES", 50_000)
    monkeypatch.setattr(writing, "_BATCH_BYTES", len(lines[0]) + len(lines[1]))
    done = mm.export_task("mquest/qa", format="openai-batch", out=tmp_path / "c", settings=SETTINGS)
    assert b"".join(path.read_bytes() for path in done.files) == b"".join(lines)
    assert len(done.files[0].read_bytes().splitlines()) == 2


def test_what_cannot_be_exported_says_why(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    base = ["export-task", "memeintent/intent", "--out", "x", "--limit", "2"]
    line = shell.refused(*base, "--format", "vlmevalkit", "--set", "shots=few")
    assert "turns" in line
    assert "openai-batch" in line
    line = shell.refused(*base, "--format", "openai-batch", "--set", "background=auto", "-m", "m")
    assert "contain answers to the task memeintent/background" in line
    assert "--model NAME" in shell.refused(*base, "--format", "openai-batch")
    assert "unknown option" in shell.refused(*base, "--format", "lmms-eval", "--set", "a=b")


def test_line_ends_and_letters_are_written_as_they_are(tmp_path: Path) -> None:
    path = writing._write_text(tmp_path / "a.tsv", lambda file: print("一\r\nb", file=file))
    assert path.read_bytes() == "一\r\nb\n".encode()
    assert not list(tmp_path.glob("*.part"))
