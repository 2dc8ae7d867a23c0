"""The authors' own prompt, from a script that is shaped like theirs and must never run."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from memantics.benchmarks.registry import SAMPLE_IMAGES, find_benchmark, find_tasks
from memantics.core.data import Source
from memantics.core.errors import DataError, InputError
from memantics.core.task import Task

SCRIPT = '''
raise SystemExit("this file was run")
class VLMInference:
    def _format_prompt(self, question, options):
        """
        Example output
        """
        prompt = f"{question}\\n\\n"
        for i, option in LOOP:
            # A comment
            prompt += f"{LETTER}. {option}\\n"
        prompt += "\\nThink of $5. Then choose."
        return prompt
'''
LOOPS = {
    "VLMs_inference.py": ("enumerate(options)", "chr(65+i)"),
    "HF_inference/VLMs_inferences.py": ("options.items()", "i"),
}


def clone(folder: Path, name: str = "VLMs_inference.py", inside: str = "") -> Source:
    shutil.copytree(find_benchmark("mquest").folder / "sample", folder / "release")
    place = folder / "VLMs_meme-inference" / name if not inside else folder / "release" / name
    place.parent.mkdir(parents=True, exist_ok=True)
    loop, letter = LOOPS[name]
    place.write_text(SCRIPT.replace("LOOP", loop).replace("LETTER", letter))
    return Source("release", folder / "release", SAMPLE_IMAGES)


def make(source: Source, **options: str) -> Task:
    ref = find_tasks(["mquest/qa"])[0]
    return ref.make({"wording": "official", **options}, "all", source, None)


@pytest.mark.parametrize("inside", ["", "yes"])
@pytest.mark.parametrize("name", LOOPS)
def test_the_text_of_the_script_is_sent(name: str, inside: str, tmp_path: Path) -> None:
    task = make(clone(tmp_path, name, inside))
    item = next(task.items())
    options = "".join(f"{own.key}. {own.text}\n" for own in item.form.fields[0].options)
    (message,) = task.ask(item, None).messages
    wanted = f"{item.form.question}\n\n{options}\nThink of $5. Then choose."
    assert message.parts[-1] == wanted
    plain = find_tasks(["mquest/qa"])[0].make({}, "all", None, None)
    assert task.prompts["explain_first"] != plain.prompts["explain_first"]


def test_other_orders_have_no_words_of_the_authors(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no prompt for order=letter_only"):
        make(clone(tmp_path), order="letter_only")


@pytest.mark.parametrize("text", ["x = 1", "def _format_prompt(a):\n  prompt = f'{a}'"])
def test_another_script_or_none_is_refused(text: str, tmp_path: Path) -> None:
    source = clone(tmp_path)
    script = tmp_path / "VLMs_meme-inference" / "VLMs_inference.py"
    script.write_text(text)
    with pytest.raises(DataError, match="does not contain the prompt in the expected form"):
        make(source)
    script.unlink()
    with pytest.raises(DataError, match="clone VLMs_meme-inference beside"):
        make(source)
