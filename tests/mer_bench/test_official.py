"""The authors' own prompts, from a script that is shaped like theirs and must never run."""

from __future__ import annotations

import ast
import json
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from memantics.benchmarks.mer_bench.judgement import EMOTION
from memantics.benchmarks.mer_bench.official import official_prompts
from memantics.benchmarks.parsing import parse_file
from memantics.benchmarks.registry import SAMPLE_IMAGES, find_benchmark
from memantics.core.data import Source
from memantics.core.errors import DataError
from tests.commands import Shell
from tests.mer_bench.samples import write_release
from tests.places import SHARED_DATA, needs_shared_data
from tests.servers.fakes import Scripted, serving
from tests.setups import make_setup, make_task

SCRIPT = """
raise SystemExit("this file was run")
EMOTIONS_8 = ["angry"]
class PromptBuilder:
    def build_prompts(sample):
        order_hint = ("Keep the order. " "Add nothing.")
        system_prompt = (
            "You judge edits.\\n"
            f"Labels: {', '.join(EMOTIONS_9)}.\\n"
            f"- {order_hint}\\n"
        )
        user_lines = []
        user_lines.append("Task: judge the EDITED meme.")
        user_lines.append(f"Labels: {', '.join(EMOTIONS_8)} + other")
        user_lines.append(f"SOURCE feels: {sample.src_emotion}")
        user_lines.append(f"TARGET feels: {sample.tgt_emotion}")
        opt_blocks = []
        b = PromptBuilder._maybe_block("SOURCE says", sample.src_caption_text)
        if b:
            opt_blocks.append(b)
        b = PromptBuilder._maybe_block("TARGET says", sample.tgt_caption_text)
        b = PromptBuilder._maybe_block("Edit", sample.edit_instruction)
        if opt_blocks:
            user_lines.append("Optional references:\\n" + "\\n\\n".join(opt_blocks))
        user_lines.append("Rubric: costs $5.\\n")
        user_text = "\\n\\n".join(user_lines)
def build_image_blocks(sample):
    return [{"type": "text", "text": "SOURCE image:"}, {"type": "text", "text": "EDITED image:"}]
"""


def clone(folder: Path) -> Path:
    shutil.copytree(find_benchmark("mer_bench").folder / "sample", folder)
    (folder / "judge.py").write_text(SCRIPT)
    return folder


def test_texts_become_prompts_with_our_holes(tmp_path: Path) -> None:
    found = official_prompts(Source("release", clone(tmp_path / "mer"), None), {})
    assert found["rules"].text == (
        "You judge edits.\nLabels: $labels, other.\n- Keep the order. Add nothing.\n"
    )
    filled = found["judge"].fill(
        source_emotion="sad", target_emotion="happy", references="\n\nR", shape="ignored"
    )
    assert filled == (
        "Task: judge the EDITED meme.\n\nLabels: angry, sad, tense, bored, calm, happy, excited,"
        " relaxed + other\n\nSOURCE feels: sad\n\nTARGET feels: happy\n\nR\n\nRubric: costs $5.\n"
    )
    assert found["references"].text == "Optional references:\n$blocks"
    assert found["source_caption"].text == "SOURCE says:\n$text"
    assert found["edit_instruction"].text == "Edit:\n$text"
    assert found["source_image"].text == "SOURCE image:"


def test_the_wording_is_sent_and_recorded(tmp_path: Path, shell: Shell) -> None:
    folder = clone(tmp_path / "mer")
    shell.done("data", "add", "mer_bench", folder, "--images", SAMPLE_IMAGES)
    with serving(Scripted()) as server:
        arguments = ("run", "mer_bench/judge", "-m", "openai/toy", "--base-url", server.url)
        more = ("--limit", "1", "--set", "wording=official", "--set", "layout=off")
        ran = shell.run(*arguments, *more, "--invalid", "wrong")
    # The server's "B" is no judgement, which is said.
    assert ran.code == 1, ran
    assert "none of 1 replies could be parsed" in ran.err
    system, user = server.bodies[0]["messages"]
    assert system["content"].startswith("You judge edits.")
    assert user["content"][0]["text"] == "SOURCE image:"
    assert "Rubric: costs $5." in user["content"][-1]["text"]
    run = next((shell.folder / "runs").iterdir())
    assert "wording: official" in shell.done("report", run, "--format", "md")


