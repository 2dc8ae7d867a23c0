"""Detectors and match lists that are pipes, devices or damaged: one error, no hang, no path."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from memantics.core.errors import MemanticsError, StoreError
from memantics.moderation import Detector
from memantics.moderation.match_index import MatchEntry, MatchList
from memantics.moderation.neural import saved
from memantics.serve.settings import ServedModels, ServeSettings
from tests.hostile.cases import SEED, Case, count_cases, noted
from tests.hostile.detectors import SOUND
from tests.hostile.places import DAMAGES, KINDS, damage, generate
from tests.serve.site import Site, serving

TEXT = "今天天气不错"
FILES = (
    *("entries.jsonl", "sha.npy", "text.npy", "pdq.npy"),
    *(f"phash-{turn}.npy" for turn in range(4)),
)
OPEN = """
import resource, sys
from pathlib import Path
from memantics.core.errors import MemanticsError
from memantics.moderation import Detector
resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
for place in sys.argv[1:]:
    try:
        Detector.load(Path(place))
    except MemanticsError as error:
        print(str(error).count("\\n"))
"""


@pytest.mark.slow
def test_a_detector_that_is_a_pipe_or_a_device_is_refused(tmp_path: Path) -> None:
    """In a process of its own, with an end: the pipe hung, and the device filled the memory."""
    places = []
    for case in generate(SEED, len(KINDS), ["d.zip"], KINDS):
        path = tmp_path / f"{case['kind']}.zip"
        damage(path, case)
        places.append(str(path))
    for name in (saved.FACTS, saved.SUMMARY):
        folder = tmp_path / f"neural-{name}"
        folder.mkdir()
        damage(folder / name, {"kind": "pipe"})
        places.append(str(folder))
    done = subprocess.run(
        [sys.executable, "-c", OPEN, *places],
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.stdout.split() == ["0"] * len(places), done.stderr


def test_a_neural_detector_with_a_pipe_among_its_files_is_refused(tmp_path: Path) -> None:
    for name in (saved.FACTS, saved.SUMMARY):
        damage(tmp_path / name, {"kind": "pipe"})
        assert not saved.is_neural(tmp_path)
    damage(tmp_path / "d.onnx.zip", {"kind": "pipe"})
    assert not saved.is_neural(tmp_path / "d.onnx.zip")
    with pytest.raises(StoreError, match="not a regular file"):
        saved.open_deployed(tmp_path / "d.onnx.zip")


@pytest.fixture
def detector(tmp_path: Path) -> Path:
    """A detector with a match list of three entries."""
    made = tmp_path / "d.zip"
    shutil.copy(SOUND, made)
    MatchList.beside(made).add(
        [
            MatchEntry("a", "harmful", "why", TEXT),
            MatchEntry("b", "harmful", sha256="0" * 64, phash="0" * 16, pdq="f" * 64),
            MatchEntry("c", "harmless", text="Monday again"),
        ]
    )
    return made


def look(match_list: MatchList) -> list[str]:
    found = (
        match_list.find(text=TEXT),
        match_list.find(text="", sha256="0" * 64),
        match_list.find(text="Monday again"),
        match_list.find(text="", phash="0" * 16),
        match_list.find(text="", pdq="f" * 64),
    )
    return [one.entry.id if one else "" for one in found]


def test_a_damaged_match_list_is_one_error_and_never_forgotten(
    detector: Path, tmp_path: Path
) -> None:
    sound = MatchList.beside(detector).folder
    assert look(MatchList(sound)) == ["a", "b", "c", "b", "b"]
    ends: Counter[str] = Counter()
    for number, case in enumerate(generate(SEED, count_cases(45), FILES, DAMAGES)):
        with noted("places", case):
            folder = tmp_path / f"copy-{number}"
            shutil.copytree(sound, folder)
            opened = MatchList(folder)
            look(opened)
            damage(folder / case["name"], case)
            for one in (opened, MatchList(folder)):
                try:
                    look(one)
                    ends["read"] += 1
                except StoreError as error:
                    assert str(folder) in str(error)  # noqa: PT017 - most cases raise it
                    ends["refused"] += 1
            shutil.rmtree(folder)
    assert ends["refused"] > ends["read"]


@pytest.mark.parametrize("name", FILES[:3])
def test_a_missing_or_empty_file_of_a_match_list_is_an_error(detector: Path, name: str) -> None:
    folder = MatchList.beside(detector).folder
    for kind in ("empty", "missing"):
        damage(folder / name, {"kind": kind})
        with pytest.raises(StoreError, match=r"cannot be read|incomplete|entries\.jsonl"):
            Detector.load(detector).verdicts([TEXT])


def test_a_match_list_that_vanishes_is_not_forgotten(detector: Path) -> None:
    loaded = Detector.load(detector)
    assert loaded.verdicts([TEXT])[0].matched_id == "a"
    shutil.rmtree(MatchList.beside(detector).folder)
    with pytest.raises(StoreError, match="is missing"):
        loaded.verdicts([TEXT])
    assert Detector.load(detector).verdicts([TEXT])[0].matched_id == ""  # deleted on purpose


def test_a_first_entry_that_could_not_be_written_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from memantics.moderation import match_index

    match_list, save = MatchList(tmp_path / "list"), match_index.save_array

    def fail(path: Path, values: object) -> None:
        if path.name == "text.npy":
            raise StoreError("full")
        save(path, values)  # type: ignore[arg-type]

    monkeypatch.setattr(match_index, "save_array", fail)
    with pytest.raises(StoreError, match="full"):
        match_list.add([MatchEntry("a", "harmful", "", TEXT)])
    assert MatchList(match_list.folder).find(text=TEXT) is None
    monkeypatch.undo()
    match_list.add([MatchEntry("a", "harmful", "", TEXT)])
    assert MatchList(match_list.folder).find(text=TEXT) is not None


def ask(site: Site) -> tuple[int, dict[str, object]]:
    with site.client() as client:
        answer = client.post("/v1/moderations", json={"input": TEXT})
    return answer.status_code, answer.json()


@pytest.mark.slow
def test_the_service_says_503_without_a_path_and_keeps_what_it_has(
    detector: Path, tmp_path: Path
) -> None:
    folder = MatchList.beside(detector).folder
    kept = tmp_path / "kept"
    shutil.copytree(folder, kept)
    settings = ServeSettings(models=ServedModels(detector), state=tmp_path / "state")
    with serving(settings, tmp_path / "home") as site:
        assert ask(site)[0] == 200
        for kind in ("empty", "cut", "missing", "pipe"):
            case: Case = {"kind": kind, "at": 0.5}
            damage(folder / "text.npy", case)
            status, said = ask(site)
            assert (status, said["error"]["code"]) == (503, "store_error"), kind  # type: ignore[index]
            assert str(tmp_path) not in json.dumps(said)
            with site.client() as client:
                again = client.post("/v1/detectors/reload")
                assert again.status_code == 503
                assert str(tmp_path) not in again.text
                assert client.get("/healthz").status_code == 200
            shutil.rmtree(folder)
            shutil.copytree(kept, folder)
            assert ask(site)[0] == 200
        # A detector that becomes a pipe: the loaded one stays.
        damage(detector, {"kind": "pipe"})
        with site.client() as client:
            assert client.post("/v1/detectors/reload").status_code == 422
        assert ask(site)[0] == 200
    with pytest.raises(MemanticsError), serving(settings, tmp_path / "home"):
        pass


@pytest.mark.slow
def test_a_failing_database_of_jobs_is_503(tmp_path: Path) -> None:
    settings = ServeSettings(state=tmp_path / "state")
    with serving(settings, tmp_path / "home") as site, site.client() as client:
        assert client.get("/v1/jobs/none").status_code == 404
        with site.service.jobs._lock:
            site.service.jobs._db.execute("ALTER TABLE jobs RENAME TO gone")
        for path in ("/v1/jobs/none", "/metrics", "/v1/jobs/none/events"):
            answer = client.get(path)
            assert answer.status_code == 503, path
            assert answer.headers["retry-after"]
            assert "jobs" not in answer.json()["error"]["message"]
        with site.service.jobs._lock:
            site.service.jobs._db.execute("ALTER TABLE gone RENAME TO jobs")
        assert client.get("/v1/jobs/none").status_code == 404
