"""Names to objects: the only place that knows every benchmark and every kind of model."""

from memantics.models.kinds import ModelSettings
from memantics.registry.benchmarks import (
    find_benchmark,
    find_benchmarks,
    find_published,
    find_recipes,
    find_tasks,
)
from memantics.registry.contract import PACKAGE, STARTER_IMAGES, Benchmark, TaskRef
from memantics.registry.models import MODEL_KINDS, open_model
from memantics.registry.tasks import (
    describe_data,
    find_source,
    open_baselines,
    open_task_of_run,
    pose_task,
)

__all__ = [
    "MODEL_KINDS",
    "PACKAGE",
    "STARTER_IMAGES",
    "Benchmark",
    "ModelSettings",
    "TaskRef",
    "describe_data",
    "find_benchmark",
    "find_benchmarks",
    "find_published",
    "find_recipes",
    "find_source",
    "find_tasks",
    "open_baselines",
    "open_model",
    "open_task_of_run",
    "pose_task",
]
