"""Neural text metrics: BERTScore, consistency by natural-language inference, and perplexity.

Any Hugging Face model can be loaded from a local folder: nothing is downloaded, and no code of the
folder runs. torch and transformers are imported where they are used. A masked language model gives
a pseudo-perplexity: each token is hidden in turn and predicted from all others. Perplexities of
causal and masked models, or of two different models, are not comparable; ``note`` names the model.
Errors that a user can fix are ``ValueError`` with one line; a missing package is
``ModuleNotFoundError``.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from memantics.core.files import open_regular, read_regular_text
from memantics.core.task import BertSettings, NliSettings
from memantics.metrics.text import TextPair, split_sentences
from memantics.models.chat import quiet_transformers

__all__ = [
    "BertScore",
    "BertScorer",
    "BertSettings",
    "NliScorer",
    "NliSettings",
    "check_folder",
    "choose_device",
    "describe_folder",
    "longest_input",
    "read_baseline",
]

# For these models, the layers that correlate best with human judgement, by the authors of
# BERTScore; for others, the last layer.
_LAYERS = {
    ("bert", 12): 9,
    ("bert", 24): 18,
    ("roberta", 12): 10,
    ("roberta", 24): 17,
    ("distilbert", 6): 5,
    ("xlm-roberta", 12): 9,
    ("xlm-roberta", 24): 17,
    ("deberta", 12): 9,
    ("deberta", 24): 16,
}
_CHUNK = 256


@dataclass(frozen=True, slots=True)
class BertScore:
    """BERTScore of one text (greedy token matching by cosine): precision, recall and F1."""

    precision: float
    recall: float
    f1: float


class BertScorer:
    """Computes BERTScore with one model."""

    def __init__(self, settings: BertSettings) -> None:
        check_folder(settings.path)
        import torch
        from transformers import AutoModel, AutoTokenizer

        self._torch: Any = torch
        self._batch = settings.batch
        self._tokenizer, model = _load(AutoModel, AutoTokenizer, settings.path)
        if model.config.is_encoder_decoder:
            model = model.get_encoder()
        self._device = choose_device(torch, settings.device)
        self._model = model.to(self._device).eval()
        self.layer = _choose_layer(model.config, settings.layer)
        # Byte-level tokenizers know most words only with a space in front.
        self._lead = " " if model.config.model_type in ("roberta", "gpt2") else ""
        self._baseline = (
            read_baseline(settings.baseline, self.layer) if settings.baseline else (0.0, 0.0, 0.0)
        )
        rescaled = f"rescaled by {settings.baseline.name}" if settings.baseline else "not rescaled"
        self.note = f"{describe_folder(settings.path)}, layer {self.layer}, {rescaled}"

    def score(self, pairs: Sequence[TextPair]) -> list[BertScore]:
        """Score each generated text against its reference text."""
        found = []
        for start in range(0, len(pairs), _CHUNK):
            part = pairs[start : start + _CHUNK]
            texts = sorted({text.strip() for pair in part for text in pair} - {""}, key=len)
            vectors = self._embed(texts)
            found += [self._match(vectors, text.strip(), other.strip()) for text, other in part]
        return found

    def score_pairs(self, pairs: Sequence[TextPair]) -> list[float]:
        """Return the F1 of each pair of generated and reference text."""
        return [pair.f1 for pair in self.score(pairs)]

    def _embed(self, texts: Sequence[str]) -> dict[str, tuple[Any, Any]]:
        """Return the unit vectors of each text's tokens, and which of the tokens are words."""
        torch, held = self._torch, {}
        for batch in _batches(texts, self._batch):
            inputs = self._tokenizer(
                [self._lead + text for text in batch],
                padding=True,
                truncation=True,
                max_length=longest_input(self._tokenizer, self._model.config),
                return_special_tokens_mask=True,
                return_tensors="pt",
            )
            special = inputs.pop("special_tokens_mask").bool()
            inputs = inputs.to(self._device)
            with torch.inference_mode():
                output = self._model(**inputs, output_hidden_states=True)
            states = output.hidden_states[self.layer].float()
            states = torch.nn.functional.normalize(states, dim=-1).cpu()
            present = inputs["attention_mask"].bool().cpu()
            for place, text in enumerate(batch):
                kept = present[place]
                held[text] = (states[place][kept], ~special[place][kept])
        return held

    def _match(self, vectors: dict[str, tuple[Any, Any]], text: str, other: str) -> BertScore:
        """Match each word to the most similar token of the other text, without special tokens."""
        if text not in vectors or other not in vectors:
            return BertScore(0.0, 0.0, 0.0)
        (first, first_words), (second, second_words) = vectors[text], vectors[other]
        if not first_words.any() or not second_words.any():
            return BertScore(0.0, 0.0, 0.0)
        similarity = first @ second.T
        precision = float(similarity.max(dim=1).values[first_words].mean())
        recall = float(similarity.max(dim=0).values[second_words].mean())
        total = precision + recall
        raw = (precision, recall, 2 * precision * recall / total if total else 0.0)
        return BertScore(
            *((value - base) / (1 - base) for value, base in zip(raw, self._baseline, strict=True))
        )


