"""Our tasks inside Inspect: listed, asked, asked again, fed, scored as we score them."""

from __future__ import annotations

import gc
import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

from memantics.benchmarks.registry import find_tasks
from memantics.core.errors import InputError
from memantics.core.records import Outcome
from memantics.core.task import Unparsed
from memantics.evaluation.inspect_logs import name_metrics, name_task
from tests.inspect_tasks.server import serve
from tests.places import ROOT

pytest.importorskip("inspect_ai", reason="inspect-ai is not installed (extra inspect)")

# Inspect imports this in the middle of its first evaluation and parses hundreds of classes then.
# Python before 3.11.8 gives up (SystemError) if another thread parses too; here there is none yet.
import acp  # noqa: F401
from inspect_ai import Task, eval, list_tasks, score  # noqa: A004
from inspect_ai._util.error import PrerequisiteError
from inspect_ai.log import EvalLog, read_eval_log
from inspect_ai.model import (
    ChatMessage,
    GenerateConfig,
    Model,
    ModelOutput,
    ModelUsage,
    get_model,
)

from memantics.evaluation.inspect_logs import read_value
from memantics.inspect_tasks import tasks
from memantics.inspect_tasks.build import read_answer

# Inspect calls its retry library in a way that library has deprecated, and leaves streams open.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
REFS = {name_task(ref.name): ref for ref in find_tasks(["suite"])}


@pytest.fixture(autouse=True)
def collect_open() -> Iterator[None]:
    """Collect what Inspect leaves open here, where this is no error."""
    yield
    gc.collect()


class Served:
    """A model of Inspect that answers by a function of the text, and remembers what it got."""

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.texts: list[str] = []
        self.images: list[str] = []
        self.configs: list[GenerateConfig] = []

    def __call__(
        self, messages: list[ChatMessage], tools: Any, choice: Any, config: GenerateConfig
    ) -> ModelOutput:
        text = "\n".join(message.text for message in messages)
        self.texts.append(text)
        self.configs.append(config)
        for message in messages:
            if not isinstance(message.content, str):
                self.images += [part.image for part in message.content if part.type == "image"]
        answer = self.answers.pop(0) if self.answers else pick(text)
        made = ModelOutput.from_content("mock", answer)
        made.usage = ModelUsage(input_tokens=7, output_tokens=3, total_tokens=10)
        return made

    @property
    def model(self) -> Model:
        return get_model("mockllm/model", memoize=False, custom_outputs=self)


def pick(text: str) -> str:
    """A letter or a word that hangs on the question, so that some are right and some wrong."""
    return "Answer: " + "ABCD"[hashlib.sha256(text.encode()).digest()[0] % 4]


def run(task: Task, served: Served, folder: Path, **settings: Any) -> EvalLog:
    plain: dict[str, Any] = {"max_samples": 1, "log_dir": str(folder), "display": "none"}
    (log,) = eval(task, model=served.model, **(plain | settings))
    return read_eval_log(log.location)


def metrics(log: EvalLog) -> dict[str, float]:
    assert log.status == "success", log.error
    assert log.results is not None
    (found,) = log.results.scores
    return {name: metric.value for name, metric in found.metrics.items()}


def test_every_task_is_listed_and_registered() -> None:
    found = list_tasks("src/memantics/inspect_tasks", root_dir=ROOT)
    assert {info.name for info in found} == REFS.keys()
    (entry,) = (point for point in entry_points(group="inspect_ai") if point.name == "memantics")
    assert entry.load() is tasks


