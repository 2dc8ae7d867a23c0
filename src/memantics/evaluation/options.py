"""Parameters that several actions share, each with its help and its flag."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

from memantics.benchmarks.registry import find_tasks
from memantics.core.parameters import Argument, Flag
from memantics.evaluation.reports.runs import Run

TRIVIAL_MODELS = ("constant", "longest", "majority", "positive", "random")


def complete_tasks(incomplete: str) -> list[str]:
    """Benchmarks and tasks whose names begin so."""
    refs = find_tasks(["suite"])
    names = ["suite", *(ref.benchmark.card.name for ref in refs), *(ref.name for ref in refs)]
    return [name for name in dict.fromkeys(names) if name.startswith(incomplete)]


def complete_models(incomplete: str) -> list[str]:
    """Models that need no address, and kinds of others, whose names begin so."""
    names = [f"{kind}/" for kind in ("openai", "local", "llm", "recorded", "humans", "inspect")]
    names += [f"baseline/{name}" for name in TRIVIAL_MODELS]
    return [name for name in ["embedded/reader", *names] if name.startswith(incomplete)]


RunLike = str | Path | Run
RunFolders = Annotated[Sequence[RunLike], Argument("Run directories.", "folders")]
Folders = Annotated[Sequence[Path], Argument("Run directories.", "folders")]
TaskOptions = Annotated[
    Mapping[str, str], Flag("Choose an option of a task.", "--set", metavar="OPTION=VALUE")
]
ScoringOptions = Annotated[
    Mapping[str, str],
    Flag("An option that only changes how answers are counted.", "--set", metavar="OPTION=VALUE"),
]
ModelsFlag = Annotated[
    str | Sequence[str],
    Flag("KIND/NAME, may be repeated. See 'memantics models list'.", "--model -m", kind=list[str]),
]
AskedModels = Annotated[
    Sequence[str],
    Flag(
        "KIND/NAME, may be repeated. See 'memantics models list'.",
        "--model -m",
        complete=complete_models,
    ),
]
MetricNames = Annotated[
    Sequence[str] | None,
    Flag(
        "Metric to add to the task's own; repeatable. See 'memantics metrics list'."
        " 'none': no metric. Default: those of the last scoring.",
        "--metric",
        metavar="NAME",
    ),
]
RunsFolder = Annotated[str | Path, Flag("Where the run directories go.")]
CaptionFile = Annotated[
    Path | str | None,
    Flag("What words mean and pictures show. Default: captions.jsonl of --out."),
]
CriticModel = Annotated[
    str | None, Flag("The model that tries them. Default: the writer.", metavar="MODEL")
]
WriteLimit = Annotated[
    int | None,
    Flag("Write for the first N memes; all may be wrong answers.", "--limit", min=1),
]


def find_folder(run: RunLike) -> Path:
    """The directory of a run."""
    return run.folder if isinstance(run, Run) else Path(run)