class NliScorer:
    """Consistency score: one minus the probability of a contradiction (SelfCheckGPT)."""

    def __init__(self, settings: NliSettings) -> None:
        check_folder(settings.path)
        import torch
        from transformers import AutoModelForSequenceClassification, AutoTokenizer

        self._torch: Any = torch
        self._settings = settings
        self._tokenizer, model = _load(
            AutoModelForSequenceClassification, AutoTokenizer, settings.path
        )
        self._device = choose_device(torch, settings.device)
        self._model = model.to(self._device).eval()
        names = {int(place): str(name) for place, name in model.config.id2label.items()}
        self.labels = _choose_labels(names, settings.labels)
        unit = "mean over sentences" if settings.by_sentence else "whole text"
        self.note = (
            f"{describe_folder(settings.path)}, {settings.direction.replace('_', ' ')}, {unit}, "
            f"labels {self.labels[0]}-{self.labels[1]}"
        )

    def score(self, pairs: Sequence[TextPair]) -> list[float]:
        """Return the consistency of each generated text with its reference; 0 for an empty text."""
        asked: list[TextPair] = []
        owners: list[int] = []
        for place, (pair, other) in enumerate(pairs):
            parts = split_sentences(pair) if self._settings.by_sentence else [pair.strip()]
            for part in parts if other.strip() else []:
                if part:
                    asked.append((part, other))
                    owners.append(place)
        values: list[list[float]] = [[] for _ in pairs]
        for place, risk in zip(owners, self._contradict(asked), strict=True):
            values[place].append(1 - risk)
        return [
            math.fsum(contradictions) / len(contradictions) if contradictions else 0.0
            for contradictions in values
        ]

    score_pairs = score

    def _contradict(self, pairs: Sequence[TextPair]) -> list[float]:
        torch = self._torch
        known = dict.fromkeys(pairs)
        found: dict[TextPair, float] = {}
        order = sorted(known, key=lambda pair: len(pair[0]) + len(pair[1]))
        for batch in _batches(order, self._settings.batch):
            turned = self._settings.direction == "reference_first"
            inputs = self._tokenizer(
                [other if turned else text for text, other in batch],
                [text if turned else other for text, other in batch],
                padding=True,
                truncation=True,
                max_length=longest_input(self._tokenizer, self._model.config),
                return_tensors="pt",
            ).to(self._device)
            with torch.inference_mode():
                logits = self._model(**inputs).logits[:, list(self.labels)].float()
            risks = torch.softmax(logits, dim=-1)[:, 1].cpu().tolist()
            found |= dict(zip(batch, risks, strict=True))
        return [found[pair] for pair in pairs]


