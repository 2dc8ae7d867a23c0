"""The public names that a plug-in needs; nothing else of Memantics is promised to it.

A package that is installed beside Memantics registers records as entry points:

================== ====================== ==========================================
group              record                 used by
================== ====================== ==========================================
memantics.models   :class:`ModelKind`     ``memantics run --model KIND/NAME``
memantics.metrics  :class:`Metric`        ``memantics run --metric NAME``, ``score``
memantics.reports  :class:`ReportForm`    ``memantics report --format NAME``
================== ====================== ==========================================

A benchmark is a folder whose ``plugin.py`` holds one :class:`BenchmarkPlugin`, and whose
``write.py``, if it has one, holds a :class:`Writer`. ``examples/plugin`` and ``examples/meanings``
are complete; ``docs/how-to/add-metrics-and-plugins.md`` and ``docs/how-to/add-a-benchmark.md``
explain them.

>>> from memantics.plugins import Metric, PredictedAnswer
>>> rate = Metric("yes_rate", "proportion of answers that are yes",
...               lambda rows: sum(row.predicted == "yes" for row in rows) / len(rows))
>>> rate.compute([PredictedAnswer("no", "yes", "meme-1")])
1.0

A name is loaded when it is first used.
"""

# ruff: noqa: PLC0414 - an import under its own name is public

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memantics.benchmarks.factories import Prompts as Prompts
    from memantics.benchmarks.factories import accuracy_score as accuracy_score
    from memantics.benchmarks.factories import choice_task as choice_task
    from memantics.benchmarks.factories import label_task as label_task
    from memantics.benchmarks.factories import mean_score as mean_score
    from memantics.benchmarks.factories import text_task as text_task
    from memantics.benchmarks.plugin import AuditHooks as AuditHooks
    from memantics.benchmarks.plugin import BenchmarkPlugin as BenchmarkPlugin
    from memantics.benchmarks.plugin import TaskSetup as TaskSetup
    from memantics.benchmarks.table import Choice as Choice
    from memantics.benchmarks.table import MemeRecord as MemeRecord
    from memantics.benchmarks.table import Text as Text
    from memantics.benchmarks.table import choice_benchmark as choice_benchmark
    from memantics.benchmarks.writing import Made as Made
    from memantics.benchmarks.writing import Writer as Writer
    from memantics.benchmarks.writing import gather_memes as gather_memes
    from memantics.benchmarks.writing import take_text as take_text
    from memantics.benchmarks.writing import take_texts as take_texts
    from memantics.benchmarks.writing import walk_kept as walk_kept
    from memantics.core.data import Found as Found
    from memantics.core.data import Source as Source
    from memantics.core.data import checksum as checksum
    from memantics.core.errors import DataError as DataError
    from memantics.core.errors import InputError as InputError
    from memantics.core.errors import MemanticsError as MemanticsError
    from memantics.core.errors import MissingExtra as MissingExtra
    from memantics.core.errors import ModelError as ModelError
    from memantics.core.errors import Refused as Refused
    from memantics.core.errors import Rejected as Rejected
    from memantics.core.errors import Transient as Transient
    from memantics.core.errors import Unavailable as Unavailable
    from memantics.core.finding import Finding as Finding
    from memantics.core.finding import Maker as Maker
    from memantics.core.labels import LabelledMeme as LabelledMeme
    from memantics.core.labels import LabelSource as LabelSource
    from memantics.core.model import Model as Model
    from memantics.core.prompt import Prompt as Prompt
    from memantics.core.queue import Review as Review
    from memantics.core.records import Field as Field
    from memantics.core.records import Form as Form
    from memantics.core.records import Image as Image
    from memantics.core.records import Item as Item
    from memantics.core.records import Message as Message
    from memantics.core.records import Option as Option
    from memantics.core.records import Outcome as Outcome
    from memantics.core.records import Reply as Reply
    from memantics.core.records import Request as Request
    from memantics.core.records import Sampling as Sampling
    from memantics.core.records import Score as Score
    from memantics.core.task import InvalidPolicy as InvalidPolicy
    from memantics.core.task import ItemWalk as ItemWalk
    from memantics.core.task import Need as Need
    from memantics.core.task import Task as Task
    from memantics.core.task import Unparsed as Unparsed
    from memantics.evaluation.metrics import Metric as Metric
    from memantics.evaluation.metrics import PredictedAnswer as PredictedAnswer
    from memantics.evaluation.reports.leaderboard import PublishedRows as PublishedRows
    from memantics.evaluation.reports.runs import Run as Run
    from memantics.evaluation.reports.tables import ReportForm as ReportForm
    from memantics.models.kinds import ModelKind as ModelKind
    from memantics.models.kinds import ModelSettings as ModelSettings
else:
    from memantics.core.lazy import offer

    offer(__name__, __file__)
