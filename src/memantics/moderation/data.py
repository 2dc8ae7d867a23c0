"""Load training and test examples: a registered release, the sample data, or your own files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from memantics.benchmarks.card import read_card
from memantics.benchmarks.dataset_votes import VOTES
from memantics.benchmarks.punmemecn import load as punmemecn
from memantics.benchmarks.registry import Benchmark, find_benchmark, find_benchmarks, find_source
from memantics.benchmarks.toxicn_mm import load as toxicn
from memantics.core.data import checksum, cut_split
from memantics.core.errors import DataError, InputError, UnknownName, require_known
from memantics.core.images import read_bytes
from memantics.core.labels import LabelledMeme
from memantics.core.lines import TextChoice, explain_unread
from memantics.core.memes import read_captions, read_memes
from memantics.core.parameters import Flag
from memantics.core.registry import read_registry
from memantics.core.samples import MEMES_FILE, image_path, read_samples
from memantics.models.embedded.ocr import open_reader
from memantics.moderation.columns import ExampleColumns
from memantics.moderation.examples import (
    Example,
    Loaded,
    Modality,
    Type,
    list_languages,
    read_examples,
)
from memantics.moderation.lora.judging import TuningCase
from memantics.moderation.lora.tuning import DataOrigin
from memantics.moderation.neural.feeding import fold_text
from memantics.moderation.unseen_ngrams import describe_unseen_rate
from memantics.understanding.vision.roles import read_image_text

RELEASE = "toxicn_mm"
SAMPLE = "sample"
ExampleLike = str | Path | Example
ExampleSource = str | Path | Loaded | Sequence[Example] | None
_TABLES = r"csv|tsv|jsonl|json|parquet|tar|zip|txt|md"
_IMAGES = r"png|jpe?g|webp|gif|bmp|tiff?|avif|heic|svg"
_FILE = re.compile(rf"[^\n]{{1,1000}}\.(?:{_TABLES}|{_IMAGES})", re.IGNORECASE)
_PLACE = re.compile(r"(?:~|\.{1,2})[/\\]\S*|[a-zA-Z]:\\\S*|[^\s/]+(?:/[^\s/]+)*/|file:\S+")


LabelVersion = Literal["v1", "v2"]
LabelVersionFlag = Annotated[LabelVersion, Flag("Version of the ToxiCN MM labels.")]
DATA_HELP = (
    f"Labelled memes: {SAMPLE}; {RELEASE} (the registered release); the name of a benchmark that"
    " you published from harm annotations; NAME/LABEL=VALUE,… (a registered dataset, its label,"
    " and the values that mean harmful); NAME/LABEL_votes=VALUE (the same, with the proportion of"
    " annotators who chose the value); a .csv or .jsonl file; or a folder of images with metadata."
    " Default: the release if registered, else the sample data."
)
CAPTIONS_HELP = (
    "JSON lines with id, text_caption and image_caption, as 'build captions' writes them; they"
    " replace the captions in the data."
)
# NAME/LABEL=VALUE,…: a label of a registered dataset, and its values that mean harmful.
_NAMED = re.compile(r"(?P<name>\w+)/(?P<label>\w+)=(?P<harmful>.+)")
DetectorData = Annotated[str | None, Flag(DATA_HELP)]
CaptionsFlag = Annotated[Path | None, Flag(CAPTIONS_HELP)]


def load_examples(
    data: DetectorData = None,
    split: Annotated[str, Flag("Split of the release, or FILE:PART of a split file.")] = "train",
    labels: Annotated[LabelVersion, Flag("Version of the labels.")] = "v1",
    captions: CaptionsFlag = None,
    columns: ExampleColumns | None = None,
) -> Loaded:
    """Load examples by name: ``sample``, ``toxicn_mm`` (the registered release), or a path.

    A benchmark published in the format of ToxiCN MM is also found by its name. ``captions`` is a
    file whose captions replace those in the data, ``columns`` names the columns of a table. Raises
    InputError if there are no such data.
    """
    cut, split = cut_split(split)
    loaded = _load(data, split, labels, columns)
    # Only a name is recorded, because a path is valid on this machine only.
    if data and not Path(data).exists():
        loaded = replace(loaded, source=data)
    loaded = loaded if captions is None else put_captions(loaded, captions)
    return loaded if cut is None else loaded.keep_part(*cut)


def put_captions(loaded: Loaded, path: Path) -> Loaded:
    """Replace captions by those of a file (``id``, ``text_caption``, ``image_caption``).

    Captions that are missing in the file stay unchanged.
    """
    found = read_captions(path)
    known = {example.id for example in loaded.examples} & found.keys()
    if not known:
        raise DataError(path, f"has no id of {loaded.name}", hint="use the ids of the data")
    examples = tuple(
        replace(
            value,
            text_caption=found.get(value.id, {}).get("meaning", value.text_caption),
            image_caption=found.get(value.id, {}).get("description", value.image_caption),
        )
        for value in loaded.examples
    )
    counts = f"{len(known):,} of {len(examples):,} memes have new captions"
    return replace(
        loaded,
        examples=examples,
        notes=(*loaded.notes, f"captions of {path.name}: {counts}"),
        checksum=f"{loaded.checksum}/{checksum([path], path.parent)}",
    )


def _load(
    data: str | None, split: str, labels: LabelVersion, columns: ExampleColumns | None
) -> Loaded:
    chosen = data or (RELEASE if RELEASE in read_registry() else SAMPLE)
    if chosen == SAMPLE:
        return read_sample_examples()
    if chosen == RELEASE:
        return read_release(find_benchmark(RELEASE), split, labels)
    if (named := _NAMED.fullmatch(chosen)) and not Path(chosen).exists():
        return read_labelled(named["name"], named["label"], named["harmful"].split(","), split)
    benchmark = _find_published(chosen)
    if benchmark is not None:
        return read_release(benchmark, split, labels)
    path = Path(chosen)
    if not path.exists():
        published = [b.card.name for b in find_benchmarks().values() if b.card.format == RELEASE]
        names = ", ".join([SAMPLE, RELEASE, *published])
        raise InputError(f"no data at {chosen}", hint=f"use {names}, a .csv, a .jsonl or a folder")
    return read_examples(path, columns)


def _find_published(name: str) -> Benchmark | None:
    """Find a published benchmark with harm labels by name or folder; None if there is none."""
    path = Path(name)
    cards = (path / "card.toml", path.parent / "card.toml")
    card = next((folder for folder in cards if path.is_dir() and folder.is_file()), None)
    benchmark = (
        find_benchmarks().get(name) if card is None else Benchmark(card.parent, read_card(card))
    )
    if benchmark is None:
        return None
    if benchmark.card.format != RELEASE:
        raise InputError(
            f"{benchmark.card.title} has no harm labels",
            hint=f"use {RELEASE}, or a benchmark published from harm annotations",
        )
    return benchmark


def find_example(name: str, data: Loaded) -> Example:
    """Find a meme by id; raise InputError if the data do not contain it."""
    for example in data.examples:
        if example.id == name:
            return example
    raise InputError(f"the data contain no meme {name!r}", hint="check --data and --split")


def find_examples(data: ExampleSource, split: str = "train", labels: str = "v1") -> Loaded:
    """Load examples given in Python: a name, a path or the examples themselves.

    If no release is registered, its name loads the sample data instead.
    """
    if isinstance(data, Loaded):
        return data
    if data is None or isinstance(data, str | Path):
        missing = data == RELEASE and RELEASE not in read_registry()
        version = cast("LabelVersion", labels)
        return load_examples(None if data is None or missing else str(data), split, version)
    return Loaded("examples", tuple(data))


def read_sample_examples() -> Loaded:
    """Read the sample data with its labels; its descriptions serve as captions."""
    examples = tuple(
        Example(
            id=meme.id,
            text=meme.text,
            text_caption=meme.meaning,
            image_caption=meme.description,
            image=image_path(meme.id),
            label=int(meme.harm.harmful),
            type=meme.harm.type,
            modality=_name_modality(meme.harm.text, meme.harm.image) if meme.harm.harmful else None,
        )
        for meme in read_samples()
    )
    return Loaded(
        name="sample data (a sample, not a benchmark)",
        examples=examples,
        licence="CC0-1.0",
        checksum=checksum([MEMES_FILE], MEMES_FILE.parent),
        sample=True,
    )


def _name_modality(text: bool, image: bool) -> Modality:
    if text:
        return "both" if image else "text"
    return "image" if image else "fusion"


def read_release(benchmark: Benchmark, split: str, labels: LabelVersion) -> Loaded:
    """Read the registered release of ToxiCN MM, or a benchmark published in its format."""
    published = bool(benchmark.card.format)
    release = toxicn.open_release(find_source(benchmark, None if published else "release"))
    licence = benchmark.card.sample.licence if published else ""
    if benchmark.card.release is not None:
        licence = benchmark.card.release.licence
    if published:
        # Published benchmarks have one version of labels, so the flag is ignored.
        labels = labels if labels in release.versions else release.versions[0]
        parts = sorted({part for _, part in release.parts})
        if split not in (*parts, "all"):
            raise InputError(
                f"{benchmark.card.name} has no split {split!r}, only {', '.join(parts)}",
                hint="publish it again with --split 8:2, or use --split all",
            )
    # Targets are only in version 2.0, for the memes of both versions.
    targets = {
        harm_meme.id: harm_meme.target
        for part in release.parts.values()
        for harm_meme in part
        if harm_meme.target
    }
    examples = tuple(
        Example(
            id=meme.id,
            text=meme.text,
            text_caption=meme.text_caption,
            image_caption=meme.image_caption,
            image=meme.image,
            label=int(meme.harmful),
            target=targets.get(meme.id) if meme.harmful else None,
            # One row of version 2.0 is harmful without a type; it is not used to train types.
            type=None if meme.harmful and meme.type == "none" else cast("Type", meme.type),
            modality=cast("Modality | None", meme.modality),
        )
        for meme in release.memes(labels, split)
    )
    return Loaded(
        name=f"{benchmark.card.title}, labels {labels}, split {split}",
        examples=examples,
        notes=tuple(f"{what}: {count}" for what, count in release.repairs.items()),
        licence=licence or "not stated",
        checksum=f"{checksum(release.files, release.folder)}/{labels}/{split}",
    )


def read_labelled(name: str, label: str, harmful: Sequence[str], split: str) -> Loaded:
    """Read a registered dataset; label values in ``harmful`` mean harmful, all others harmless."""
    benchmark = find_benchmark(name)
    known = benchmark.plugin.labels
    voted = label not in known and label.endswith(VOTES)
    label = label.removesuffix(VOTES) if voted else label
    require_known(f"label of {name}:", label, known)
    release = benchmark.open(find_source(benchmark, "release"))
    memes = [m for m in known[label].read(release) if (m.votes if voted else m.labels)]
    if voted and not memes:
        hint = f"use --data {name}/{label}=VALUE"
        raise InputError(f"{name}/{label} has no votes of annotators", hint=hint)
    values = {value: None for meme in memes for value in (meme.votes if voted else meme.labels)}
    for value in harmful:
        require_known(f"value of {name}/{label}:", value, values)
    splits = sorted({meme.split for meme in memes})
    if split not in (*splits, "all"):
        raise UnknownName(f"split of {name}/{label}:", split, [*splits, "all"])
    examples = tuple(
        Example(
            id=meme.id,
            text=meme.text,
            text_caption=meme.text_caption,
            image_caption=meme.image_caption,
            image=meme.image,
            label=int(any(value in harmful for value in meme.labels)),
        )
        if not voted
        else _make_voted(meme, harmful)
        for meme in memes
        if split in (meme.split, "all")
    )
    told = f"harmful: {', '.join(harmful)}; harmless: " + ", ".join(
        value for value in values if value not in harmful
    )
    trained = ("targets are the proportions of annotators",) if voted else ()
    return Loaded(
        name=f"{benchmark.card.title}, {label}, split {split}",
        examples=examples,
        notes=(told, *trained),
        licence=benchmark.card.release.licence if benchmark.card.release else "not stated",
        checksum=f"{benchmark.survey(release).checksum}/{label}/{','.join(harmful)}/{split}",
    )


def _make_voted(meme: LabelledMeme, harmful: Sequence[str]) -> Example:
    """Return a meme whose target is the proportion of annotators who call it harmful."""
    proportion = min(1.0, sum(meme.votes.get(value, 0.0) for value in harmful))
    return Example(
        id=meme.id,
        text=meme.text,
        image=meme.image,
        label=int(round(proportion, 9) > 0.5),
        proportion=proportion,
    )


def make_examples(
    items: Sequence[ExampleLike], taken: TextChoice = "caption"
) -> tuple[Example, ...]:
    """Convert texts and image files to examples; an image file is read by OCR.

    A path is never scored as text: InputError is raised for a directory, a table, or a text that
    looks like a missing file.
    """
    return tuple(
        item if isinstance(item, Example) else _make_example(str(number), item, taken)
        for number, item in enumerate(items, 1)
    )


def _make_example(name: str, item: str | Path, taken: TextChoice) -> Example:
    text = str(item)
    if isinstance(item, Path) or looks_like_path(text):
        path = Path(item).expanduser()
        if path.is_dir():
            raise InputError(f"{text} is a directory, not a text", hint="use --data for a folder")
        if not path.is_file():
            raise InputError(f"no such file: {text}", hint="check the path, or give a text")
        if re.fullmatch(_TABLES, path.suffix[1:].lower()):
            raise InputError(f"{text} is a table, not a text", hint=f"use --data {text}")
        with open_reader(text=taken) as reader:
            said = read_image_text(reader, read_bytes(path), path.name)
        if said.unread:
            raise InputError(f"{text}: {explain_unread(said.unread)}", hint="split the image")
        return Example(name, said.caption, image=path, printed=said.said if said.other_text else "")
    return Example(name, text)


def looks_like_path(text: str) -> bool:
    r"""Check whether a text is an existing path or looks like a file name.

    >>> [looks_like_path(text) for text in ("meme.PNG", "./a", "memes/", "C:\\a.b", "/tmp")]
    [True, True, True, True, True]
    >>> [looks_like_path(text) for text in ("", "and/or", "1/2.", "/s", "png", "…\nmeme.png")]
    [False, False, False, False, False, False]
    """
    if not text.strip() or len(text) > 1000 or not text.isprintable():
        return False
    if _FILE.fullmatch(text) or _PLACE.fullmatch(text):
        return True
    try:
        return Path(text).exists()
    except (OSError, ValueError):  # too long for a file name
        return False


def load_pun_cases(data: str | None) -> tuple[tuple[TuningCase, ...], DataOrigin]:
    """Load the groups of PunMemeCN (a pun and two hard negatives each), and their origin."""
    if data not in (None, SAMPLE, "release", "punmemecn"):
        raise InputError(f"{data!r} is not a valid source of puns", hint="use sample or release")
    benchmark = find_benchmark("punmemecn")
    known = "punmemecn" in read_registry()
    kind: Literal["sample", "release"] = (
        "sample" if data == SAMPLE or (data is None and not known) else "release"
    )
    memes = punmemecn.open_release(find_source(benchmark, kind)).memes
    card = benchmark.card.release
    licence = card.licence if card is not None and kind == "release" else ""
    cases = tuple(
        TuningCase(meme.id, meme.group, meme.is_pun, meme.caption, meme.explanation, meme.image)
        for meme in memes
    )
    if kind == "sample":
        return cases, DataOrigin(SAMPLE, "CC0-1.0", sample=True)
    return cases, DataOrigin("PunMemeCN", licence or "not stated")


def load_harm_cases(data: str | None) -> tuple[tuple[TuningCase, ...], DataOrigin]:
    """Load memes with harm labels, grouped by equal text, and their origin."""
    loaded = load_examples(data)
    cases = tuple(
        TuningCase(
            example.id,
            fold_text(example.text) or example.id,
            bool(example.label),
            example.text,
            " ".join((example.image_caption, example.text_caption)).strip(),
            example.image,
        )
        for example in loaded.examples
        if example.label is not None
    )
    return cases, DataOrigin(loaded.name, loaded.licence, sample=loaded.sample)


def load_external_cases(folder: Path) -> tuple[TuningCase, ...]:
    """Load the memes of a folder as negative cases: neither puns nor harmful."""
    return tuple(
        TuningCase(meme.id, meme.id, False, meme.text, "", meme.image)
        for meme in read_memes(folder)
    )


def describe_texts(texts: Sequence[str]) -> dict[str, Any]:
    """Describe training texts for the model card: languages and limit on unseen n-grams."""
    return {"languages": list_languages(texts), **describe_unseen_rate(texts)}