def check_folder(path: Path) -> None:
    """Reject a folder without a model before the heavy packages are loaded."""
    if not path.is_dir():
        raise ValueError(f"{path}: no such folder")
    if not (path / "config.json").is_file():
        raise ValueError(f"{path}: not a model folder: config.json is missing")


def describe_folder(path: Path) -> str:
    """Return the folder's name and a hash of its configuration and weights."""
    digest = hashlib.sha256()
    weights = [p for ending in ("*.safetensors", "*.bin") for p in path.glob(ending)]
    for part in sorted({path / "config.json", *weights}):
        digest.update(part.name.encode() + b"\0")
        with open_regular(part) as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return f"{path.resolve().name} (sha256 {digest.hexdigest()[:12]})"


def read_baseline(path: Path, layer: int) -> tuple[float, float, float]:
    """Return the row of a layer in a table of BERTScore baselines: precision, recall, F1."""
    try:
        lines = read_regular_text(path).splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: cannot be read: {error}") from error
    for line in lines[1:]:
        number, _, rest = line.partition(",")
        if number.strip() == str(layer):
            try:
                precision, recall, f1 = (float(value) for value in rest.split(","))
            except ValueError:
                break
            if max(precision, recall, f1) < 1:
                return precision, recall, f1
    raise ValueError(f"{path}: the file has no row LAYER,P,R,F for layer {layer}")


def longest_input(tokenizer: Any, config: Any) -> int:
    """Return a model's maximum number of tokens; tokenizers saved without it give a huge number."""
    places = int(getattr(config, "max_position_embeddings", 0) or 0)
    # RoBERTa reserves the first positions for padding.
    padding = int(getattr(config, "pad_token_id", 0) or 0) + 1
    room = places - padding if getattr(config, "model_type", "") in _PADDED else places
    return min(int(tokenizer.model_max_length), room) if room > 0 else 512


_PADDED = ("roberta", "xlm-roberta", "camembert")


def _load(kind: Any, tokens: Any, path: Path) -> tuple[Any, Any]:
    safe = {"local_files_only": True, "trust_remote_code": False}
    try:
        with quiet_transformers():
            tokenizer = tokens.from_pretrained(path, **safe)
            model, facts = kind.from_pretrained(path, output_loading_info=True, **safe)
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        raise ValueError(f"{path}: cannot be loaded: {str(error).splitlines()[0]}") from error
    # Weights that are missing in the folder are random. Only the pooler may be missing, because
    # BERTScore never uses it.
    absent = sorted(name for name in facts["missing_keys"] if "pooler" not in name)
    if absent:
        raise ValueError(
            f"{path}: has no weights for {absent[0]}, so it was not trained for this task"
        )
    return tokenizer, model


def choose_device(torch: Any, wanted: str) -> str:
    """Return the device for the setting ``auto``: a GPU if there is one."""
    if wanted != "auto":
        return wanted
    return "cuda" if torch.cuda.is_available() else "cpu"


def _choose_layer(config: Any, wanted: int | None) -> int:
    depth = int(getattr(config, "num_hidden_layers", 0) or getattr(config, "encoder_layers", 0))
    if wanted is None:
        return _LAYERS.get((str(config.model_type), depth), depth)
    if not 0 <= wanted <= depth:
        raise ValueError(f"layer {wanted} is not between 0 and {depth}")
    return wanted


def _choose_labels(names: dict[int, str], wanted: tuple[int, int] | None) -> tuple[int, int]:
    if wanted is not None:
        if len(set(wanted)) < 2 or not set(wanted) <= set(names):
            raise ValueError(
                f"labels {wanted[0]}-{wanted[1]}: the model has only 0 to {max(names)}"
            )
        return wanted
    places = []
    for word in ("entail", "contradict"):
        fitting = [
            place
            for place, name in names.items()
            if word in name.lower() and not name.lower().startswith(("not", "non"))
        ]
        if len(fitting) != 1:
            listed = ", ".join(f"{place} {name}" for place, name in sorted(names.items()))
            raise ValueError(f"no unique label that starts with {word} among {listed}"[:200])
        places.append(fitting[0])
    return places[0], places[1]


