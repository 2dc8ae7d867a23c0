"""Parameters that several actions share, each with its help and its flag."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

from memantics.core.data import DataKind
from memantics.core.parameters import Argument, Flag
from memantics.report.runs import Run

RunLike = str | Path | Run
RunFolders = Annotated[Sequence[RunLike], Argument("Run directories.", "folders")]
Folders = Annotated[Sequence[Path], Argument("Run directories.", "folders")]
Data = Annotated[
    DataKind | None,
    Flag("Which data. Default: a registered release, else the starter sample."),
]
Split = Annotated[str | None, Flag("A named part of the data.")]
Limit = Annotated[int | None, Flag("Ask only N items, in turn of each language and kind.", min=1)]
FewMemes = Annotated[int | None, Flag("Take only the first N memes.", "--limit", min=1)]
TaskOptions = Annotated[
    Mapping[str, str], Flag("Choose an option of a task.", "--set", metavar="OPTION=VALUE")
]
Invalid = Annotated[
    str | None, Flag("Refused and unparsed answers: wrong, drop, retry:N or retry:N,drop.")
]
Models = Annotated[
    str | Sequence[str],
    Flag("KIND/NAME, may be repeated. See 'memantics models list'.", "--model -m", kind=list[str]),
]
AskedModels = Annotated[
    Sequence[str],
    Flag("KIND/NAME, may be repeated. See 'memantics models list'.", "--model -m"),
]
Sample = Annotated[int | None, Flag("Ask a random sample of N items; memes are kept whole.", min=1)]
Seed = Annotated[int | None, Flag("The seed of the sample. Default: 0.")]
Rewordings = Annotated[
    Path | None, Flag("Captions in other words: a table with the columns image and text.")
]
RunsFolder = Annotated[str | Path, Flag("Where the run directories go.")]
QueueVerdicts = Annotated[
    Path | str | None, Flag("Verdicts. Default: verdicts.jsonl in the queue.")
]
MemeFolder = Annotated[
    Path | str | None,
    Argument("A folder of memes, or 'starter' for the starter pack.", kind=Path, default=None),
]
BuildModel = Annotated[
    str | None, Flag("KIND/NAME of the model that is asked.", "--model -m", default=None)
]
BuildFolder = Annotated[
    Path | str | None, Flag("Folder of the build. Default: builds/NAME-OF-FOLDER.")
]
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
