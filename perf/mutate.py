"""``python -m perf.mutate [--seed N] [--sample N]``: mutation testing of the test suite.

mutmut changes one thing at a time (an operator, a number, a branch) and runs the tests that reach
the changed function. All changes together would take hours: a sample is drawn, evenly over the
parts below, and the proportion of detected changes is printed with the undetected ones.
Packages that only compute have one target; rooms, where half of the lines wait for files, models
and people, have a lower one. Below its target the exit code is 1. Each of the two groups is sampled
in a process of its own, since mutmut keeps its settings for as long as the process lives.

Looked at beside it: cosmic-ray rewrites the sources in place and starts Python and pytest anew for
each change (seconds each, where mutmut forks a process that has everything loaded); mutatest wants
a coverage package older than 6 and has had no release since 2021.
"""

from __future__ import annotations

import argparse
import importlib
import os
import random
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TARGET, ROOMS_TARGET = 0.85, 0.80
SAMPLE, ROOMS_SAMPLE = 300, 120
WORK = "mutants"  # where mutmut writes; git ignores it
EXAMPLES = "tests/test_examples_of_mutants.py"


@dataclass(frozen=True, slots=True)
class Part:
    """Files that are changed, and the tests that should notice."""

    files: tuple[str, ...]
    tests: tuple[str, ...]


