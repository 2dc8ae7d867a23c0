"""Writes the fixtures with the tools themselves; their files are too heavy for the environment.

Get lmms-eval 0.7.3, lm-eval 0.4.13 and VLMEvalKit (ms-vlmeval 0.0.20) from PyPI without their
dependencies, put them on the path, and run for ``lmms-eval``, ``lm-eval`` and ``vlmevalkit``::

    python tests/exchange/make_fixtures.py TOOL FOLDER

The folder is what ``memantics export-task mquest/qa --format TOOL --out FOLDER`` wrote. A scripted
model answers as ``tests/exchange/replies.py`` says, and the tool's own code asks and writes.
"""

from __future__ import annotations

import os
import shutil
import sys
import types
from pathlib import Path
from typing import Any

import orjson

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent))
FIXTURES = HERE / "fixtures"


def replies(folder: Path) -> list[str]:
    """The scripted answer to each record, in order."""
    from tests.exchange.replies import plan_reply

    with (folder / "data.jsonl").open("rb") as file:
        return [plan_reply(n, orjson.loads(line)["gold"]) for n, line in enumerate(file)]


def write_lmms_eval(folder: Path) -> None:
    from lmms_eval.api.model import lmms
    from lmms_eval.evaluator import simple_evaluate
    from lmms_eval.loggers.evaluation_tracker import EvaluationTracker
    from lmms_eval.tasks import TaskManager

    said = replies(folder)

    class Scripted(lmms):  # type: ignore[misc]
        def generate_until(self, requests: Any) -> list[str]:
            return [said[request.args[3]] for request in requests]

        def loglikelihood(self, requests: Any) -> Any:
            raise NotImplementedError

        def generate_until_multi_round(self, requests: Any) -> Any:
            raise NotImplementedError

    os.chdir(folder)
    manager = TaskManager(include_path=str(folder), include_defaults=False)
    name = next(folder.glob("*.yaml")).stem
    found = simple_evaluate(Scripted(), tasks=[name], task_manager=manager, log_samples=True)
    tracker = EvaluationTracker(output_path=str(folder / "results"))
    tracker.general_config_tracker.model_name_sanitized = "scripted"
    tracker.date_id = "20260101_000000"
    tracker.save_results_samples(name, found["samples"][name])
    shutil.copy(next((folder / "results" / "scripted").glob("*_samples_*.jsonl")), FIXTURES)


def write_lm_eval(folder: Path) -> None:
    from lm_eval.api.model import LM
    from lm_eval.evaluator import simple_evaluate
    from lm_eval.loggers.evaluation_tracker import EvaluationTracker
    from lm_eval.tasks import TaskManager

    said = replies(folder)

    class Scripted(LM):  # type: ignore[misc]
        MULTIMODAL = True

        def generate_until(self, requests: Any) -> list[str]:
            return [said[request.doc_id] for request in requests]

        def loglikelihood(self, requests: Any) -> Any:
            raise NotImplementedError

        def loglikelihood_rolling(self, requests: Any) -> Any:
            raise NotImplementedError

    os.chdir(folder)
    manager = TaskManager(include_path=str(folder), include_defaults=False)
    name = next(folder.glob("*.yaml")).stem
    found = simple_evaluate(Scripted(), tasks=[name], task_manager=manager, log_samples=True)
    tracker = EvaluationTracker(output_path=str(folder / "results"))
    tracker.general_config_tracker.model_name_sanitized = "scripted"
    tracker.date_id = "2026-01-01T00-00-00"
    tracker.save_results_samples(name, found["samples"][name])
    shutil.copy(next((folder / "results" / "scripted").glob("samples_*.jsonl")), FIXTURES)


def write_vlmevalkit(folder: Path) -> None:
    # Its package imports every model it knows: only the part that reads and writes is wanted.
    package = types.ModuleType("vlmeval")
    place = next(Path(p) / "vlmeval" for p in sys.path if (Path(p) / "vlmeval").is_dir())
    package.__path__ = [str(place)]
    sys.modules["vlmeval"] = package
    from vlmeval.smp.file import dump, load

    from tests.exchange.replies import plan_reply

    data = load(str(next(folder.glob("*.tsv"))))
    said = [plan_reply(n, gold) for n, gold in enumerate(data["answer"])]
    # As vlmeval/inference.py does with the answers of a model.
    data["prediction"] = said
    data.pop("image")
    for ending in ("xlsx", "tsv", "json"):
        dump(data, str(FIXTURES / f"scripted_memantics_mquest_qa.{ending}"))


if __name__ == "__main__":
    FIXTURES.mkdir(exist_ok=True)
    makers = {
        "lmms-eval": write_lmms_eval,
        "lm-eval": write_lm_eval,
        "vlmevalkit": write_vlmevalkit,
    }
    makers[sys.argv[1]](Path(sys.argv[2]).resolve())
