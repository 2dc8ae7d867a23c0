"""Scores of runs for other tools, read by these tools where they are installed."""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from huggingface_hub import parse_eval_result_entries

import memantics as mm
from memantics.core.errors import InputError
from memantics.evaluation import export_results
from tests.commands import Shell
from tests.serve.clients import find_python

jsonschema: Any = importlib.import_module("jsonschema")
SCHEMAS = Path(__file__).with_name("every_eval_ever")
READ = """
import json, sys, mlflow
client = mlflow.MlflowClient("file://" + sys.argv[1])
(experiment,) = [e for e in client.search_experiments() if e.name != "Default"]
runs = client.search_runs([experiment.experiment_id], filter_string="metrics.accuracy >= 0")
print(json.dumps([experiment.name, [[r.info.run_name, r.info.status, r.data.metrics, r.data.params]
    for r in runs]]))
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> mm.Run:
    out = tmp_path_factory.mktemp("runs")
    settings = mm.EvaluationSettings(limit=8)
    return mm.evaluate("mquest/qa", "baseline/longest", settings=settings, out=out)


def test_hub_results_are_read_by_the_library_of_the_hub(run: mm.Run, tmp_path: Path) -> None:
    (file,) = export_results([run.folder], tmp_path, form="hf", dataset="me/mquest")
    assert file.relative_to(tmp_path).parts[1:] == (".eval_results", "mquest_qa.yaml")
    (entry,) = parse_eval_result_entries(yaml.safe_load(file.read_text("utf-8")))
    assert (entry.dataset_id, entry.task_id) == ("me/mquest", "mquest_qa")
    assert entry.value == run.scores["accuracy"].value
    assert entry.notes is not None
    assert "accuracy, n = 8; 95 % CI" in entry.notes
    assert "sample data" in entry.notes
    for wrong in ("", "mquest", "a/b/c", "../a"):
        with pytest.raises(InputError, match="OWNER/NAME"):
            export_results([run.folder], tmp_path, form="hf", dataset=wrong)


def test_a_second_export_replaces_the_first(run: mm.Run, tmp_path: Path) -> None:
    (first,) = export_results([run.folder], tmp_path, form="mlflow")
    (second,) = export_results([run.folder], tmp_path, form="mlflow")
    assert first == second
    value = (first / "metrics" / "accuracy").read_text("utf-8").split()
    assert float(value[1]) == run.scores["accuracy"].value
    assert not list(tmp_path.rglob("*..*"))


@pytest.mark.slow
def test_mlflow_reads_its_store(run: mm.Run, tmp_path: Path) -> None:
    python = find_python("mlflow")
    shell = Shell(tmp_path)
    shell.done("export-results", run.folder, "--format", "mlflow", "--out", tmp_path / "store")
    done = subprocess.run(
        [python, "-c", READ, str(tmp_path / "store")],
        capture_output=True, text=True, check=False,
        env=dict(os.environ) | {"MLFLOW_ALLOW_FILE_STORE": "true", "PYTHONPATH": ""},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    name, ((title, status, metrics, params),) = json.loads(done.stdout)
    assert (name, title, status) == ("mquest/qa", run.name, "FINISHED")
    assert metrics["accuracy"] == run.scores["accuracy"].value
    assert metrics["accuracy.low"] < metrics["accuracy"] < metrics["accuracy.high"]
    assert metrics["items.answered"] == 8
    assert params["model"] == "baseline/longest"


WRITE = """
import json, sys
sys.path.extend(json.loads(sys.argv[3]))
from pathlib import Path
from memantics.evaluation import export_results
from wandb.proto import wandb_internal_pb2
(place,) = export_results([Path(sys.argv[1])], Path(sys.argv[2]), form="wandb-offline")
(file,) = place.glob("*.wandb")
data, place, whole, found = file.read_bytes(), 7, b"", {}
while place + 7 <= len(data):  # a log of LevelDB: blocks of 32 KB, records in pieces
    if 32768 - place % 32768 < 7:
        place += 32768 - place % 32768
        continue
    size, kind = int.from_bytes(data[place + 4 : place + 6], "little"), data[place + 6]
    whole, place = whole + data[place + 7 : place + 7 + size], place + 7 + size
    if kind not in (1, 4):
        continue
    record, whole = wandb_internal_pb2.Record.FromString(whole), b""
    found |= {item.key or item.nested_key[0]: json.loads(item.value_json)
        for item in record.summary.update}
    if record.WhichOneof("record_type") == "run":
        found["project"], found["name"] = record.run.project, record.run.display_name
