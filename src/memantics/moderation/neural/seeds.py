"""Train one network with several seeds on the same splits, and write a model card.

After an interruption, the training of each seed resumes. The model card names the training data,
the selection of the best epoch and the limits.
"""

from __future__ import annotations

import hashlib
import shutil
import statistics
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from memantics import __version__
from memantics.core.data import Skip
from memantics.core.errors import StoreError
from memantics.core.prompt import fill_template
from memantics.core.result import Table
from memantics.moderation.card import clean_markdown
from memantics.moderation.examples import Example, Loaded
from memantics.moderation.identity import (
    NEEDS_IMAGE,
    IdentityErrors,
    measure_identity_terms,
    tabulate_identity,
)
from memantics.moderation.neural import machine, saved, settings
from memantics.moderation.neural import network as backbone
from memantics.moderation.neural.encoding import classes_of, encode, gold_places
from memantics.moderation.neural.feeding import SplitRows, check_parts, hold_out
from memantics.moderation.neural.network import (
    Chances,
    MacroScores,
    ask_network,
    build_network,
    measure,
)
from memantics.moderation.neural.settings import NetworkShape, ProgressLog
from memantics.moderation.neural.training import (
    Trainer,
    TrainingMaterial,
    TrainingProgress,
    digest,
    hold_folder,
    write_whole,
)
from memantics.moderation.operating_points import OperatingPoint

PREDICTIONS, RUNNING = "predictions.jsonl", "training"
CARD = "CARD.md"
_JOINED = {
    "attention": "tokens of the text attend to tokens of the captions",
    "pooled": "the paper's formula as printed, in which captions have no effect",
    "sum": "vectors are added, as in the official code",
    "none": "captions are not used",
}


@dataclass(frozen=True, slots=True)
class SeedPlan:
    """All settings of a training."""

    backbones: settings.Backbones
    shape: settings.NetworkShape
    training: settings.Training


@dataclass(frozen=True, slots=True)
class TrainedSeeds:
    """The result of a training: a detector per seed, and the seed with the best validation score.

    ``first`` is True only for rank 0 of a distributed training, which prints results.
    """

    folder: Path
    seeds: tuple[saved.SavedFacts, ...]
    chosen: int
    parts: SplitRows
    skips: tuple[Skip, ...]
    first: bool = True


def train_neural(
    data: Loaded,
    plan: SeedPlan,
    out: Path,
    say: ProgressLog = print,
    parts: SplitRows | None = None,
) -> TrainedSeeds:
    """Train every seed of a plan into ``out``; finished seeds are skipped.

    ``parts`` are the rows of each set; by default a validation set is held out as planned. Only the
    validation set is used for selection. The test set is scored once, with the selected epoch.
    """
    settings.check_training(plan.training)
    ranks = machine.join_ranks(plan.training.device)
    try:
        with _locked(out, ranks):
            return _train(data, plan, out, say if ranks.first else _silent, parts, ranks)
    finally:
        machine.leave_ranks(ranks)


def _train(
    data: Loaded,
    plan: SeedPlan,
    out: Path,
    say: ProgressLog,
    parts: SplitRows | None,
    ranks: machine.Ranks,
) -> TrainedSeeds:
    device = machine.resolve_device(plan.training.device, ranks)
    machine.fix_arithmetic(plan.training.deterministic)
    examples, target = data.examples, plan.shape.target
    if parts is None:
        how, share = plan.training.hold_out, plan.training.share
        parts = hold_out(examples, target, how, share)
    check_parts(parts, gold_places(examples, target))
    plan = _settle(plan, [examples[row] for row in parts.train], out, ranks)
    encoders = backbone.open_encoders(plan.backbones, plan.shape.length)
    pixels = out / f"pixels-{ranks.rank}.npy" if encoders.reader.preparation else None
    try:
        encoded = encode(examples, encoders.reader, plan.shape, pixels, plan.training.workers)
        parts = _keep(parts, encoded.rows)
        check_parts(parts, gold_places(encoded.examples, target))
        mark = _fingerprint(data, plan, parts, ranks)
        material = TrainingMaterial(encoded, parts, plan.shape, plan.training, mark)
        del encoders
        facts = tuple(
            _train_seed(seed, material, plan, _SeedRun(out, data, device, ranks), say)
            for seed in plan.training.seeds
        )
    finally:
        if pixels is not None:
            pixels.unlink(missing_ok=True)
    chosen = max(facts, key=lambda one: (one.valid.f1, -one.seed)).seed
    if ranks.first:
        write_summary(out, facts, chosen)
    machine.wait_for_all(ranks)
    return TrainedSeeds(out, facts, chosen, parts, encoded.skips, ranks.first)


