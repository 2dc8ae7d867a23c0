"""Examples for detectors by name: the registered release, the sample data, or a user's files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from memantics.benchmarks.card import read_card
from memantics.benchmarks.punmemecn import load as punmemecn
from memantics.benchmarks.registry import Benchmark, find_benchmark, find_benchmarks, find_source
from memantics.benchmarks.toxicn_mm import load as toxicn
from memantics.core.data import checksum, cut_split
from memantics.core.errors import DataError, InputError, UnknownName, require_known
from memantics.core.images import read_bytes
from memantics.core.lines import TextChoice, explain_unread
from memantics.core.memes import read_captions, read_memes
from memantics.core.parameters import Flag
from memantics.core.registry import read_registry
from memantics.core.samples import MEMES_FILE, image_path, read_samples
from memantics.models.embedded.ocr import open_reader
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
LabelVersionFlag = Annotated[LabelVersion, Flag("Label version of ToxiCN MM.")]
DATA_HELP = (
    f"{SAMPLE}, {RELEASE} (the registered release), a benchmark that was published from"
    " votes on harm, NAME/LABEL=VALUE,… of a registered set (the values that mean harm), a .csv,"
    " a .jsonl, or a folder of images with metadata. Default: the release if registered, else the"
    " sample data."
)
CAPTIONS_HELP = (
    "JSON lines with id, text_caption and image_caption, such as 'build captions' writes:"
    " they take the place of the data's own."
)
# A label of a registered set, and which of its values mean harm.
_NAMED = re.compile(r"(?P<name>\w+)/(?P<label>\w+)=(?P<harmful>.+)")
DetectorData = Annotated[str | None, Flag(DATA_HELP)]
CaptionsFlag = Annotated[Path | None, Flag(CAPTIONS_HELP)]


def load_examples(
    data: DetectorData = None,
    split: Annotated[str, Flag("Part of a release, or FILE:PART of a split file.")] = "train",
    labels: Annotated[LabelVersion, Flag("Label version.")] = "v1",
    captions: CaptionsFlag = None,
) -> Loaded:
    """Examples by name: ``sample``, ``toxicn_mm`` (the registered release), or a path.

    A benchmark that was published in the format of ToxiCN MM is found by its name, too.
    ``captions`` is a file whose captions take the place of those in the data.
    """
    cut, split = cut_split(split)
    loaded = _load(data, split, labels)
    loaded = loaded if captions is None else put_captions(loaded, captions)
    return loaded if cut is None else loaded.keep_part(*cut)


def put_captions(loaded: Loaded, path: Path) -> Loaded:
    """Examples with the captions of a file (``id``, ``text_caption``, ``image_caption``).

    A meme or a caption that the file does not have keeps what it had.
    """
    found = read_captions(path)
    known = {example.id for example in loaded.examples} & found.keys()
    if not known:
        raise DataError(
            path, f"names no meme of {loaded.name}", hint="ids must be those of the data"
        )
    examples = tuple(
        replace(
            value,
            text_caption=found.get(value.id, {}).get("meaning", value.text_caption),
            image_caption=found.get(value.id, {}).get("description", value.image_caption),
        )
        for value in loaded.examples
    )
    counts = f"{len(known):,} of {len(examples):,} memes have new ones"
    return replace(
        loaded,
        examples=examples,
        notes=(*loaded.notes, f"captions of {path.name}: {counts}"),
        checksum=f"{loaded.checksum}/{checksum([path], path.parent)}",
    )


def _load(data: str | None, split: str, labels: LabelVersion) -> Loaded:
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
        raise InputError(f"no data at {chosen}", hint=f"give {names}, a .csv, a .jsonl or a folder")
    return read_examples(path)


def _find_published(name: str) -> Benchmark | None:
    """The benchmark of that name, or in that folder, that was published as harm labels."""
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
            f"{benchmark.card.title} holds no harm labels",
            hint=f"give {RELEASE}, or a benchmark that was published from votes on harm",
        )
    return benchmark


def find_example(name: str, data: Loaded) -> Example:
    """The meme of that id in the data."""
    for example in data.examples:
        if example.id == name:
            return example
    raise InputError(f"no meme {name!r} in the data", hint="check --data and --split")


def find_examples(data: ExampleSource, split: str = "train", labels: str = "v1") -> Loaded:
    """Examples from Python: a name, a path or the examples themselves.

    Without a registered release its name stands for the sample data, which says that it is one.
    """
    if isinstance(data, Loaded):
        return data
    if data is None or isinstance(data, str | Path):
        missing = data == RELEASE and RELEASE not in read_registry()
        version = cast("LabelVersion", labels)
        return load_examples(None if data is None or missing else str(data), split, version)
    return Loaded("examples", tuple(data))


def read_sample_examples() -> Loaded:
    """The sample data with its own labels; descriptions and meanings stand in for captions."""
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
    """The registered release of ToxiCN MM, or a benchmark that was published in its format."""
    published = bool(benchmark.card.format)
    release = toxicn.open_release(find_source(benchmark, None if published else "release"))
    licence = benchmark.card.sample.licence if published else ""
    if benchmark.card.release is not None:
        licence = benchmark.card.release.licence
    if published:
        # One's own set has one version of its labels, whatever the default is.
        labels = labels if labels in release.versions else release.versions[0]
        parts = sorted({part for _, part in release.parts})
        if split not in (*parts, "all"):
            raise InputError(
                f"{benchmark.card.name} has no part {split!r}, only {', '.join(parts)}",
                hint="publish it again with --split 8:2, or use --split all",
            )
    # Version 2.0 alone says whom a meme attacks, of the memes of both versions.
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
            # One row of version 2.0 is harmful without a type: it trains no type head.
            type=None if meme.harmful and meme.type == "none" else cast("Type", meme.type),
            modality=cast("Modality | None", meme.modality),
        )
        for meme in release.memes(labels, split)
    )
    return Loaded(
        name=f"{benchmark.card.title}, labels {labels}, split {split}",
        examples=examples,
        notes=tuple(f"{what}: {count}" for what, count in release.repairs.items()),
        licence=licence or "not said",
        checksum=f"{checksum(release.files, release.folder)}/{labels}/{split}",
    )


def read_labelled(name: str, label: str, harmful: Sequence[str], split: str) -> Loaded:
    """A registered set with labels of any name; those in ``harmful`` mean harm, all others none."""
    benchmark = find_benchmark(name)
    known = benchmark.plugin.labels
    require_known(f"label of {name}:", label, known)
    release = benchmark.open(find_source(benchmark, "release"))
    memes = [meme for meme in known[label].read(release) if meme.labels]
    values = {value: None for meme in memes for value in meme.labels}
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
        for meme in memes
        if split in (meme.split, "all")
    )
    told = f"harmful: {', '.join(harmful)}; harmless: " + ", ".join(
        value for value in values if value not in harmful
    )
    return Loaded(
        name=f"{benchmark.card.title}, {label}, split {split}",
        examples=examples,
        notes=(told,),
        licence=benchmark.card.release.licence if benchmark.card.release else "not said",
        checksum=f"{benchmark.survey(release).checksum}/{label}/{','.join(harmful)}/{split}",
    )


def make_examples(
    items: Sequence[ExampleLike], taken: TextChoice = "caption"
) -> tuple[Example, ...]:
    """Texts, image files and examples as examples; an image file is read by OCR.

    A path is never taken for a text: a directory, a table, and what looks like a file that is not
    there are refused.
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
            raise InputError(f"{text} is a directory, not a text", hint="give --data a folder")
        if not path.is_file():
            raise InputError(f"no such file: {text}", hint="check the path, or give a text")
        if re.fullmatch(_TABLES, path.suffix[1:].lower()):
            raise InputError(f"{text} is a table, not a text", hint=f"use --data {text}")
        with open_reader(text=taken) as reader:
            said = read_image_text(reader, read_bytes(path), path.name)
        if said.unread:
            raise InputError(f"{text}: {explain_unread(said.unread)}", hint="cut it into parts")
        return Example(name, said.caption, image=path, printed=said.said if said.other_text else "")
    return Example(name, text)


def looks_like_path(text: str) -> bool:
    r"""Whether a text is the path of something that exists, or reads like the name of a file.

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
    """PunMemeCN's groups, a pun and the two memes that were made from it; and whose they are."""
    if data not in (None, SAMPLE, "release", "punmemecn"):
        raise InputError(f"puns cannot be read from {data}", hint="use sample or release")
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
    return cases, DataOrigin("PunMemeCN", licence or "not said")


def load_harm_cases(data: str | None) -> tuple[tuple[TuningCase, ...], DataOrigin]:
    """Memes with a label, each a group of its own, equal texts together; and whose they are."""
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
    """Memes of a folder of which none puns or harms."""
    return tuple(
        TuningCase(meme.id, meme.id, False, meme.text, "", meme.image)
        for meme in read_memes(folder)
    )


def describe_texts(texts: Sequence[str]) -> dict[str, Any]:
    """Languages and the bound of unseen n-grams of the training texts, for the detector's card."""
    return {"languages": list_languages(texts), **describe_unseen_rate(texts)}