COMPUTING: Mapping[str, Part] = {
    "core": Part(
        (
            "core/data.py",
            "core/files.py",
            "core/ids.py",
            "core/language.py",
            "core/lines.py",
            "core/memes.py",
            "core/prompt.py",
            "core/queue.py",
            "core/reply.py",
            "core/rundir.py",
            "core/tables.py",
            "core/text.py",
        ),
        (
            "tests/cli/test_prompts.py",
            "tests/core",
            "tests/hostile/test_secrets.py",
        ),
    ),
    "models": Part(
        (
            "models/baseline.py",
            "models/cache.py",
            "models/drafts.py",
            "models/humans.py",
            "models/recorded.py",
            "models/wire.py",
        ),
        (
            "tests/core/test_stores.py",
            "tests/engine/test_wire.py",
            "tests/models/test_baseline.py",
            "tests/models/test_cache.py",
            "tests/models/test_chat_format.py",
            "tests/models/test_drafts.py",
            "tests/models/test_humans.py",
            "tests/models/test_people_and_detectors.py",
            "tests/models/test_recorded.py",
            "tests/models/test_replies.py",
            "tests/models/test_thoughts.py",
        ),
    ),
    "metrics": Part(
        ("metrics/*.py",),
        (
            "tests/metrics/test_against_libraries.py",
            "tests/metrics/test_boundaries*.py",
            "tests/metrics/test_comparison.py",
            "tests/metrics/test_diversity.py",
            "tests/metrics/test_feasibility.py",
            "tests/metrics/test_icc_interval.py",
            "tests/metrics/test_multiclass.py",
            "tests/metrics/test_text*.py",
        ),
    ),
    "scoring": Part(
        ("evaluation/scoring.py",),
        (
            "tests/suite/test_scoring.py",
            "tests/engine/test_score*.py",
            "tests/compare",
        ),
    ),
    "detector": Part(
        (
            "moderation/calibration.py",
            "moderation/examples.py",
            "moderation/kernel.py",
        ),
        (
            "tests/moderation/test_kernel.py",
            "tests/moderation/test_boundaries*.py",
        ),
    ),
    "aggregation": Part(
        ("annotation/aggregation.py",),
        (
            "tests/annotation/test_aggregation.py",
            "tests/annotation/test_boundaries*.py",
            "tests/annotation/test_required_fields.py",
        ),
    ),
    "parsing": Part(
        ("benchmarks/parsing.py",),
        (
            "tests/tasks/test_boundaries*.py",
            "tests/tasks/test_equal_options.py",
            "tests/tasks/test_forms.py",
            "tests/tasks/test_parse.py",
            "tests/tasks/test_replay.py",
            "tests/tasks/test_scripts.py",
        ),
    ),
    "phonetics": Part(
        (
            "understanding/phonetics/evidence.py",
            "understanding/phonetics/lattice.py",
            "understanding/phonetics/ranking.py",
            "understanding/phonetics/pinyin.py",
            "understanding/phonetics/homophones.py",
        ),
        (
            "tests/phonetics/test_boundaries*.py",
            "tests/phonetics/test_readings.py",
            "tests/phonetics/test_english.py",
            "tests/phonetics/test_sound.py",
            "tests/phonetics/test_two_spans.py",
        ),
    ),
    "vision": Part(
        (
            "understanding/vision/hashes.py",
            "understanding/vision/panels.py",
            "understanding/vision/regions.py",
            "understanding/vision/spacing.py",
            "understanding/vision/typesetting.py",
        ),
        (
            "tests/vision",
            "tests/mer_bench/test_panels.py",
            "tests/construction/collect/test_hashes.py",
        ),
    ),
}
# Of each package the files that hold rules; its pages, tables and records are left out. Of its
# tests those that call functions: commands, browsers and kills take minutes.
ROOMS: Mapping[str, Part] = {
    "evaluation": Part(
        (
            "models/engine.py",
            "evaluation/ask.py",
            "evaluation/contrasts.py",
            "models/client.py",
            "evaluation/paired.py",
            "evaluation/planning.py",
            "evaluation/facts.py",
            "evaluation/perturbations.py",
            "evaluation/human_eval.py",
        ),
        (
            "tests/engine/test_ask.py",
            "tests/engine/test_client.py",
            "tests/engine/test_faults.py",
            "tests/engine/test_metrics.py",
            "tests/engine/test_limiter.py",
            "tests/engine/test_retry.py",
            "tests/suite/test_estimate.py",
            "tests/suite/test_grid.py",
            "tests/suite/test_limit.py",
            "tests/suite/test_plan.py",
            "tests/suite/test_sample.py",
            "tests/suite/test_suite.py",
            "tests/compare",
            "tests/judge",
            "tests/perturb",
        ),
    ),
    "construction": Part(
        (
            "construction/chats/distractors.py",
            "construction/chats/quality.py",
            "construction/chats/rules.py",
            "construction/chats/selection.py",
            "understanding/templates.py",
            "construction/collect/rules.py",
            "understanding/extraction/chain.py",
            "understanding/extraction/plan.py",
            "understanding/extraction/reading.py",
            "construction/questions/assembly.py",
            "construction/questions/balance.py",
            "construction/questions/solver.py",
            "construction/questions/critic.py",
            "construction/questions/lending.py",
            "construction/questions/report.py",
        ),
        (
            "tests/construction/chats",
            "tests/construction/test_chat_quality.py",
            "tests/construction/test_reading.py",
            "tests/construction/collect/test_families.py",
            "tests/construction/collect/test_rules.py",
            "tests/construction/extract/test_chain.py",
            "tests/construction/extract/test_plan.py",
            "tests/construction/extract/test_replies.py",
            "tests/construction/questions/test_blind.py",
            "tests/construction/questions/test_critic.py",
            "tests/construction/questions/test_sampling.py",
            "tests/construction/questions/test_lending.py",
            "tests/construction/questions/test_answer_cues.py",
        ),
    ),
    "annotation": Part(
        (
            "annotation/accounts.py",
            "annotation/work.py",
            "annotation/database.py",
            "annotation/consensus.py",
            "annotation/intake.py",
            "annotation/lead.py",
            "annotation/leasing.py",
            "annotation/membership.py",
            "annotation/projects.py",
            "annotation/tasks.py",
            "annotation/values.py",
            "annotation/workflow.py",
        ),
        (
            "tests/annotation/test_accounts.py",
            "tests/annotation/test_agreement.py",
            "tests/annotation/test_boundaries_values.py",
            "tests/annotation/test_chance.py",
            "tests/annotation/test_commits.py",
            "tests/annotation/test_exports.py",
            "tests/annotation/test_lead.py",
            "tests/annotation/test_leases.py",
            "tests/annotation/test_login.py",
            "tests/annotation/test_overlap.py",
            "tests/annotation/test_queues.py",
            "tests/annotation/test_training_set.py",
            "tests/annotation/test_work.py",
            "tests/annotation/test_workflows.py",
        ),
    ),
    "serve": Part(
        (
            "serve/engine.py",
            "serve/inputs.py",
            "serve/access.py",
            "serve/jobs.py",
            "serve/moderations.py",
            "serve/refusals.py",
            "serve/settings.py",
        ),
        (
            "tests/serve/test_boundaries.py",
            "tests/serve/test_inputs.py",
            "tests/serve/test_fetching.py",
            "tests/serve/test_access.py",
            "tests/serve/test_job_store.py",
            "tests/serve/test_jobs.py",
            "tests/serve/test_limits.py",
            "tests/serve/test_moderations.py",
            "tests/serve/test_small_rates.py",
        ),
    ),
    "exchange": Part(
        (
            "evaluation/answers.py",
            "evaluation/exchange.py",
        ),
        ("tests/exchange",),
    ),
    "reappraisal": Part(
        (
            "understanding/reappraisal/chain.py",
            "understanding/reappraisal/rules.py",
            "understanding/reappraisal/grading.py",
            "understanding/reappraisal/expressions.py",
            "understanding/reappraisal/rendering.py",
            "understanding/reappraisal/kindness.py",
            "understanding/reappraisal/stages.py",
            "understanding/reappraisal/situation.py",
            "understanding/reappraisal/whole.py",
        ),
        (
            "tests/reappraisal/test_boundaries.py",
            "tests/reappraisal/test_chain.py",
            "tests/reappraisal/test_choosing.py",
            "tests/reappraisal/test_gate.py",
            "tests/reappraisal/test_situation.py",
            "tests/reappraisal/test_rendering.py",
            "tests/reappraisal/test_rules.py",
            "tests/reappraisal/test_whole.py",
        ),
    ),
}
PARTS: Mapping[str, Part] = {**COMPUTING, **ROOMS}