@dataclass(frozen=True, slots=True)
class _SeedRun:
    out: Path
    data: Loaded
    device: Any
    ranks: machine.Ranks


def _train_seed(
    seed: int, material: TrainingMaterial, plan: SeedPlan, place: _SeedRun, say: ProgressLog
) -> saved.SavedFacts:
    folder = place.out / f"seed-{seed}"
    if (folder / saved.FACTS).is_file():
        return _finished(folder, material, seed, say)
    torch = machine.get_torch()
    torch.manual_seed(seed)
    encoders: backbone.Encoders = backbone.open_encoders(plan.backbones, plan.shape.length)
    network = build_network(encoders, plan.shape)
    progress = _fit(network, material, seed, place, say)
    chances = _ask(network, material, place.device)
    classes = classes_of(plan.shape.target)
    valid = _measure(material, material.parts.valid, chances, classes)
    test = material.parts.test
    facts = saved.SavedFacts(
        shape=plan.shape,
        training=replace(material.training, seeds=(seed,)),
        seed=seed,
        fingerprint=material.fingerprint,
        classes=classes,
        valid=valid,
        test=_measure(material, test, chances, classes) if test else None,
        best_epoch=progress.best,
        history=progress.history,
        counts=_counts(material),
        data={
            "name": place.data.name,
            "licence": place.data.licence,
            "checksum": place.data.checksum,
            "languages": ",".join(place.data.list_languages()),
        },
        versions=machine.find_versions() | {"memantics": __version__},
    )
    if place.ranks.first:
        backbone.keep_encoders(plan.backbones, folder)
        _write_predictions(folder / PREDICTIONS, material, chances)
        facts = saved.write_facts(folder, facts, network)
        shutil.rmtree(folder / RUNNING, ignore_errors=True)
    machine.wait_for_all(place.ranks)
    return facts


def _fit(
    network: Any, material: TrainingMaterial, seed: int, place: _SeedRun, say: ProgressLog
) -> TrainingProgress:
    folder = place.out / f"seed-{seed}" / RUNNING
    try:
        return Trainer(network, material, seed, place.device, place.ranks).run(folder, say)
    except RuntimeError as error:
        if not machine.lacks_fixed_kernel(error):
            raise
        say(f"training on {place.device} is not deterministic for this network; it continues")
        machine.fix_arithmetic(material.training.deterministic, strict=False)
        # The failed step left partial gradients, which are removed.
        network.zero_grad(set_to_none=True)
    warnings.filterwarnings("ignore", message=".*deterministic.*")
    return Trainer(network, material, seed, place.device, place.ranks).run(folder, say)


def _finished(
    folder: Path, material: TrainingMaterial, seed: int, say: ProgressLog
) -> saved.SavedFacts:
    facts = saved.read_facts(folder)
    if facts.fingerprint != material.fingerprint:
        raise StoreError(
            f"{folder} has a detector trained with other data or settings",
            hint="choose another --out, or use the same data and settings",
        )
    saved.check_files(folder, facts)
    say(f"seed {seed}: already trained, validation macro-F1 {100 * facts.valid.f1:.2f}")
    return facts


def _ask(network: Any, material: TrainingMaterial, device: Any) -> dict[int, Chances]:
    rows = (*material.parts.valid, *material.parts.test)
    found = ask_network(network, material.encoded, rows, device)
    return dict(zip(rows, found, strict=True))


