"""Questions that would never end do end: in time, in bounded memory, and others are answered."""

from __future__ import annotations

import resource
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import orjson
import pytest

from memantics.core.errors import MemanticsError
from memantics.serve.settings import ServedModels, ServeSettings
from memantics.understanding.kb import SAMPLE, KnowledgeStore
from memantics.understanding.knowledge.answering import MEMORY
from tests.commands import Shell
from tests.hostile.cases import SEED, count_cases, noted
from tests.hostile.starving import KINDS, generate
from tests.serve.site import serving

pytestmark = pytest.mark.slow
SECONDS = 2.0
PATIENT = 10.0  # a busy machine starts a process in seconds


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("starving") / "store"
    KnowledgeStore.create(made).import_path(SAMPLE)
    return made


def test_questions_end_in_time(folder: Path) -> None:
    # In a process of its own: a helper counts as no smaller than the process that started it.
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        ends, taken = pool.submit(_starve, folder).result()
    assert "seconds" in ends
    assert taken < MEMORY + 1024**3


def _starve(folder: Path) -> tuple[set[str], int]:
    """How the questions ended, and the memory of the greediest helper."""
    store, ends = KnowledgeStore.open(folder), set()
    for query in generate(SEED, count_cases(len(KINDS))):
        with noted("starving", {"query": query}):
            began = time.monotonic()
            try:
                store.query(query, limit=10, timeout=SECONDS)
                ends.add("answered")
            except MemanticsError as error:
                assert "\n" not in str(error)  # noqa: PT017 - what the line looks like
                ends.add("seconds" if "seconds" in str(error) else "refused")
            assert time.monotonic() - began < SECONDS + PATIENT
    return ends, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024


def test_the_command_ends_in_one_line(folder: Path, shell: Shell) -> None:
    query = "SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l }"
    ran = shell.run("kb", "query", query, "--store", folder, "--timeout", "1")
    assert ran.code == 2
    assert ran.err.startswith("error: the query took more than 1 seconds")
    assert len(ran.err.strip().splitlines()) == 1


def test_the_helper_ends_without_who_asked(folder: Path) -> None:
    """Where the service is killed, nobody is left to stop its queries."""
    query = "SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l }"
    head = {"folder": str(folder), "query": query, "limit": 1, "seconds": 0.5}
    done = subprocess.run(
        [sys.executable, "-m", "memantics.understanding.knowledge.answering"],
        input=orjson.dumps(head),
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == -signal.SIGALRM


def test_the_service_answers_others_meanwhile(folder: Path, tmp_path: Path) -> None:
    settings = ServeSettings(models=ServedModels(store=folder), state=tmp_path / "state")
    statuses: list[int] = []

    def starve(number: int, query: str) -> None:
        with site.client() as client:
            if number % 2:
                answer = client.post("/v1/knowledge/query", json={"query": query})
            else:
                answer = client.get("/browse/store/query", params={"q": query})
            statuses.append(answer.status_code)

    with serving(settings, tmp_path / "home") as site, site.client() as client:
        client.post("/v1/moderations", json={"input": "hello"})
        queries = [q for q in generate(SEED, 12) if len(q) < 3000]
        threads = [threading.Thread(target=starve, args=(n, q)) for n, q in enumerate(queries)]
        for thread in threads:
            thread.start()
        slowest = 0.0
        while any(thread.is_alive() for thread in threads):
            began = time.monotonic()
            assert client.post("/v1/moderations", json={"input": "hello"}).status_code == 200
            slowest = max(slowest, time.monotonic() - began)
            time.sleep(0.2)
        assert client.get("/readyz").status_code == 200
    assert slowest < PATIENT
    assert set(statuses) <= {200, 400, 422, 429, 503, 504}
