"""Two processes where one is expected, and kills at any moment: nothing mixed, nothing lost."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
import pytest

from memantics.core.files import whole_file
from memantics.core.samples import IMAGES
from memantics.serve import settings as tokens
from tests import forks
from tests.commands import Shell
from tests.hostile import test_disk as full_disks
from tests.hostile.cases import SEED
from tests.kinder import PLANNER

MEMES = 300


def start(shell: Shell, *words: str, stdout: int = subprocess.DEVNULL) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "memantics.cli.main", *words],
        cwd=shell.folder,
        env=shell.environment,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
    )


def end(process: subprocess.Popen[str]) -> tuple[int, str]:
    _, said = process.communicate(timeout=240)
    assert "Traceback" not in said, said
    return process.returncode, said


def put_texts(shell: Shell) -> None:
    labels = ("dawn", "dusk")
    rows = (
        json.dumps({"id": str(n), "text": f"{n} good {labels[n % 2]}s", "label": labels[n % 2]})
        for n in range(MEMES)
    )
    (shell.folder / "texts.jsonl").write_text("\n".join(rows))
    (shell.folder / "memes").mkdir()
    for name in ("en-001.png", "en-012.png"):
        shutil.copy(IMAGES / name, shell.folder / "memes")


def prepare(shell: Shell, name: str) -> None:
    put_texts(shell)
    if name in BEFORE:
        shell.done(*BEFORE[name].split())


def digest(folder: Path, names: Sequence[str]) -> str:
    """What a command left, less what differs from run to run (times)."""
    found = sha256()
    for name in names:
        for path in sorted(folder.glob(name)):
            body = path.read_bytes()
            if path.suffix == ".zip":
                with zipfile.ZipFile(path) as archive:
                    body = b"".join(archive.read(part) for part in sorted(archive.namelist()))
            body = re.sub(rb'"(seconds|when|place)":("[^"]*"|[0-9.e-]+)', b"", body)
            found.update(path.name.encode() + b"".join(sorted(body.splitlines())))
    return found.hexdigest()


# What is run twice at once, and the files that must be as after one run.
TOGETHER = {
    "run": ("run mquest -m fake/keys --data sample --out runs", ["runs/*/answers.jsonl"]),
    "screen": ("screen texts.jsonl --out out --workers 1 --csv", ["out/parts/*", "out/*.csv"]),
    "build": ("build knowledge sample -m fake/builder --out b --limit 3", ["b/knowledge.jsonl"]),
    "detector": ("detector train --data sample --preset words --out d.zip", ["d.zip"]),
    "kb": ("kb import sample --store kb", []),
    "collect": ("collect memes --out collected", ["collected/memes.jsonl"]),
    "intents": (
        "build intents sample -m fake/drafter --out b --limit 2",
        ["b/queue-intents/items.jsonl"],
    ),
    "captions": (
        "build captions sample -m fake/drafter --out b --limit 2 --again",
        ["b/captions.jsonl"],
    ),
    "shards": (
        "build shards memes/en-001.png --what captions -m fake/drafter --out s --workers 1",
        ["s/captions.jsonl"],
    ),
    "classifier": ("classifier train texts.jsonl/label --preset words --out e.zip", ["e.zip"]),
    "reappraise": (
        f"reappraise memes/en-012.png {' '.join(PLANNER)} --editor none --out new",
        ["new/en-012/*.json", "new/en-012/*.png"],
    ),
    "perturb": (
        "perturb toxicn_mm/detection -m baseline/majority --perturb image=blank --limit 4 --out r",
        ["runs/*/answers.jsonl"],
    ),
    "samples": ("samples copy copied", ["copied/memes/*", "copied/*.jsonl"]),
    "publish": (
        "publish b --name mine --licence CC0-1.0 --unreviewed --out p",
        ["p/mine/data/*.json", "p/mine/data/images/*"],
    ),
}
# Trainings of networks, with models that are made beforehand (tests/hostile/test_disk.py).
NETWORKS = {
    "detector study": ["study/**/*.safetensors", "study/**/predictions.jsonl"],
    "detector train-neural": ["network/**/*.safetensors"],
    "detector tune": ["tuned/adapter/*.safetensors"],
}
# What is done before, once.
BEFORE = {"publish": "build intents sample -m fake/drafter --out b --limit 2"}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(TOGETHER))
def test_two_processes_leave_what_one_leaves(shell: Shell, name: str) -> None:
    """One waits or is refused in one line, or both are right."""
    command, files = TOGETHER[name]
    prepare(shell, name)
    ended = [end(process) for process in [start(shell, *command.split()) for _ in range(2)]]
    assert any(code == 0 for code, _ in ended), ended
    for code, said in ended:
        assert code in (0, 2), said
        if code:
            errors = [line for line in said.splitlines() if line.startswith("error: ")]
            assert len(errors) == 1, said
    assert not [path for path in shell.folder.rglob("*.part*") if path.is_file()]
    both = digest(shell.folder, files)
    alone = Shell(shell.folder / "alone")
    alone.folder.mkdir()
    prepare(alone, name)
    assert end(start(alone, *command.split()))[0] == 0
    assert digest(alone.folder, files) == both
    if name == "kb":
        told = [space.done("kb", "stats", "--store", "kb", "--json") for space in (shell, alone)]
        assert told[0] == told[1]


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(NETWORKS))
def test_two_trainings_of_a_network_leave_what_one_leaves(shell: Shell, name: str) -> None:
    full_disks.prepare_network(shell.folder, name)
    alone = Shell(shell.folder / "alone")
    shutil.copytree(shell.folder, alone.folder)
    words = full_disks.NETWORKS[name][1].split()
    ended = [end(process) for process in [start(shell, *words) for _ in range(2)]]
    assert sorted(code for code, _ in ended) == [0, 2], ended
    assert sum("is being written by another process" in said for _, said in ended) == 1, ended
    assert end(start(alone, *words))[0] == 0
    assert any(any(alone.folder.glob(pattern)) for pattern in NETWORKS[name])
    assert digest(alone.folder, NETWORKS[name]) == digest(shell.folder, NETWORKS[name])


def test_two_writers_of_one_file_do_not_mix(tmp_path: Path) -> None:
    """One name for both halves: the second cut off what the first had written, and wrote on."""
    path, gate = tmp_path / "a", tmp_path / "gate"
    child = os.fork()
    if child == 0:
        with whole_file(path) as file:
            file.write(b"child\n" * 10_000)
            while not gate.exists():
                time.sleep(0.01)
        os._exit(0)
    while not list(tmp_path.glob("*.part")):
        time.sleep(0.01)
    with whole_file(path) as file:
        file.write(b"parent\n" * 20_000)
    assert path.read_bytes() == b"parent\n" * 20_000
    gate.touch()
    assert os.waitpid(child, 0)[1] == 0
    assert path.read_bytes() == b"child\n" * 10_000


def add_token(name: str) -> None:
    read = tokens.read_tokens

    def read_slowly(*given: Any) -> tuple[tokens.Token, ...]:
        found = read(*given)
        time.sleep(0.2)
        return found

    setattr(tokens, "read_tokens", read_slowly)  # noqa: B010 - in a process of its own
    tokens.make_token(Path("tokens"), name)


@pytest.mark.slow
def test_tokens_that_are_made_at_once_all_count(shell: Shell) -> None:
    """Each read the file, added its token and wrote: the last one won."""
    names = [f"client-{number}" for number in range(4)]
    tokens.make_token(shell.folder / "tokens", "first")
    place = forks.Place(shell.folder, shell.environment)
    started = [forks.start(partial(add_token, name), place) for name in names]
    for process in started:
        process.join(120)
    kept = tokens.read_tokens(shell.folder / "tokens", {})
    assert sorted(token.name for token in kept) == [*names, "first"]


@pytest.mark.slow
def test_two_processes_add_to_one_match_list(shell: Shell) -> None:
    """Concurrent writers both succeed, and a concurrent reader sees one consistent version."""
    shell.done(*TOGETHER["detector"][0].split())
    texts = [f"lesson {number}" for number in range(4)]
    words = [("match-list", "add", "d.zip", text, "--label", "harmful") for text in texts]
    assert [end(process)[0] for process in [start(shell, *said) for said in words]] == [0] * 4
    known = json.loads(shell.done("match-list", "list", "d.zip", "--json"))
    assert sorted(one["text"] for one in known) == texts
    judged = json.loads(shell.done("detector", "predict", "d.zip", *texts, "--json"))
    assert [row["label"] for row in judged] == [1] * 4


def wait_for_link(process: subprocess.Popen[str], seconds: float = 120) -> str:
    """The link that the annotation app prints when it is about to serve."""
    limit = threading.Timer(seconds, process.kill)
    limit.start()
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if found := re.search(r"http://\S+/enter/\S+", line):
                return found[0]
    finally:
        limit.cancel()
    raise AssertionError(f"no link; it ended with {process.wait(60)}")


@pytest.mark.slow
def test_two_annotation_apps_on_one_queue_share_a_project(shell: Shell) -> None:
    """Each found no account and no project, and made its own."""
    put_texts(shell)
    shell.done(
        "screen", "texts.jsonl", "--out", "out", "--review-range", "0.0..1.0", "--workers", "1"
    )
    words = ("annotate", "out/review", "--db", "a.db", "--port", "0")
    apps = [start(shell, *words, stdout=subprocess.PIPE) for _ in range(2)]
    try:
        links = [wait_for_link(app) for app in apps]
        seen = []
        for link in links:
            with httpx.Client(follow_redirects=True, timeout=60) as client:
                page = client.get(link)
                assert page.status_code == 200
                seen.append(page.url.path)
        assert seen[0] == seen[1]  # the page of the one project
    finally:
        for app in apps:
            app.terminate()
        ended = [app.communicate(timeout=60)[1] for app in apps]
    assert not [said for said in ended if "Traceback" in said or "error" in said.lower()], ended
    shell.done("annotate", "export", "1", "--db", "a.db", "--what", "raw", "--out", "raw.jsonl")
    line = shell.refused("annotate", "export", "2", "--db", "a.db", "--out", "raw.jsonl")
    assert "unknown project" in line


@pytest.mark.slow
def test_a_second_service_on_the_same_jobs_is_refused(shell: Shell) -> None:
    """It would run every job twice."""
    words = ("serve", "--port", "0", "--state", "state")
    started = [start(shell, *words) for _ in range(2)]
    refused = None
    try:
        ends = time.monotonic() + 120
        while refused is None and time.monotonic() < ends:
            refused = next((one for one in started if one.poll() is not None), None)
            time.sleep(0.1)
        assert refused is not None
        code, said = end(refused)
        assert code == 2
        assert re.match(r"error: another service uses the job folder .*state; choose", said)
        assert [one.poll() for one in started if one is not refused] == [None]
    finally:
        for one in started:
            if one.poll() is None:
                one.terminate()
                one.communicate(timeout=90)


KILLED = {
    "detector train": (TOGETHER["detector"][0], ["d.zip"]),
    "build": (TOGETHER["build"][0], ["b/knowledge.jsonl", "b/memes.jsonl"]),
    "kb import": (TOGETHER["kb"][0], []),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(KILLED))
def test_ten_kills_and_a_rerun_give_the_same(shell: Shell, name: str) -> None:
    command, files = KILLED[name]
    alone = Shell(shell.folder / "alone")
    alone.folder.mkdir()
    began = time.monotonic()
    assert end(start(alone, *command.split()))[0] == 0
    takes, chance = time.monotonic() - began, random.Random(SEED)
    killed = 0
    for _ in range(10):
        process = start(shell, *command.split())
        time.sleep(takes * chance.uniform(0.4, 1))
        process.send_signal(signal.SIGKILL)
        killed += end(process)[0] == -signal.SIGKILL
    assert killed
    assert end(start(shell, *command.split()))[0] == 0
    assert digest(shell.folder, files) == digest(alone.folder, files)
    if name == "kb import":
        told = [space.done("kb", "stats", "--store", "kb", "--json") for space in (shell, alone)]
        assert told[0] == told[1]