print(json.dumps(found))
"""


@pytest.mark.slow
def test_wandb_reads_the_offline_run(run: mm.Run, tmp_path: Path) -> None:
    """In the environment of wandb, which finds our packages after its own."""
    python = find_python("wandb")
    more = json.dumps([path for path in sys.path if path])
    done = subprocess.run(
        [python, "-c", WRITE, str(run.folder), str(tmp_path), more],
        capture_output=True, text=True, check=False,
        env=dict(os.environ) | {"PYTHONPATH": "", "WANDB_ERROR_REPORTING": "false"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert (found["project"], found["name"]) == ("mquest_qa", run.name)
    assert found["accuracy"] == run.scores["accuracy"].value
    assert found["accuracy.low"] < found["accuracy"]
    assert not list(tmp_path.rglob("requirements.txt"))


def copy(run: mm.Run, folder: Path) -> None:
    """A copy of a run that a test may change."""
    folder.mkdir()
    for name in ("run.json", "items.jsonl", "answers.jsonl", "scores.json"):
        (folder / name).write_bytes((run.folder / name).read_bytes())


def read_records(file: Path, root: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """An aggregate record and its instances, both valid under the published schemas."""
    record = json.loads(file.read_text("utf-8"))
    samples = root / record["detailed_evaluation_results"]["file_path"]
    instances = [json.loads(line) for line in samples.read_text("utf-8").splitlines()]
    for name, values in (("eval", [record]), ("instance_level_eval", instances)):
        schema = json.loads((SCHEMAS / f"{name}.schema.json").read_text("utf-8"))
        check = jsonschema.Draft7Validator(schema)
        for value in values:
            check.validate(value)
    told = record["detailed_evaluation_results"]
    assert told["checksum"] == hashlib.sha256(samples.read_bytes()).hexdigest()
    assert told["total_rows"] == len(instances)
    return record, instances


def test_every_eval_ever_has_scores_and_instances_with_image_hashes(
    run: mm.Run, tmp_path: Path
) -> None:
    (file,) = export_results([run.folder], tmp_path, form="eee", organization="A lab")
    record, instances = read_records(file, tmp_path)
    main = {one["evaluation_result_id"]: one for one in record["evaluation_results"]}[
        "mquest.qa.accuracy"
    ]
    score = run.scores["accuracy"]
    assert main["score_details"]["score"] == score.value
    uncertainty = main["score_details"]["uncertainty"]
    assert (uncertainty["confidence_interval"]["lower"], uncertainty["num_samples"]) == (
        score.low,
        8,
    )
    assert record["source_metadata"]["source_organization_name"] == "A lab"
    assert len(instances) == 8
    assert sum(one["evaluation"]["is_correct"] for one in instances) == round(
        8 * (score.value or 0)
    )
    frame = run.to_pandas()
    by_id = {one["sample_id"]: one for one in instances}
    for row in frame.to_dict("records"):
        one = by_id[row["item"]]
        assert one["input"]["reference"] == [row["gold"]]
        assert one["output"]["raw"] == [row["reply"]]
        assert one["evaluation"]["is_correct"] == (row["answer"] == row["gold"])
        assert one["metadata"]["image_1"].startswith(row["meme"])
        assert len(one["metadata"]["image_1_sha256"]) == 64
    (again,) = export_results([run.folder], tmp_path, form="eee", organization="A lab")
    assert again == file
    assert len(list(tmp_path.rglob("*.json*"))) == 2


def test_every_eval_ever_keeps_names_inside_the_folder(run: mm.Run, tmp_path: Path) -> None:
    """Names of models come from files: they are one component of a path each."""
    for name in ("openai/../../up", "openai/a:b", "openai/CON", "openai//x", "openai/data"):
        folder = tmp_path / hashlib.sha256(name.encode()).hexdigest()
        copy(run, folder)
        facts = json.loads((folder / "run.json").read_text("utf-8")) | {"model": name}
        (folder / "run.json").write_text(json.dumps(facts), "utf-8")
        out = tmp_path / "out"
        (file,) = export_results([folder], out, form="eee", developer="../../acme")
        assert len(file.resolve().relative_to((out / "data").resolve()).parts) == 4
        read_records(file, out)


def test_every_eval_ever_hashes_no_image_outside_the_data(
    run: mm.Run, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder, secret = tmp_path / "run", tmp_path_factory.mktemp("elsewhere") / "secret.png"
    copy(run, folder)
    lines = (folder / "items.jsonl").read_text("utf-8").splitlines()
    secret.write_bytes(b"secret")
    first = json.loads(lines[0])
    first["item"]["images"] = [{"path": str(secret)}]
    lines[0] = json.dumps(first)
    (folder / "items.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    (file,) = export_results([folder], tmp_path / "out", form="eee")
    _, instances = read_records(file, tmp_path / "out")
    (one,) = [one for one in instances if one["sample_id"] == first["item"]["id"]]
    assert one["metadata"]["image_1"] == "secret.png"
    assert "image_1_sha256" not in one["metadata"]


def test_every_eval_ever_counts_missing_answers_as_wrong(run: mm.Run, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    copy(run, folder)
    lines = [
        json.loads(line) for line in (folder / "answers.jsonl").read_text("utf-8").splitlines()
    ]
    lines[0] |= {"status": "refused", "value": None, "reason": "declined"}
    (folder / "answers.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines), "utf-8")
    (file,) = export_results([folder], tmp_path / "out", form="eee", dataset="me/mquest")
    record, instances = read_records(file, tmp_path / "out")
    (one,) = [one for one in instances if one["sample_id"] == lines[0]["item"]]
    assert one["evaluation"] == {"score": 0.0, "is_correct": False}
    assert (one["error"], one["answer_attribution"]) == ("refused: declined", [])
    assert record["evaluation_results"][0]["source_data"]["hf_repo"] == "me/mquest"


@pytest.mark.slow
def test_the_validator_of_every_eval_ever_accepts_the_records(run: mm.Run, tmp_path: Path) -> None:
    """Its own program, which needs Python 3.12."""
    tool = find_python("every_eval_ever").with_name("every_eval_ever")
    export_results([run.folder], tmp_path, form="eee", organization="A lab", developer="acme")
    files = [str(path.relative_to(tmp_path)) for path in sorted(tmp_path.rglob("*.json*"))]
    done = subprocess.run(
        [tool, "validate", *files], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    assert "2 passed, 0 warning-only, 0 failed" in done.stdout
