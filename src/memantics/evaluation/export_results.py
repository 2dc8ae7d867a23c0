"""Export the scores of runs: MLflow, Hugging Face, Weights & Biases, Every Eval Ever.

Files in YAML are written as JSON, which every YAML reader accepts.
"""

from __future__ import annotations

import hashlib
import importlib
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import orjson

from memantics.core.errors import InputError, need_packages
from memantics.core.files import in_turn, refuse_unwritable, replace_file
from memantics.core.parameters import Flag
from memantics.core.records import Score
from memantics.evaluation.every_eval_ever import UNKNOWN, Publisher, write_records
from memantics.evaluation.options import Folders
from memantics.evaluation.reports.runs import Run, load_runs

ResultsFormat = Literal["mlflow", "hf", "wandb-offline", "eee"]
_OTHERS = re.compile(r"[^\w.\- ]")
_LONGEST = 200  # characters of a name; MLflow allows 250
_VALUE = 5000  # characters of a parameter
_HUB_ID = re.compile(r"\w[\w.-]*/\w[\w.-]*")


def export_results(
    folders: Folders,
    out: Annotated[Path, Flag("Output folder.")] = Path("results"),
    *,
    form: Annotated[
        ResultsFormat,
        Flag("mlflow, hf (Hugging Face), wandb-offline or eee (Every Eval Ever).", "--format"),
    ],
    dataset: Annotated[
        str, Flag("For hf and eee: id of the benchmark's dataset on the hub, OWNER/NAME.")
    ] = "",
    organization: Annotated[
        str, Flag("With --format eee: name of the evaluating organization.")
    ] = UNKNOWN,
    developer: Annotated[
        str, Flag("With --format eee: developer of models whose name has no 'owner/' prefix.")
    ] = UNKNOWN,
) -> list[Path]:
    """Export the scores of runs for MLflow, Hugging Face, Weights & Biases or Every Eval Ever.

    Args:
        folders: Run directories.
        out: ``mlflow``: the store, which may exist. ``hf``: a folder per model, to copy into the
            repository of the model.
        form: ``mlflow`` writes an experiment per task and a run per run, with parameters, metrics
            and confidence intervals. ``hf`` writes the main metric to ``.eval_results/*.yaml``.
            ``wandb-offline`` writes runs that ``wandb sync`` uploads (extra: wandb). ``eee`` writes
            an aggregate record and instance records per run, in the schema 0.3.0.
        dataset: For ``hf`` and ``eee``: id of the benchmark's dataset on the hub, ``OWNER/NAME``.
        organization: For ``eee``: name of the evaluating organization.
        developer: For ``eee``: developer of models whose name has no owner.

    Returns:
        The folders of the runs, or the files (``hf``, ``eee``). A second export replaces them,
        except offline runs of ``wandb``, which keep the id of the run.

    Raises:
        InputError: If a run is not finished, or ``hf`` has no valid dataset id.
        MissingExtra: If ``wandb-offline`` is asked for and wandb is not installed.
    """
    if dataset and not _HUB_ID.fullmatch(dataset):
        raise InputError(
            f"--dataset {dataset!r} is not the id of a dataset on the hub",
            hint="give OWNER/NAME of the benchmark's dataset",
        )
    runs = load_runs(folders)
    with refuse_unwritable(out, "choose another folder with --out"):
        out.mkdir(parents=True, exist_ok=True)
        with in_turn(out):
            if form == "mlflow":
                return [_write_mlflow(run, out) for run in runs]
            if form == "wandb-offline":
                return [_write_wandb(run, out) for run in runs]
            if form == "eee":
                publisher = Publisher(organization, developer, dataset)
                return [write_records(run, out, publisher) for run in runs]
            return _write_hub(runs, out, dataset)


def _write_mlflow(run: Run, store: Path) -> Path:
    began, ended = (_read_moment(moment) for moment in (run.facts.started, run.facts.finished))
    experiment = _number(run.task)
    place = store / experiment
    head: dict[str, Any] = {
        "artifact_location": place.resolve().as_uri(),
        "creation_time": began,
        "experiment_id": experiment,
        "last_update_time": ended or began,
        "lifecycle_stage": "active",
        "name": run.task,
    }
    _write(place / "meta.yaml", orjson.dumps(head))
    name = _name_run(run)
    folder = place / name
    facts: dict[str, Any] = {
        "artifact_uri": (folder.resolve() / "artifacts").as_uri(),
        "start_time": began,
        "end_time": ended,
        "entry_point_name": "",
        "experiment_id": experiment,
        "lifecycle_stage": "active",
        "run_id": name,
        "run_name": run.name,
        "source_name": "",
        "source_type": 4,
        "source_version": "",
        "status": 3 if ended else 1,
        "tags": [],
        "user_id": "",
    }
    _write(folder / "meta.yaml", orjson.dumps(facts))
    (folder / "artifacts").mkdir(parents=True, exist_ok=True)
    for key, value in _list_metrics(run):
        _write(folder / "metrics" / key, f"{ended or began} {value!r} 0\n".encode())
    for key, text in _list_params(run).items():
        _write(folder / "params" / _clean(key), text[:_VALUE].encode())
    tags = {"mlflow.runName": run.name, "mlflow.source.name": "memantics", "data": run.kind}
    for key, text in tags.items():
        _write(folder / "tags" / key, text.encode())
    return folder


