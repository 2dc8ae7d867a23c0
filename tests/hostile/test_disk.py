"""A disk that fills up, on a file system of 20 MB: one line, no scrap, and the rerun completes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from hashlib import sha256
from importlib import import_module
from pathlib import Path

import pytest
from pydantic import JsonValue

from memantics.annotation.commands import find_admin
from memantics.annotation.service import open_service
from memantics.core.queue import (
    AggregatedAnnotation,
    IndividualAnnotation,
    read_queue,
    write_annotations,
)
from memantics.core.samples import IMAGES
from memantics.moderation import Decision, DecisionLog, hash_content, record_decision
from memantics.workbench import shards as build_shards
from tests.annotation.team import add_people
from tests.commands import Ran, Shell
from tests.construction.publish.queues import judge, make_queue, pick_memes
from tests.construction.publish.test_publish import pun_values
from tests.kinder import PLANNER
from tests.local import tiny as local_tiny
from tests.moderation.classifiers import MAPS, make_classifier
from tests.moderation.neural import tiny
from tests.moderation.neural.test_commands import write_csv
from tests.moderation.policies.scripted import POLICIES, serve_scripted
from tests.places import ROOT
from tests.scale.inline import InlineEngine

pytestmark = pytest.mark.slow

CLI = ROOT / "docs" / "reference" / "cli.md"
ROOM = (0, 8, 40, 150, 600, 2_000)  # KB that are left
SECRET = {"MEMANTICS_WEBHOOK_SECRET": "a secret of the tests"}
SCRAP = re.compile(r".*\.(partial|part|tmp)$|^tmp")
QUEUE = "screen texts.jsonl --out screened --review-range 0.0..1.0"
DATABASE = f"{QUEUE}; annotate import screened/review --db a.db"
DETECTOR = "detector train --data sample --preset words --out d.zip"
LISTED = f"{DETECTOR}; match-list add d.zip memes/en-001.png --label harmful"
CLASSIFIER = "classifier train labels.csv/label --out e.zip"
RUN = "run mquest -m fake/keys --data sample --out runs"
INTENTS = "run memeintent/intent -m fake/drafter --data sample --limit 4 --out runs"
MARKED = f"{INTENTS}; judge rate runs/* -m baseline/random"
KNOWN = "build knowledge sample -m fake/builder --out built --limit 2"
ASKED = f"{KNOWN}; build questions built -m fake/builder"
DRAFTED = "build intents sample -m fake/drafter --out built --limit 2"
CHATS = "build chats sample -m fake/drafter --out built --limit 2 --per-meme 1"
KINDER = f"build reappraisal kind {' '.join(PLANNER)} --editor none --out built"
PUBLISHED = f"{KINDER}; publish built --name kinder --licence CC0-1.0 --unreviewed"
# What runs beforehand, with room; and what meets a full disk.
COMMANDS = {
    "analyze": ("", "analyze memes/en-001.png -m fake/builder --calls calls --out a.html"),
    "annotate apply-texts": ("collect memes", "annotate apply-texts memes corrected.jsonl"),
    "annotate backup": (DATABASE, "annotate backup b.zip --db a.db"),
    "annotate close": (DATABASE, "annotate close ann --db a.db"),
    "annotate errors": (
        "run mquest -m baseline/random --data sample --out runs",
        "annotate errors runs/* --out errors",
    ),
    "annotate export": (DATABASE, "annotate export 1 --db a.db --out v.jsonl"),
    "annotate guideline": (DATABASE, "annotate guideline 1 --add Quotes_count. --db a.db"),
    "annotate import": (QUEUE, "annotate import screened/review --db a.db"),
    "annotate password": (DATABASE, "annotate password lead --db a.db"),
    "annotate questionnaire": ("", "annotate questionnaire --test zh"),
    "annotate restore": (
        f"{DATABASE}; annotate backup b.zip --db a.db",
        "annotate restore b.zip --db copy/a.db",
    ),
    "annotate setup": (DATABASE, "annotate setup 1 --annotators-per-item 2 --db a.db"),
    "annotate texts": ("collect memes", "annotate texts memes"),
    "audit": ("", "audit mquest --data sample --out audit.html"),
    "build captions": ("", "build captions sample -m fake/drafter --out built --limit 2"),
    "build chats": ("", CHATS),
    "build chat-quality": (CHATS, "build chat-quality built/chats.jsonl --out q.json"),
    "build check-hard-negatives": ("", "build check-hard-negatives --data sample --out f.json"),
    "build rate": (ASKED, "build rate built --size 2"),
    "build sample": (ASKED, "build sample built --first Toxicity"),
    "build intents": ("", DRAFTED),
    "build knowledge": ("", KNOWN),
    "build hard-negatives": ("", "build hard-negatives puns"),
    "build pairs": ("", "build pairs memes --language en --count 2"),
    "build questions": (KNOWN, "build questions built -m fake/builder"),
    "build reappraisal": ("", "build reappraisal memes --editor none --limit 1 --out built"),
    "build regenerate": (KINDER, "build regenerate built"),
    "build shards": (
        "",
        "build shards memes/en-001.png --what captions -m fake/drafter --out shards",
    ),
    "collect": ("", "collect memes --out collected"),
    "collect in place": ("", "collect memes"),
    "compare": (
        (
            "run mquest -m fake/keys -m baseline/random --data sample --out runs; "
            "run toxicn_mm/detection -m fake/keys -m baseline/majority --data sample --out runs"
        ),
        "compare runs/** --plot c.svg",
    ),
    "data add": ("", "data add labels.csv --label label --text text"),
    "data page": (
        "data add labels.csv --label label --text text",
        "data page labels --out page.html",
    ),
    "decisions appeal": ("", "decisions appeal DECISION --statement no --db log.db"),
    "decisions deliver": ("", "decisions deliver --db log.db"),
    "decisions export": ("", "decisions export --policy policy.md --db log.db --out statements"),
    "decisions queue": (
        "decisions appeal DECISION --statement no --db log.db",
        "decisions queue appeals --policy policy.md --db log.db",
    ),
    "decisions record": (
        "",
        "decisions record reviewed.jsonl --policy policy.md --db log.db --keep-texts 30",
    ),
    "decisions resolve": (
        "decisions appeal DECISION --statement no --db log.db",
        (
            "decisions resolve appealed.jsonl --db log.db --labels labels.jsonl "
            "--policy policy.md --next-policy next.md"
        ),
    ),
    "decisions retain": ("", "decisions retain --db log.db"),
    "decisions summary": ("", "decisions summary --db log.db --out d.html"),
    "demo": ("", "demo --out demo"),
    "detector check": (
        f"{DETECTOR}; build pairs memes --language en --count 2",
        "detector check pairs -m d.zip --out p.html",
    ),
    "detector eval": (DETECTOR, "detector eval d.zip --data sample --page e.html"),
    "detector explain": (DETECTOR, "detector explain d.zip sunshine --page e.html"),
    "detector export": (DETECTOR, "detector export d.zip --out other.zip"),
    "match-list remove": (
        f"{DETECTOR}; match-list add d.zip sunshine --label harmful",
        "match-list remove d.zip m" + sha256(b":sunshine").hexdigest()[:12],
    ),
    "detector retrain": (
        "detector train --data harm.csv --preset words --out d.zip",
        "detector retrain d.zip --annotations said.jsonl --data harm.csv --out new.zip --force",
    ),
    "detector predict": (DETECTOR, "detector predict d.zip --data sample --out v.jsonl"),
    "match-list export": (
        f"{DETECTOR}; match-list add d.zip sunshine --label harmful",
        "match-list export d.zip --out p.csv",
    ),
    "detector set": (DETECTOR, "detector set d.zip --threshold 0.4"),
    "match-list import": (
        f"{LISTED}; match-list export d.zip --out p.csv",
        "match-list import d.zip p.csv",
    ),
    "match-list add": (DETECTOR, "match-list add d.zip sunshine --label harmful"),
    "detector train": ("", DETECTOR),
    "detector use": (DETECTOR, "detector use d.zip"),
    "drift": (QUEUE, "drift screened --against screened --out d.html"),
    "edit": (PUBLISHED, "edit kinder --editor embedded --mode masked --out edited --limit 1"),
    "classifier predict": (CLASSIFIER, "classifier predict e.zip sunshine --out v.jsonl"),
    "classifier train": ("", CLASSIFIER),
    "classifier use": (CLASSIFIER, "classifier use e.zip"),
    "export-inspect": (RUN, "export-inspect runs/* --out logs"),
    "export-results": (RUN, "export-results runs/* --format mlflow --out results"),
    "export-task": (
        "",
        "export-task mquest/qa --data sample --format openai-batch -m x --out task",
    ),
    "gallery": (
        f"{PUBLISHED}; run kinder -m baseline/random --out runs",
        "gallery runs/* --out g.html",
    ),
    "human-eval export": (INTENTS, "human-eval export runs/* --out humans"),
    "import-answers": (
        "",
        "import-answers answers.csv --task mquest/qa --model x --limit 8 --out runs",
    ),
    "judge compare": (MARKED, "judge compare runs/* --out j.html"),
    "judge drift": (MARKED, "judge drift runs/* -m baseline/random"),
    "judge plan": (MARKED, "judge plan runs/* --budget 4 --out ratings"),
    "judge rate": (INTENTS, "judge rate runs/* -m baseline/random"),
    "kb export": ("kb import sample --store kb", "kb export --store kb --out all.nq"),
    "kb import": ("", "kb import sample --store kb"),
    "kb show": ("kb import sample --store kb", "kb show en-012 --store kb --out m.html"),
    "paper": (RUN, "paper mquest runs/* --data sample --out p.html"),
    "perturb": (
        "",
        "perturb toxicn_mm/detection -m baseline/majority --perturb image=blank --limit 4 --out r",
    ),
    "policy init": ("", "policy init own.md"),
    "policy test": (
        "",
        "policy test policy.md --data posts.csv --limit 4 --model openai/obeys --out p.html",
    ),
    "prompts copy": ("", "prompts copy mquest/qa words --data sample"),
    "publish": (DRAFTED, "publish built --name mine --licence CC0-1.0 --unreviewed"),
    "reappraise": ("", f"reappraise memes/en-012.png {' '.join(PLANNER)} --editor none --out new"),
    "report": (RUN, "report runs/* --out r.html"),
    "run": ("", RUN),
    "score": (RUN, "score runs/*"),
    "screen": ("", "screen texts.jsonl --out screened --csv --review-range 0.1..0.9"),
    "serve-token": ("", "serve-token me --tokens tokens"),
    "samples copy": ("", "samples copy copied"),
}
# Commands that train networks, with tiny random ones: the maker of the model, and the command.
TRAINING = "--data signs.csv --epochs 1 --share 0.2 --device cpu"
NETWORKS: dict[str, tuple[Callable[[Path], Path], str]] = {
    "detector study": (
        tiny.make_text,
        (
            f"detector study roberta --text-backbone model {TRAINING} --seeds 0 --tasks harmful "
            "--test test.csv --out study"
        ),
    ),
    "detector train-neural": (
        tiny.make_text,
        (
            f"detector train-neural --preset text --text-backbone model {TRAINING} --seeds 0,1 "
            "--save-every 1 --out network"
        ),
    ),
    "detector tune": (
        local_tiny.make_llava,
        (
            "detector tune model --question harm --style image --language en "
            "--data drawn/memes.csv --epochs 1 --portion 4 --device cpu --out tuned"
        ),
    ),
    "detector wrap": (
        lambda folder: make_classifier("text", folder),
        "detector wrap model --map map.toml --data harm.csv --out wrapped.json",
    ),
}
# Commands that write no file of the user's: they read, print, or serve. So does every listing.
READERS = """
annotate open, audit-reasoning, build compare, build ratings, data check, data stats,
decisions explain, decisions reviewers, decisions verify,
detector compare, detector info, classifier eval, classifier eval-negative, classifier explain,
classifier labels, mcp,
human-eval preferences, human-eval score, kb near, kb query, kb stats, kb validate,
policy check, policy diff, policy show, power, prompts show, pun, serve
"""


def test_every_command_is_tried_or_writes_nothing() -> None:
    known = re.findall(r"^## `memantics (.+)`$", CLI.read_text(encoding="utf-8"), re.MULTILINE)
    tried = {*COMMANDS, *NETWORKS} - {"collect in place"}
    readers = {name.strip() for name in READERS.split(",")}
    readers |= {name for name in known if name.endswith(" list")} - tried
    assert not tried & readers
    assert tried | readers == set(known)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    made = ["mount", "-t", "tmpfs", "-o", "size=20m", "tmpfs", str(place)]
    if os.getuid() or subprocess.run(made, capture_output=True, check=False).returncode:
        pytest.skip("a file system of 20 MB can only be mounted by root")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def fill(place: Path, left: int) -> None:
    """Take all room but so many KB."""
    free = shutil.disk_usage(place).free
    (place / "ballast").write_bytes(bytes(max(0, free - left * 1024)))


def list_scrap(place: Path) -> list[str]:
    files = (path for path in place.rglob("*") if path.is_file())
    return sorted(str(path.relative_to(place)) for path in files if SCRAP.match(path.name))


def prepare(disk: Path, command: str, monkeypatch: pytest.MonkeyPatch) -> Shell:
    for module in (import_module("memantics.moderation.screen"), build_shards):
        monkeypatch.setattr(module, "PoolEngine", lambda *_: InlineEngine())
    rows = (f'{{"id":"{n}","text":"{n} good mornings to you all"}}\n' for n in range(300))
    (disk / "texts.jsonl").write_text("".join(rows))
    labels = (
        f"{n},{('joy', 'fear')[n % 2]},{('sun is up', 'dark night')[n % 2]} {n}\n"
        for n in range(40)
    )
    (disk / "labels.csv").write_text("id,label,text\n" + "".join(labels))
    (disk / "memes").mkdir()
    for name in ("en-001.png", "en-009.png", "en-012.png"):
        shutil.copy(IMAGES / name, disk / "memes")
    (disk / "kind").mkdir()
    shutil.copy(IMAGES / "en-035.png", disk / "kind")  # a meme with recorded replies
    shutil.copy(ROOT / "examples" / "answers" / "full_results.csv", disk / "answers.csv")
    fruits = ((f"m{n}", f"so many {('pears', 'nettles')[n % 2]} {n}", n % 2) for n in range(40))
    (disk / "harm.csv").write_text(
        "id,text,label\n" + "".join(f"{name},{text},{label}\n" for name, text, label in fruits)
    )
    said = [IndividualAnnotation(annotator="p", stage="label", values={"harmful": "yes"})]
    reviewed = AggregatedAnnotation(
        item="n1", group="n1", workflow="review", kept=True, values={}, annotations=said,
        hidden={"id": "n1", "text": "nettles again"},
    )  # fmt: skip
    write_annotations(disk / "said.jsonl", [reviewed])
    corrected = AggregatedAnnotation(
        item="en-001", group="en-001", workflow="review-text", kept=True, values={"text": "two"}
    )
    write_annotations(disk / "corrected.jsonl", [corrected])
    if command.startswith(("decisions ", "policy ")):
        prepare_decisions(disk)
    shell = Shell(disk)
    for before in filter(None, COMMANDS.get(command, ("",))[0].split("; ")):
        shell.done(*expand(disk, before))
    if command == "annotate close":
        service = open_service(disk / "a.db", disk / "media")
        add_people(service, find_admin(service), 1, ["ann"], ["annotator"])
        service.close()
    if command == "build hard-negatives":
        memes = [meme for meme in pick_memes("zh", 43) if meme.pun][:12]
        queue = make_queue(disk / "puns", "pun-form", memes)
        judge(queue, "pun-form", {meme.id: pun_values(meme) for meme in memes})
    if command == "build regenerate":
        _, items = read_queue(disk / "built" / "queue")
        revised: dict[str, dict[str, JsonValue]] = {
            item.id: {"rewritten": f"{item.values['rewritten']} indeed"} for item in items
        }
        judge(disk / "built" / "queue", "verify-stages", revised)
    return shell


def prepare_decisions(disk: Path) -> None:
    """A policy, a log with one decision, a review, and the review of an appeal."""
    shutil.copy(POLICIES / "forum.md", disk / "policy.md")
    shutil.copy(POLICIES / "gold.csv", disk / "posts.csv")
    text = "the old turnip"
    decision = Decision(
        content_sha256=hash_content(text), content_id="p1", verdict="violates", band="block",
        clause="1", reviewer="reviewer-1",
    )  # fmt: skip
    with DecisionLog(disk / "log.db", webhooks=["http://127.0.0.1:9/hook"]) as log:
        made = record_decision(log, decision, text=text, keep_days=30)
    (disk / "decision.txt").write_text(made.id)
    for name, hidden, values in (
        ("reviewed", {"id": "p2", "text": "kale"}, {"harmful": "yes", "clause": "2"}),
        ("appealed", {"id": "p1", "text": text, "decision": made.id}, {"harmful": "no"}),
    ):
        answers: dict[str, JsonValue] = {**values}
        said = [IndividualAnnotation(annotator="p", stage="label", values=answers, roles=["lead"])]
        row = AggregatedAnnotation(
            item=name, group=name, workflow="review-policy", kept=True, values=answers,
            annotations=said, hidden={**hidden},
        )  # fmt: skip
        write_annotations(disk / f"{name}.jsonl", [row])


def expand(disk: Path, command: str) -> list[str]:
    """The words of a command; a star stands for the one folder there is, two for all.

    DECISION stands for the id of the decision in the log.
    """
    if "DECISION" in command:
        command = command.replace("DECISION", (disk / "decision.txt").read_text())
    return [
        str(path.relative_to(disk)) if isinstance(path, Path) else path
        for word in command.split()
        for path in (
            sorted(disk.glob(word.replace("**", "*")))[: None if "**" in word else 1]
            if "*" in word
            else [word]
        )
    ]


def check(ran: Ran) -> None:
    said = [line for line in ran.err.splitlines() if line.startswith("error: ")]
    assert "Traceback" not in ran.err, ran.err
    assert len(said) == 1, ran
    assert re.search("No space left|disk", said[0]), said


# Inspect leaves its own temporary files to the collector when the disk is full.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_a_full_disk_is_one_line(disk: Path, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shell = prepare(disk, command, monkeypatch)
    words = expand(disk, COMMANDS[command][1])
    with ExitStack() as stack:
        if "openai/obeys" in words:
            words += ["--base-url", stack.enter_context(serve_scripted())]
        fill_and_run(disk, shell, words)


@pytest.mark.filterwarnings("ignore::UserWarning:peft")
@pytest.mark.parametrize("command", sorted(NETWORKS))
def test_a_full_disk_ends_a_training_in_one_line(
    disk: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare_network(disk, command)
    words = NETWORKS[command][1].split()
    fill_and_run(disk, prepare(disk, command, monkeypatch), words)


def prepare_network(place: Path, command: str) -> None:
    """The model that a command trains, and what it learns from."""
    for name in ("torch", "transformers", "peft"):
        pytest.importorskip(name)
    NETWORKS[command][0](place / "model")
    head, *rows = write_csv(place / "signs", 60).read_text(encoding="utf-8").splitlines()
    for name, part in (("signs.csv", rows[:40]), ("test.csv", rows[40:])):
        (place / name).write_text("\n".join((head, *part)), encoding="utf-8")
    write_csv(place / "drawn", 10, images=True)
    (place / "map.toml").write_text(MAPS["text"], encoding="utf-8")


def fill_and_run(disk: Path, shell: Shell, words: list[str]) -> None:
    """With ever more room the command ends in one line and leaves no scrap, until it is done."""
    for left in ROOM:
        fill(disk, left)
        ran = shell.run(*words, **SECRET)
        (disk / "ballast").unlink()
        assert not list_scrap(disk), (words, left)
        if ran.code == 0:
            return
        assert ran.code == 2, ran
        check(ran)
    shell.done(*words, **SECRET)