def _batches(items: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]


LanguageModelKind = Literal["causal", "masked"]


class PerplexityScorer:
    """Computes perplexity with one model; ``kind`` None: by the model's configuration."""

    def __init__(
        self,
        path: Path,
        kind: LanguageModelKind | None = None,
        batch: int = 32,
        device: str = "auto",
    ) -> None:
        check_folder(path)
        import torch
        from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForMaskedLM
        from transformers import AutoTokenizer as Tokens

        self._torch: Any = torch
        try:
            loading = {"local_files_only": True, "trust_remote_code": False}
            config: Any = AutoConfig.from_pretrained(path, **loading)
            self.kind: LanguageModelKind = kind or _find_kind(config)
            maker: Any = AutoModelForMaskedLM if self.kind == "masked" else AutoModelForCausalLM
            self._tokenizer: Any = Tokens.from_pretrained(path, **loading)
            model: Any = maker.from_pretrained(path, **loading)
        except (OSError, ValueError, KeyError, RuntimeError) as error:
            raise ValueError(f"{path}: cannot be loaded: {_first(error)}") from error
        if self.kind == "masked" and self._tokenizer.mask_token_id is None:
            raise ValueError(
                f"{path}: its tokenizer has no mask token, so it is not a masked language model"
            )
        self._device = choose_device(torch, device)
        self._model = model.to(self._device).eval()
        self._batch = batch
        self._room = longest_input(self._tokenizer, config)
        self.note = f"{describe_folder(path)}, {self.kind}"

    def measure(self, texts: Sequence[str]) -> list[float | None]:
        """Return the perplexity of each text; None for a text with too few tokens."""
        one = self._measure_masked if self.kind == "masked" else self._measure_causal
        known: dict[str, float | None] = {}
        for text in texts:
            if text not in known:
                known[text] = one(text)
        return [known[text] for text in texts]

    def _encode(self, text: str) -> tuple[Any, Any]:
        made = self._tokenizer(
            text,
            truncation=True,
            max_length=self._room,
            return_special_tokens_mask=True,
            return_tensors="pt",
        )
        return made["input_ids"].to(self._device), made["special_tokens_mask"][0].bool()

    def _measure_causal(self, text: str) -> float | None:
        torch = self._torch
        ids, special = self._encode(text)
        counted = (~special[1:]).nonzero().flatten().to(self._device)
        if len(counted) == 0:
            return None
        with torch.inference_mode():
            logits = self._model(input_ids=ids).logits[0, :-1].float()
        logs = torch.log_softmax(logits, dim=-1)
        found = logs.gather(1, ids[0, 1:, None]).flatten()[counted]
        return math.exp(-float(found.mean()))

    def _measure_masked(self, text: str) -> float | None:
        torch = self._torch
        ids, special = self._encode(text)
        places = (~special).nonzero().flatten().tolist()
        if not places:
            return None
        total = 0.0
        for start in range(0, len(places), self._batch):
            part = torch.tensor(places[start : start + self._batch], device=self._device)
            hidden = ids.repeat(len(part), 1)
            rows = torch.arange(len(part), device=self._device)
            hidden[rows, part] = self._tokenizer.mask_token_id
            with torch.inference_mode():
                logits = self._model(input_ids=hidden).logits[rows, part].float()
            logs = torch.log_softmax(logits, dim=-1)
            total += float(logs[rows, ids[0, part]].sum())
        return math.exp(-total / len(places))


def _find_kind(config: Any) -> LanguageModelKind:
    names = " ".join(getattr(config, "architectures", None) or ())
    if "MaskedLM" in names or "ForPreTraining" in names:
        return "masked"
    if "CausalLM" in names or "LMHead" in names:
        return "causal"
    raise ValueError(f"neither a causal nor a masked language model: {names or 'no architecture'}")


def _first(error: BaseException) -> str:
    return (str(error).splitlines() or ["no reason given"])[0]