@needs_shared_data
@pytest.mark.parametrize("references", ["on", "source", "off"])
def test_what_is_asked_equals_what_the_authors_own_functions_make(
    tmp_path: Path, references: str
) -> None:
    """Their functions are run on the index as it lies there, ours through the task."""
    script = SHARED_DATA / "mer_bench" / "official" / "judge.py"
    theirs = _run_functions(script)
    index = json.loads((SHARED_DATA / "mer_bench" / "index_final.json").read_bytes())
    empty = {**index[0], "id": "none.png", "gen_id": "none.png", "text": " "}
    rows = {row["id"]: row for row in [empty, *index[:: 3 if references == "on" else 100]]}
    source = write_release(tmp_path / "clone", rows.values(), ("one",))
    shutil.copy(script, source.root)
    options = {"wording": "official", "references": references, "layout": "off"}
    setup = make_setup("mer_bench/judge", options, source)
    task = make_task(replace(setup, find_official=official_prompts))
    hidden = {"on": (), "source": ("pos_txt", "spec"), "off": ("text", "pos_txt", "spec")}
    compared = 0
    for item in task.items():
        row = rows[item.group]
        sample = SimpleNamespace(
            src_emotion=row["det_emo"],
            tgt_emotion=row["tgt_emo"],
            **{
                name: None if key in hidden[references] else row[key] for name, key in NAMES.items()
            },
        )
        bundle = theirs["PromptBuilder"].build_prompts(sample)
        asked = task.ask(item, None)
        assert asked.messages[0].parts == (bundle.system_prompt,)
        assert asked.messages[1].parts[-1] == bundle.user_text, item.id
        schema, ours = theirs["build_judge_schema"](True)[1], cast("Any", asked.schema)
        assert ours == schema
        # Servers decode properties in their order.
        assert json.dumps(ours["properties"][EMOTION]["properties"]) == json.dumps(
            schema["properties"][EMOTION]["properties"]
        )
        compared += 1
    assert compared == len(rows)


NAMES = {
    "src_caption_text": "text",
    "tgt_caption_text": "pos_txt",
    "edit_instruction": "spec",
}


def _run_functions(script: Path) -> dict[str, Any]:
    """Prompt and schema of the authors' script; what calls a server is left out."""
    wanted = {
        *("PromptBundle", "PromptBuilder", "_obj", "_ordered_fields", "build_judge_schema"),
        *("EMOTIONS_8", "EMOTIONS_9"),
    }
    kept = [
        node
        for node in parse_file(script).body
        if getattr(node, "name", "") in wanted
        or (isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in wanted)
    ]
    head = "from __future__ import annotations\nfrom dataclasses import dataclass\n"
    names: dict[str, Any] = {"__name__": __name__}
    text = head + "from typing import *\n" + "\n".join(ast.unparse(node) for node in kept)
    exec(compile(text, str(script), "exec"), names)
    return names


def test_without_a_clone_it_is_refused(shell: Shell) -> None:
    line = shell.refused(
        *("run", "mer_bench/judge", "-m", "fake/keys", "--data", "sample"),
        *("--set", "wording=official"),
    )
    assert "wording=official needs judge.py" in line


@pytest.mark.parametrize("text", ["def build_prompts(:", "x = 1", "def build_prompts(s):\n  pass"])
def test_another_script_is_refused(tmp_path: Path, text: str) -> None:
    folder = clone(tmp_path / "mer")
    (folder / "judge.py").write_text(text)
    with pytest.raises(DataError):
        official_prompts(Source("release", folder, None), {})


def test_a_file_too_large_is_not_parsed(tmp_path: Path) -> None:
    (tmp_path / "large.py").write_text("#" * (4 * 1024 * 1024 + 1))
    with pytest.raises(DataError, match="too large"):
        parse_file(tmp_path / "large.py")
