"""Workflows of the papers, run through the app: texts are reviewed, chats edited and published."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import JsonValue

from memantics.annotation.records import AnnotationTask
from memantics.annotation.service import AnnotationService
from memantics.core.samples import image_path
from tests.annotation.team import PASSWORD
from tests.commands import Shell
from tests.construction.publish.queues import judge, make_queue, pick_memes

pytestmark = pytest.mark.slow
Answer = Callable[[AnnotationTask], dict[str, JsonValue]]


def work_through(service: AnnotationService, queue: Path, answer: Answer) -> int:
    """One person answers every item of a queue; what they said lies in it as annotations."""
    lead = service.accounts.create_first("lead", PASSWORD)
    project = service.exchange.open_queue(lead, queue).id
    service.projects.set_roles(lead, project, lead.id, ("lead", "annotator"))
    service.projects.consent(lead, project)
    done = 0
    while (task := service.work.next(lead, project)) is not None:
        service.work.submit(lead, task.assignment, answer(task), task.version, 5.0)
        done += 1
    annotations = service.exchange.export(lead, project, "annotations").data
    (queue / "annotations.jsonl").write_bytes(annotations)
    return done


def test_what_ocr_read_is_reviewed_and_put_back(service: AnnotationService, shell: Shell) -> None:
    folder = shell.folder / "memes"
    folder.mkdir()
    for name in ("en-001", "en-002", "en-003"):
        (folder / f"{name}.png").write_bytes(image_path(name).read_bytes())
    shell.done("collect", "memes")
    shell.done("annotate", "texts", "memes")

    unreadable = ["the first"]

    def review(task: AnnotationTask) -> dict[str, JsonValue]:
        if unreadable:
            unreadable.clear()
            return {"readable": "no"}
        return {"readable": "yes", "text": f"{task.state['text']}, reviewed"}

    assert work_through(service, shell.folder / "texts", review) == 3
    said = shell.done("annotate", "apply-texts", "memes", "texts/annotations.jsonl")
    assert "2 texts changed, 1 memes marked unreadable" in said
    lines = [json.loads(line) for line in (folder / "memes.jsonl").read_text().splitlines()]
    texts = {line["id"]: line["text"] for line in lines if line.get("kept", True)}
    assert len(texts) == 2
    assert all(text.endswith(", reviewed") for text in texts.values())


def test_chats_are_edited_in_the_app_and_published(
    service: AnnotationService, shell: Shell
) -> None:
    memes = [meme for meme in pick_memes("zh", 43) if meme.pun][:6]
    folder = shell.folder / "memes"
    folder.mkdir()
    lines = []
    for meme in memes:
        (folder / meme.file).write_bytes(image_path(meme.id).read_bytes())
        notes = {"meaning": meme.meaning, "description": meme.description}
        line = {"id": meme.id, "image": meme.file, "text": meme.text, "language": "zh"}
        lines.append(json.dumps(line | {"notes": notes}))
    (folder / "memes.jsonl").write_text("\n".join(lines), encoding="utf-8")
    ran = shell.run("build", "chats", "memes", "-m", "fake/drafter", "--out", "chats")
    assert ran.code in (0, 1), ran
    answers: list[dict[str, JsonValue]] = [
        {"chat_check": "edit", "turns": "甲：今天怎么样\n乙：还不错，你呢"},
        {"chat_check": "drop"},
    ]
    edited = work_through(
        service,
        shell.folder / "chats" / "queue-chats",
        lambda _: answers.pop(0) if answers else {"chat_check": "keep"},
    )
    assert edited > 2
    queue = make_queue(shell.folder / "queue", "pun-form", memes)
    said: dict[str, JsonValue] = {"pun": "yes", "explanation": ""}
    values: dict[str, dict[str, JsonValue]] = {
        meme.id: {**said, **dict.fromkeys(("caption", "pun_word", "homophone"), meme.text)}
        for meme in memes
    }
    judge(queue, "pun-form", values)
    publish = ("publish", queue, "--name", "edited", "--licence", "CC0-1.0", "--unreviewed")
    shell.done(*publish, "--chats", "chats")
    data = shell.folder / "published" / "edited" / "data"
    chats = json.loads((data / "_Chat(hard).json").read_text(encoding="utf-8"))
    histories = [chat["chat_history"][:-1] for chat in chats.values()]
    assert histories.count(["甲：今天怎么样", "乙：还不错，你呢"]) == 1
    assert len(chats) == edited - 1, "what was dropped is not published"