def _list_metrics(run: Run) -> Iterator[tuple[str, float]]:
    for score in run.results.scores:
        if score.value is None:
            continue
        key = _clean(".".join(filter(None, (score.key, score.by, score.label))))
        yield key, score.value
        if score.interval is not None:
            yield f"{key}.low", score.interval[0]
            yield f"{key}.high", score.interval[1]
    for status, count in run.counts.items():
        yield f"items.{status}", float(count)
    usage = run.results.usage
    yield from (("tokens_in", float(usage.tokens_in)), ("tokens_out", float(usage.tokens_out)))


def _list_params(run: Run) -> Mapping[str, str]:
    facts = run.facts
    known = {
        "model": facts.model,
        "split": facts.split,
        "limit": "" if facts.limit is None else str(facts.limit),
        "invalid": facts.invalid,
        "repeat": str(facts.repeat),
        "perturbation": facts.perturbation,
        "memantics": facts.version,
        "fingerprint": facts.fingerprint,
    }
    known |= {f"option.{name}": value for name, value in facts.options.items()}
    return {name: value for name, value in known.items() if value}


def _write_wandb(run: Run, out: Path) -> Path:
    """Write a run with wandb itself, whose offline format is not documented; nothing is sent."""
    need_packages("runs of wandb", "wandb", "wandb")
    wandb: Any = importlib.import_module("wandb")
    quiet = wandb.Settings(
        silent=True,
        console="off",
        x_disable_stats=True,
        x_disable_meta=True,
        x_save_requirements=False,
        disable_git=True,
        disable_code=True,
    )
    made = wandb.init(
        mode="offline",
        dir=str(out),
        project=_clean(run.task.replace("/", "_")),
        name=run.name,
        id=_name_run(run),
        config=dict(_list_params(run)),
        settings=quiet,
    )
    place = Path(made.dir).parent
    made.summary.update(dict(_list_metrics(run)))
    made.finish()
    if wandb.run is None:
        wandb.teardown()  # its process writes the file after 'finish' has returned
    return place


def _name_run(run: Run) -> str:
    """Return an id that is the same for the same run, so that a second export replaces it."""
    return hashlib.sha256(f"{run.facts.fingerprint} {run.facts.repeat}".encode()).hexdigest()[:32]


def _write_hub(runs: Sequence[Run], out: Path, dataset: str) -> list[Path]:
    if not dataset:
        raise InputError(
            "--format hf needs the id of a dataset on the hub",
            hint="give OWNER/NAME of the benchmark's dataset with --dataset",
        )
    found: dict[Path, list[dict[str, Any]]] = {}
    for run in runs:
        main = run.scores.get(run.results.main)
        if main is None or main.value is None:
            raise InputError(f"{run.folder} has no main metric", hint="score it, or leave it out")
        place = out / _clean(run.model.replace("/", "__")) / ".eval_results"
        entry: dict[str, Any] = {
            "dataset": {"id": dataset, "task_id": run.task.replace("/", "_")},
            "value": main.value,
            "notes": _describe(run, main),
        }
        if run.facts.finished:
            entry["date"] = run.facts.finished
        found.setdefault(place / f"{_clean(run.task.replace('/', '_'))}.yaml", []).append(entry)
    for file, entries in found.items():
        _write(file, orjson.dumps(entries, option=orjson.OPT_INDENT_2))
    return list(found)


def _describe(run: Run, main: Score) -> str:
    facts = run.facts
    parts = [f"{main.key}, n = {main.n:,}"]
    if main.interval is not None:
        parts.append(f"95 % CI {main.interval[0]:.4f} to {main.interval[1]:.4f}")
    parts += [f"split {facts.split}"] if facts.split else []
    parts += [f"first {facts.limit} items"] if facts.limit is not None else []
    parts += [f"perturbation {facts.perturbation}"] if facts.perturbation else []
    parts += ["sample data"] if run.kind == "sample" else []
    parts += [f"{name}={value}" for name, value in facts.options.items()]
    return "; ".join((*parts, f"Memantics {facts.version}"))


def _read_moment(text: str) -> int | None:
    return round(datetime.fromisoformat(text).timestamp() * 1000) if text else None


def _number(text: str) -> str:
    """Return the number of an experiment: MLflow's ids are whole numbers.

    >>> _number("mquest/qa").isdecimal()
    True
    """
    return str(int(hashlib.sha256(text.encode()).hexdigest()[:15], 16))


def _clean(name: str) -> str:
    """Return a name without characters that the formats do not allow.

    >>> _clean("f1 (macro)/en"), _clean("..")
    ('f1 _macro__en', '_.')
    """
    cleaned = _OTHERS.sub("_", name)[:_LONGEST]
    return f"_{cleaned[1:]}" if cleaned.startswith(".") else cleaned


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, data, "results")