# Examples in docstrings are tests too, but every changed copy of a function has its docstring:
# left to pytest, each example would be run hundreds of times.
_EXAMPLES = """
import doctest, importlib
import pytest

def cases():
    for name in {modules!r}:
        for case in doctest.DocTestFinder().find(importlib.import_module(name), name):
            if case.examples and "mutmut" not in case.name:
                yield pytest.param(case, id=case.name)

@pytest.mark.parametrize("case", list(cases()))
def test_example(case):
    case.globs = dict(case.globs)
    assert doctest.DocTestRunner().run(case, out=lambda _: None, clear_globs=False).failed == 0
"""


def find_files(names: Iterable[str]) -> dict[str, list[Path]]:
    """Return the files of each part, relative to the root."""
    found = {}
    for name in names:
        paths = [p for f in PARTS[name].files for p in _find(name, f"src/memantics/{f}")]
        found[name] = sorted(path for path in paths if path.name != "__init__.py")
    return found


def find_tests(names: Iterable[str]) -> list[str]:
    """Return the tests of the parts."""
    return sorted(
        {str(path) for name in names for t in PARTS[name].tests for path in _find(name, t)}
    )


def _find(part: str, pattern: str) -> list[Path]:
    """Resolve a name or pattern to files; raise an error if a file is missing."""
    found = [path.relative_to(ROOT) for path in ROOT.glob(pattern)]
    if not found:
        sys.exit(f"part {part!r}: there is no {pattern}: change PARTS in perf/mutate.py")
    return found


def set_up(files: Sequence[Path], tests: Sequence[str], only: str = "") -> Any:
    """Load mutmut with our settings; ``pyproject.toml`` would have to repeat the table above."""
    import pytest

    # mutmut 3.8 reads a private name that pytest 9 no longer has.
    if not hasattr(pytest.Item, "_nodeid"):
        pytest.Item._nodeid = property(lambda item: item.nodeid)  # type: ignore[attr-defined]
    configuration = importlib.import_module("mutmut.configuration")
    settings = configuration.config()
    settings.source_paths = [Path("src")]
    settings.resolved_mutated_source_paths = [ROOT / WORK / "src"]
    settings.only_mutate = [str(path) for path in files]
    settings.also_copy = [
        Path(p)
        for p in ("tests", "sample_data", "docs", "examples", "perf", "research", "pyproject.toml")
    ]
    settings.pytest_add_cli_args = ["-p", "no:cacheprovider", "-p", "no:xdist"]
    settings.pytest_add_cli_args += ["-m", only] if only else []
    settings.pytest_add_cli_args_test_selection = [*tests, EXAMPLES]
    settings.use_git_change_detection = False
    # A mismatch of lengths is a bug elsewhere; without the word, zip behaves the same.
    settings.do_not_mutate_patterns = [r"strict=(True|False)\)", r"^\s*raise ", r"hint="]
    return importlib.import_module("mutmut.__main__")


def draw(keys: Mapping[str, Sequence[str]], count: int, seed: int) -> list[str]:
    """As many of each part as its share, at least eight, in an order that the seed fixes.

    >>> drawn = draw({"a": [f"a{n}" for n in range(90)], "b": [f"b{n}" for n in range(30)]}, 40, 0)
    >>> sum(key.startswith("a") for key in drawn), len(drawn)
    (30, 40)
    """
    chance = random.Random(seed)
    whole = sum(map(len, keys.values()))
    picked: list[str] = []
    for name in sorted(keys):
        share = max(8, round(count * len(keys[name]) / whole))
        picked += chance.sample(sorted(keys[name]), min(share, len(keys[name])))
    return picked