@pytest.mark.slow
def test_the_mock_model_runs_without_a_network(tmp_path: Path) -> None:
    """Its tokens are counted without the table that it would fetch."""
    words = ["eval", "memantics/mquest_qa", "--model", "mockllm/model", "--limit", "2"]
    words += ["-T", "data=sample", "--log-dir", str(tmp_path), "--display", "none"]
    nowhere = {"https_proxy": "http://127.0.0.1:9", "TIKTOKEN_CACHE_DIR": str(tmp_path / "none")}
    done = subprocess.run(
        [sys.executable, "-m", "inspect_ai", *words],
        env=os.environ | nowhere,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (path,) = tmp_path.glob("*.eval")
    log = read_eval_log(str(path))
    assert log.status == "success"
    assert log.samples is not None
    assert len(log.samples) == 2
    assert log.samples[0].metadata["shown by"].endswith(f"--item {log.samples[0].id}")


@pytest.mark.slow
@pytest.mark.parametrize("name", REFS)
def test_every_task_runs_on_its_sample(name: str, tmp_path: Path) -> None:
    served = Served()
    log = run(getattr(tasks, name)(data="sample", invalid="wrong"), served, tmp_path, limit=3)
    found = metrics(log)
    assert log.samples
    counted = [found[f"{status} items"] for status in ("answered", "unparsed", "refused")]
    assert sum(counted) == len(log.samples) <= 3
    assert len(served.texts) >= len(log.samples)
    assert all(image.startswith("data:image/") for image in served.images)
    assert log.eval.task == f"memantics/{name}"
    for sample in log.samples:
        assert sample.scores is not None
        assert set(sample.scores) == {"memantics"}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mquest_qa", "punmemecn_detection"])
def test_metrics_are_ours(name: str, tmp_path: Path) -> None:
    log = run(getattr(tasks, name)(data="sample", invalid="wrong"), Served(), tmp_path)
    ref = REFS[name]
    own = ref.make({}, ref.card.splits[0], ref.benchmark.sample(), "wrong")
    outcomes = []
    for item in own.items():
        parts = (part for message in own.ask(item, None).messages for part in message.parts)
        text = "\n".join(part for part in parts if isinstance(part, str))
        try:
            outcomes.append(Outcome(item, "answered", own.parse(pick(text), item.form)))
        except Unparsed:
            outcomes.append(Outcome(item, "unparsed"))
    expected = name_metrics(own.score(outcomes), own.main)
    found = metrics(log)
    assert {key: found[key] for key in expected} == pytest.approx(expected)
    assert next(iter(found)) == ref.card.main
    assert len(expected) > 5


def test_an_invalid_answer_is_asked_again_and_told_why(tmp_path: Path) -> None:
    served = Served("I would rather not say.", "Still no.", "Answer: A")
    log = run(tasks.mquest_qa(data="sample", invalid="retry:3"), served, tmp_path, limit=1)
    assert len(served.texts) == 3
    assert "no option letter found" in served.texts[1]
    assert "no option letter found" not in served.texts[0]
    assert len(set(served.images)) == 1
    assert log.samples is not None
    (sample,) = log.samples
    assert sample.scores is not None
    assert sample.scores["memantics"].metadata is not None
    assert sample.scores["memantics"].metadata["attempts"] == 3
    assert sample.scores["memantics"].answer == "A"


def test_never_valid_is_no_answer_and_counts_wrong(tmp_path: Path) -> None:
    served = Served(*["No."] * 4)
    log = run(tasks.mquest_qa(data="sample", invalid="retry:2"), served, tmp_path, limit=2)
    found = metrics(log)
    assert (found["accuracy"], found["unparsed items"]) == (0.0, 2.0)
    assert log.samples is not None
    assert [s.scores["memantics"].value for s in log.samples if s.scores] == ["N", "N"]


def test_answers_that_a_task_needs_are_asked_for_first(tmp_path: Path) -> None:
    served = Served("* cats sleep a lot", "the meme makes fun of lazy cats")
    made = tasks.memeintent_intent(data="sample", background="auto")
    log = run(made, served, tmp_path, limit=1)
    assert len(served.texts) == 2
    assert "cats sleep a lot" in served.texts[1]
    assert log.samples is not None
    (sample,) = log.samples
    assert sample.output.completion == "the meme makes fun of lazy cats"
    assert sample.metadata["item"]["tags"]["background"] == "given"


def test_a_captioner_can_be_another_model(tmp_path: Path) -> None:
    served, captioner = Served("the meme jokes"), Served("a cat on a client")
    made = tasks.memeintent_intent(data="sample", role="text", captions="model")
    run(made, served, tmp_path, limit=1, model_roles={"captioner": captioner.model})
    assert len(captioner.texts) == len(captioner.images) == 1
    assert not served.images
    assert "a cat on a client" in served.texts[0]


@pytest.mark.slow
def test_the_users_sampling_wins_and_the_tasks_own_is_the_default(tmp_path: Path) -> None:
    served = Served()
    run(tasks.mquest_qa(data="sample", invalid="wrong"), served, tmp_path, limit=1)
    assert served.configs[0].temperature == 0.0
    served = Served()
    made = tasks.mquest_qa(data="sample", invalid="wrong")
    run(made, served, tmp_path, limit=1, temperature=0.7, max_tokens=33)
    assert (served.configs[0].temperature, served.configs[0].max_tokens) == (0.7, 33)


def test_a_log_can_be_scored_again_without_a_model(tmp_path: Path) -> None:
    log = run(tasks.mquest_qa(data="sample", invalid="wrong"), Served(), tmp_path, limit=4)
    assert log.samples is not None
    before = [sample.scores for sample in log.samples]
    again = score(log, read_answer("mquest/qa"), action="overwrite", display="none")
    assert again.samples is not None
    values = [
        (old["memantics"].value, new.scores["memantics"].value)
        for old, new in zip(before, again.samples, strict=True)
        if old and new.scores
    ]
    assert len(values) == 4
    assert all(old == new for old, new in values)


def test_epochs_are_all_counted(tmp_path: Path) -> None:
    made = tasks.mquest_qa(data="sample", invalid="wrong")
    found = metrics(run(made, Served("Answer: A", "Answer: B"), tmp_path, limit=1, epochs=2))
    assert (found["answered items"], found["accuracy"]) == (2.0, 0.5)


def test_options_are_checked_and_said_in_one_line() -> None:
    with pytest.raises(PrerequisiteError, match="did you mean order"):
        tasks.mquest_qa(ordr="answer_first")
    with pytest.raises(PrerequisiteError, match="unknown value of option order"):
        tasks.mquest_qa(order="backwards")
    with pytest.raises(PrerequisiteError, match="unknown split"):
        tasks.mquest_qa(split="nowhere")
    with pytest.raises(PrerequisiteError, match="unknown data"):
        tasks.mquest_qa(data="elsewhere")
    with pytest.raises(InputError, match="takes one value"):
        read_value("order", ["a", "b"], ())


def test_words_that_yaml_changed_are_changed_back() -> None:
    assert read_value("hint", True, ("on", "off")) == "on"
    assert read_value("hint", False, ("on", "off")) == "off"
    assert read_value("hint", False, ()) == "false"
    assert read_value("shots", 4, ()) == "4"


@pytest.mark.slow
def test_a_benchmark_elsewhere_is_registered_too(tmp_path: Path) -> None:
    """It is not written in the list, so it is made when the list is loaded."""
    folder = tmp_path / "copies" / "copy_of_mquest"
    source = ROOT / "src" / "memantics" / "benchmarks" / "mquest"
    folder.mkdir(parents=True)
    card = (source / "card.toml").read_text(encoding="utf-8")
    (folder / "card.toml").write_text(
        card.replace('name = "mquest"', 'name = "copy_of_mquest"', 1), encoding="utf-8"
    )
    (folder / "plugin.py").write_text("", encoding="utf-8")
    code = "from memantics.inspect_tasks import tasks; print(*tasks.OTHERS)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"MEMANTICS_BENCHMARKS": str(folder.parent)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["copy_of_mquest/qa"]


@pytest.mark.slow
def test_the_command_of_inspect_runs_a_task(tmp_path: Path) -> None:
    """Another process, another folder, a server: as its users do."""
    command = [str(Path(sys.executable).with_name("inspect")), "eval", "memantics/mquest_qa"]
    command += ["--model", "openai/letters", "-M", "responses_api=false", "--limit", "3"]
    command += ["-T", "order=letter_only", "-T", "data=sample", "--display", "plain"]
    with serve(lambda _: "A") as address:
        keys = {"OPENAI_BASE_URL": address, "OPENAI_API_KEY": "none"}
        done = subprocess.run(
            [*command, "--log-dir", str(tmp_path / "logs")],
            cwd=tmp_path,
            env=os.environ | keys | {"MEMANTICS_HOME": str(tmp_path / "home")},
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=300,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    (path,) = (tmp_path / "logs").iterdir()
    log = read_eval_log(str(path))
    assert metrics(log)["answered items"] == 3.0
    assert log.eval.task_args["order"] == "letter_only"
