"""Parameters that several commands share, each with its help text and flag."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

from memantics.benchmarks.registry import find_tasks
from memantics.core.parameters import Argument, Flag
from memantics.evaluation.reports.runs import Run

TRIVIAL_MODELS = ("constant", "longest", "majority", "positive", "random")


def complete_tasks(incomplete: str) -> list[str]:
    """Complete benchmark and task names in the shell."""
    refs = find_tasks(["suite"])
    names = ["suite", *(ref.benchmark.card.name for ref in refs), *(ref.name for ref in refs)]
    return [name for name in dict.fromkeys(names) if name.startswith(incomplete)]


def complete_models(incomplete: str) -> list[str]:
    """Complete names of models that need no URL, and types of other models, in the shell."""
    names = [f"{kind}/" for kind in ("openai", "local", "llm", "recorded", "humans", "inspect")]
    names += [f"baseline/{name}" for name in TRIVIAL_MODELS]
    return [name for name in ["embedded/reader", *names] if name.startswith(incomplete)]


RunLike = str | Path | Run
RunFolders = Annotated[Sequence[RunLike], Argument("Run directories.", "folders")]
Folders = Annotated[Sequence[Path], Argument("Run directories.", "folders")]
TaskOptions = Annotated[
    Mapping[str, str],
    Flag("Set a task option, such as order=seeded; repeatable.", "--set", metavar="OPTION=VALUE"),
]
ScoringOptions = Annotated[
    Mapping[str, str],
    Flag("Set an option that affects scoring only; repeatable.", "--set", metavar="OPTION=VALUE"),
]
ModelsFlag = Annotated[
    str | Sequence[str],
    Flag(
        "Model as KIND/NAME; repeatable. See 'memantics models list'.", "--model -m", kind=list[str]
    ),
]
AskedModels = Annotated[
    Sequence[str],
    Flag(
        "Model as KIND/NAME; repeatable. See 'memantics models list'.",
        "--model -m",
        complete=complete_models,
    ),
]
MetricNames = Annotated[
    Sequence[str] | None,
    Flag(
        "Metric to compute besides those of the task; repeatable. See 'memantics metrics list'."
        " 'none': no metric. Default: those of the last scoring.",
        "--metric",
        metavar="NAME",
    ),
]
RunsFolder = Annotated[str | Path, Flag("Output folder for the run directories.")]
CaptionFile = Annotated[
    Path | str | None,
    Flag("Descriptions of texts and images. Default: captions.jsonl in --out."),
]
CriticModel = Annotated[
    str | None,
    Flag("Model that tests the output. Default: the model that writes it.", metavar="MODEL"),
]
WriteLimit = Annotated[
    int | None,
    Flag(
        "Write chats for the first N memes only; all memes may serve as distractors.",
        "--limit",
        min=1,
    ),
]


def find_folder(run: RunLike) -> Path:
    """Return the directory of a run."""
    return run.folder if isinstance(run, Run) else Path(run)
