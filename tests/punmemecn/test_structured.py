"""``question=structured``: which word has two readings, which of them is seen, is it a pun?"""

from __future__ import annotations

import json

import pytest

from memantics.benchmarks.punmemecn.detection import PARTS, SEEN
from memantics.core.errors import InputError
from memantics.core.records import Image
from tests.commands import Shell
from tests.punmemecn.release import SAMPLE, make_task
from tests.punmemecn.test_replies import read
from tests.servers.fakes import Scripted, serving


def write_reply(language: str, judgment: object, seen: int = 0) -> str:
    values = ("鱼", "一条鱼", "余", SEEN[language][seen], judgment)
    return json.dumps(dict(zip(PARTS[language], values, strict=True)), ensure_ascii=False)


@pytest.mark.parametrize("language", ["zh", "en"])
def test_the_prompt_asks_for_the_word_its_readings_and_what_is_seen(language: str) -> None:
    task = make_task("detection", SAMPLE, prompt="2", question="structured", language=language)
    item = next(task.items())
    request = task.ask(item, None)
    parts = request.messages[-1].parts
    text = "".join(part for part in parts if not isinstance(part, Image))
    assert item.form.context["caption"] in text
    assert all(f'"{name}"' in text for name in (*PARTS[language], *SEEN[language]))
    assert f"detection_structured.{language}" in task.prompts
    assert request.schema is not None
    assert request.schema["required"] == list(PARTS[language])
    plain = make_task("detection", SAMPLE, prompt="2", language=language)
    assert plain.ask(item, None).schema is None
    assert f"detection_structured.{language}" not in plain.prompts


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (write_reply("zh", "双关"), "pun"),
        (write_reply("zh", "非双关", 3), "non-pun"),
        (f"```json\n{write_reply('zh', '双关')}\n```", "pun"),
        (write_reply("zh", "双关") + write_reply("zh", "双关"), "pun"),
        (write_reply("zh", "双关") + write_reply("zh", "非双关"), None),
        (write_reply("zh", True), None),
        (write_reply("zh", "也许"), None),
        ("非双关", "non-pun"),
        ('{"词语": "鱼"}', None),
        ("", None),
    ],
)
def test_the_judgment_is_read(text: str, value: object) -> None:
    assert read("detection", text, question="structured") == value


def test_an_english_judgment_is_read() -> None:
    said = write_reply("en", "non-pun", 3)
    assert read("detection", said, question="structured", language="en") == "non-pun"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"prompt": "4"}, "prompt=4"),
        ({"prompt": "6"}, "prompt=6"),
        ({"prompt": "2", "parser": "paper"}, "parser=paper"),
    ],
)
def test_what_it_does_not_go_with_is_refused(options: dict[str, str], words: str) -> None:
    with pytest.raises(InputError, match=f"question=structured cannot be combined with {words}"):
        make_task("detection", SAMPLE, question="structured", **options)


@pytest.mark.slow
def test_a_server_is_asked_with_reading_hints(shell: Shell) -> None:
    with serving(Scripted(lambda _: write_reply("zh", "双关"))) as server:
        shell.done(
            *("run", "punmemecn/detection", "--data", "sample", "-m", "openai/toy"),
            *("--base-url", server.url, "--limit", "3"),
            *("--set", "question=structured", "--set", "hint=readings"),
        )
    bodies = [json.dumps(body, ensure_ascii=False) for body in server.bodies]
    assert len(bodies) == 3
    assert all("画面所示" in body and "image_url" in body for body in bodies)
    [run] = (shell.folder / "runs").iterdir()
    answers = (run / "answers.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["value"] for line in answers] == ["pun"] * 3