def mutate(
    names: Sequence[str], count: int, seed: int, workers: int, only: str = ""
) -> dict[str, str]:
    """How each drawn change ended: ``killed``, ``survived``, ``timeout``, ``no tests``…"""
    files = find_files(names)
    main = set_up([path for paths in files.values() for path in paths], find_tests(names), only)
    main.set_mutant_under_test("mutant_generation")
    Path(WORK).mkdir(exist_ok=True)
    main.copy_src_dir()
    main.copy_also_copy_files()
    main.setup_source_paths()
    main.create_mutants(workers)
    modules = {_module(path): name for name, paths in files.items() for path in paths}
    (Path(WORK) / EXAMPLES).write_text(_EXAMPLES.format(modules=list(modules)), encoding="utf-8")
    keys: dict[str, list[str]] = defaultdict(list)
    for _, key, _ in main.collect_source_file_mutation_data(mutant_names=())[0]:
        keys[modules[key.rpartition(".")[0]]].append(key)
    drawn = draw(keys, count, seed)
    main._run(drawn, workers)
    ended = importlib.import_module("mutmut.stats").status_by_exit_code
    results, _ = main.collect_source_file_mutation_data(mutant_names=drawn)
    return {key: str(ended[code]) for _, key, code in results}


def _module(path: Path) -> str:
    return ".".join(path.with_suffix("").parts[1:])


def show(ended: Mapping[str, str], names: Iterable[str], target: float) -> bool:
    """Print the survivors and the kill rate of each part; return whether all keep the target."""
    noticed = {key: status in ("killed", "timeout", "segfault") for key, status in ended.items()}
    for key, status in sorted(ended.items()):
        if not noticed[key]:
            print(f"{status}: {key}\n{_difference(key)}")
    modules = {_module(path): n for n, paths in find_files(names).items() for path in paths}
    parts: dict[str, list[bool]] = defaultdict(list)
    for key, seen in noticed.items():
        parts[modules[key.rpartition(".")[0]]].append(seen)
    for name, found in sorted(parts.items()):
        print(f"{name:<12}{sum(found):>5} of {len(found):>4}  {sum(found) / len(found):6.1%}")
    share = sum(noticed.values()) / len(noticed)
    print(f"{'all':<12}{sum(noticed.values()):>5} of {len(noticed):>4}  {share:6.1%}", end="  ")
    print(f"target {target:.0%}: {'kept' if share >= target else 'MISSED'}")
    return share >= target


def _difference(key: str) -> str:
    found = importlib.import_module("mutmut.mutation.diff_apply").get_diff_for_mutant(key)
    changes = (line for line in found.splitlines() if line[:1] in ("+", "-"))
    lines = [line for line in changes if line[:3] not in ("+++", "---")]
    return "\n".join(f"    {line}" for line in lines)


def main() -> int:
    """Sample mutants, run the tests, print the results and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m perf.mutate", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="another seed draws other changes")
    parser.add_argument("--sample", type=int, help="how many changes are drawn of each group")
    parser.add_argument("--part", action="append", choices=PARTS, help="only this part")
    parser.add_argument("--first-tier", action="store_true", help="only tests of `make test`")
    given = parser.parse_args()
    only = "not slow" if given.first_tier else ""
    os.chdir(ROOT)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    chosen = [[name for name in given.part or PARTS if name in g] for g in (COMPUTING, ROOMS)]
    if all(chosen):
        return max(_start(names, given) for names in chosen)
    (names,) = filter(None, chosen)
    rooms = names[0] in ROOMS
    began = time.monotonic()
    sample = given.sample or (ROOMS_SAMPLE if rooms else SAMPLE)
    _clear(names)
    ended = mutate(names, sample, given.seed, min(2, os.cpu_count() or 1), only)
    kept = show(ended, names, ROOMS_TARGET if rooms else TARGET)
    print(f"{time.monotonic() - began:.0f} s, seed {given.seed}")
    return 0 if kept else 1


def _clear(names: Sequence[str]) -> None:
    """Forget what was found of other parts; of the same, mutmut looks at changed files only."""
    known = Path(WORK) / "parts.txt"
    if not known.exists() or known.read_text(encoding="utf-8").split() != list(names):
        shutil.rmtree(WORK, ignore_errors=True)
        known.parent.mkdir()
        known.write_text(" ".join(names), encoding="utf-8")


def _start(names: Sequence[str], given: argparse.Namespace) -> int:
    """Sample the parts of a group in another process."""
    options = [f"--part={name}" for name in names] + [f"--seed={given.seed}"]
    options += [f"--sample={given.sample}"] if given.sample else []
    options += ["--first-tier"] if given.first_tier else []
    return subprocess.run([sys.executable, "-m", "perf.mutate", *options], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