def _measure(
    material: TrainingMaterial,
    rows: Sequence[int],
    chances: dict[int, Chances],
    classes: tuple[str, ...],
) -> MacroScores:
    guesses = np.array([int(chances[row].argmax()) for row in rows])
    return measure(material.gold[list(rows)], guesses, classes)


def _counts(material: TrainingMaterial) -> dict[str, int]:
    parts = material.parts
    return {
        "train": len(parts.train),
        "valid": len(parts.valid),
        "test": len(parts.test),
        "held out with a text of the training set": parts.shared,
        "skipped": len(material.encoded.skips),
    }


def _write_predictions(path: Path, material: TrainingMaterial, chances: dict[int, Chances]) -> None:
    """Write one line per held-out example, for error pages and paired comparisons."""
    named = {"valid": material.parts.valid, "test": material.parts.test}
    lines = [
        orjson.dumps(
            {
                "part": part,
                "id": material.encoded.examples[row].id,
                "gold": int(material.gold[row]),
                "chances": [round(float(chance), 6) for chance in chances[row]],
            }
        )
        for part, rows in named.items()
        for row in rows
    ]
    write_whole(path, b"\n".join(lines) + b"\n")


def summarise(facts: Sequence[saved.SavedFacts]) -> dict[str, dict[str, dict[str, float]]]:
    """Compute mean and standard deviation over seeds, by set and metric."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for name, metrics in (
        ("valid", [one.valid for one in facts]),
        ("test", [one.test for one in facts if one.test is not None]),
    ):
        if metrics:
            found[name] = {
                "precision": spread([one.precision for one in metrics]),
                "recall": spread([one.recall for one in metrics]),
                "f1": spread([one.f1 for one in metrics]),
                **{
                    f"f1 {label}": spread([one.by_class[label] for one in metrics])
                    for label in metrics[0].by_class
                },
            }
    return found


def tabulate(facts: Sequence[saved.SavedFacts]) -> Table:
    """Show mean and standard deviation over seeds, in per cent."""
    rows = tuple(
        (part, name, f"{100 * found['mean']:.2f}", f"{100 * found['sd']:.2f}")
        for part, metrics in summarise(facts).items()
        for name, found in metrics.items()
    )
    return Table(("part", "metric", ">mean", ">sd"), rows)


def write_summary(out: Path, facts: Sequence[saved.SavedFacts], chosen: int) -> None:
    """Write the summary file, which ``find_detector`` reads."""
    summary = {"chosen": chosen, "seeds": [one.seed for one in facts], **summarise(facts)}
    write_whole(out / saved.SUMMARY, orjson.dumps(summary, option=orjson.OPT_INDENT_2))


def spread(values: Sequence[float]) -> dict[str, float]:
    """Compute mean and standard deviation over seeds (0 for a single one).

    >>> spread([0.5, 0.7])
    {'mean': 0.6, 'sd': 0.141421}
    """
    deviation = statistics.stdev(values) if len(values) > 1 else 0.0
    return {"mean": round(statistics.fmean(values), 6), "sd": round(deviation, 6)}


def _settle(plan: SeedPlan, train: Sequence[Example], out: Path, ranks: machine.Ranks) -> SeedPlan:
    """Create the encoder ``scratch`` from the characters of the training set, if requested."""
    for place in (plan.backbones.text, plan.backbones.image, plan.backbones.clip):
        if place is not None and str(place) != settings.SCRATCH:
            backbone.check_folder(Path(place), plan.backbones.from_scratch)
    if plan.backbones.text != settings.SCRATCH:
        return plan
    folder = out / settings.SCRATCH
    if ranks.first:
        texts = (t for e in train for t in (e.text, e.text_caption, e.image_caption))
        backbone.make_scratch(texts, folder)
    machine.wait_for_all(ranks)
    return replace(plan, backbones=replace(plan.backbones, text=str(folder), from_scratch=True))


def _keep(parts: SplitRows, kept: Sequence[int]) -> SplitRows:
    """Convert the split to row indices of the examples that were not skipped."""
    places = {row: place for place, row in enumerate(kept)}

    def move(rows: Sequence[int]) -> tuple[int, ...]:
        return tuple(places[row] for row in rows if row in places)

    return SplitRows(move(parts.train), move(parts.valid), move(parts.test), parts.shared)


def _fingerprint(data: Loaded, plan: SeedPlan, parts: SplitRows, ranks: machine.Ranks) -> str:
    """Hash everything that determines the weights; not paths or checkpoint settings."""
    total = hashlib.sha256()
    chosen = asdict(replace(plan.training, seeds=(), device="", save_every=0, workers=0))
    facts = [asdict(plan.shape), chosen, asdict(parts), ranks.size, plan.backbones.from_scratch]
    total.update(orjson.dumps(facts))
    for example in data.examples:
        fields = asdict(example) | {"image": example.image and example.image.name}
        total.update(orjson.dumps(fields))
    for place in (plan.backbones.text, plan.backbones.image, plan.backbones.clip):
        if place is not None:
            total.update(hash_folder(Path(place)).encode())
    return total.hexdigest()


def hash_folder(folder: Path, more: bytes = b"") -> str:
    """Compute SHA-256 over names and contents of the files in a folder, and over ``more``."""
    total = hashlib.sha256(more)
    for path in sorted(folder.iterdir()):
        if path.suffix in (".json", ".safetensors", ".bin", ".txt", ".jinja"):
            total.update(f"{path.name} {digest(path)}".encode())
    return total.hexdigest()


@contextmanager
def _locked(out: Path, ranks: machine.Ranks) -> Iterator[None]:
    """Lock the output folder in rank 0 for all processes."""
    if ranks.first:
        with hold_folder(out):
            yield
    else:
        out.mkdir(parents=True, exist_ok=True)  # any process may create it
        yield


def _silent(line: str) -> None:
    del line


def write_card(trained: TrainedSeeds, data: Loaded) -> Path:
    """Write ``CARD.md`` beside the detectors."""
    path = trained.folder / CARD
    write_whole(path, describe(trained, data).encode())
    return path


def measure_identity(trained: TrainedSeeds, data: Loaded) -> tuple[IdentityErrors, ...] | None:
    """Measure the chosen seed on harmless sentences about groups; None if it needs images."""
    detector = saved.load_neural(trained.folder, device="cpu")
    if detector.reader.preparation is not None:
        return None

    def score(texts: Sequence[str]) -> list[float]:
        examples = [Example(str(n), text) for n, text in enumerate(texts)]
        return [one.harmful for one in saved.predict_neural(detector, examples).predictions]

    return measure_identity_terms(score, OperatingPoint(0.5), data.list_languages())


def describe(trained: TrainedSeeds, data: Loaded) -> str:
    """Format the card as Markdown."""
    facts = trained.seeds[0]
    identity = measure_identity(trained, data)
    return fill_template(
        __file__,
        "card.md",
        {"clean": clean_markdown, "count": "{:,}".format},
        data=data,
        trained=trained,
        facts=facts,
        encoders=[kind for kind in ("text", "image", "clip") if (_first(trained) / kind).is_dir()],
        captions=_say_captions(facts.shape),
        rows=tabulate(trained.seeds).rows,
        identity=tabulate_identity(identity or ()),
        unmeasured=NEEDS_IMAGE if identity is None else "",
    )


def _say_captions(shape: NetworkShape) -> str:
    """Describe which captions are used and how they are combined, and the pooling."""
    if not shape.joined:
        said = _JOINED["none"]
    else:
        said = f"of the {' and the '.join(shape.joined)}: {_JOINED[shape.integration]}"
        if shape.integration == "attention" and shape.values == "text":
            said += ", which only reorder the text (values as printed)"
    return said if shape.pooling == "auto" else f"{said}; texts are pooled by {shape.pooling}"


def _first(trained: TrainedSeeds) -> Path:
    return trained.folder / f"seed-{trained.seeds[0].seed}"
