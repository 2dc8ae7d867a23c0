"""Batched generation with a loaded transformers model.

Within a batch, each request keeps its own temperature, seed and length. ``generate`` decodes
greedily. For a request with a temperature, Gumbel noise is added to the logits, so that the largest
entry is a draw from the softmax. The noise comes from the request's own random generator: a seed
gives the same draws regardless of the rest of the batch. Models without a chat template (BLIP-2,
InstructBLIP) get one image and one plain prompt.
"""

from __future__ import annotations

import copy
import gc
import importlib
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import TemplateError
from PIL import Image as Pillow

from memantics.core.errors import ModelError, Rejected, Unavailable
from memantics.core.images import load, shrink
from memantics.core.records import Image, Message, Reply, Request
from memantics.models.chat import ChatTemplate, move, open_processor
from memantics.models.local.settings import MAX_TOKENS, LocalSettings, find_base, join_adapter
from memantics.models.wire import split_thought

# Prompt formats on which some model types were trained; other models take an instruction unchanged.
_FORMS = {"blip-2": "Question: {} Answer:"}


def encodes(config: Any) -> bool:
    """Return whether the model is an encoder-decoder."""
    return bool(getattr(config.get_text_config(), "is_encoder_decoder", False))


class PlainDialogue:
    """The processor of a vision-language model without a chat template (BLIP-2, InstructBLIP).

    Such a model has no roles and turns, so the texts of a request are joined. It accepts exactly
    one image.
    """

    def __init__(
        self, chat: ChatTemplate, processor: Any, config: Any, settings: LocalSettings
    ) -> None:
        self.tokenizer = chat.tokenizer
        self._chat = chat
        self._processor = processor
        self._form = _FORMS.get(str(config.model_type), "{}")
        # With left padding, the padding would be between image and text, and an encoder would count
        # it as distance.
        self.tokenizer.padding_side = "right" if encodes(config) else "left"
        asking = getattr(processor, "qformer_tokenizer", None)
        if asking is not None:
            asking.padding_side = "right"
        self._pixels = settings.max_pixels

    def render(self, request: Request) -> tuple[str, tuple[Any, ...]]:
        """Return the text of a request and its decoded image."""
        parts = [part for message in request.messages for part in message.parts]
        images = [part for part in parts if isinstance(part, Image)]
        if len(images) != 1:
            raise Rejected(
                f"this model accepts one image, but the request has {len(images)}",
                hint="choose a task or option with one image, or a model with a chat template",
            )
        texts = [self._chat.defuse(part) for part in parts if isinstance(part, str)]
        text = self._form.format("\n\n".join(texts))
        return text, (shrink(load(images[0].path), self._pixels).convert("RGB"),)

    def encode(self, texts: Sequence[str], images: Sequence[Sequence[Any]]) -> dict[str, Any]:
        """Return the tensors of a batch."""
        pictures = [row[0] for row in images]
        arguments = {"padding": True, "return_tensors": "pt"}
        return dict(self._processor(images=pictures, text=list(texts), **arguments))


@dataclass(frozen=True, slots=True)
class RowDecoding:
    """The decoding settings of one request in a batch; temperature 0 is greedy."""

    temperature: float
    seed: int


class RowSampler:
    """A logits processor: applies temperature, top-k, top-p and sampling to each batch row."""

    def __init__(
        self, rows: Sequence[RowDecoding], device: Any, top_k: int = 0, top_p: float = 1.0
    ) -> None:
        self._torch: Any = importlib.import_module("torch")
        self._rows, self._top_k, self._top_p = rows, top_k, top_p
        self._chances = [
            self._torch.Generator(device=device).manual_seed(row.seed) if row.temperature else None
            for row in rows
        ]

    def __call__(self, input_ids: Any, scores: Any) -> Any:  # noqa: ARG002 - transformers' seam
        """Return the scores of the next tokens, with Gumbel noise for sampled rows."""
        if not any(self._chances):
            return scores
        drawn = scores.float().clone()
        for place, (row, chance) in enumerate(zip(self._rows, self._chances, strict=True)):
            if chance is not None:
                logits = self._cut(drawn[place] / row.temperature)
                noise = self._torch.empty_like(logits).exponential_(generator=chance)
                drawn[place] = logits - noise.log()
        return drawn

    def _cut(self, logits: Any) -> Any:
        """Keep the k most likely tokens, then the fewest of these with a total probability of p."""
        torch, lowest = self._torch, float("-inf")
        if 0 < self._top_k < logits.numel():
            edge = torch.topk(logits, self._top_k).values[-1]
            logits = logits.masked_fill(logits < edge, lowest)
        if self._top_p < 1.0:
            ordered, places = torch.sort(logits, descending=True)
            shares = torch.softmax(ordered, -1)
            # A token is removed if the tokens before it already reach the probability p; the first
            # always stays.
            gone = places[shares.cumsum(-1) - shares >= self._top_p]
            logits = logits.index_fill(0, gone, lowest)
        return logits


class RowLimits:
    """A stopping criterion: each row of a batch ends at its own length, or all rows on request."""

    def __init__(
        self, prompt: int, limits: Sequence[int], stop: Callable[[], bool], device: Any
    ) -> None:
        torch: Any = importlib.import_module("torch")
        self._prompt = prompt
        self._limits = torch.tensor(limits, device=device)
        self._stop = stop

    def __call__(self, input_ids: Any, scores: Any, **_: Any) -> Any:  # noqa: ARG002 - as above
        """Return which rows of the batch are finished."""
        length = input_ids.shape[1] - self._prompt
        return self._limits <= (self._limits.max() if self._stop() else length)


def cut_row(tokens: Sequence[int], limit: int, ends: frozenset[int]) -> tuple[list[int], str, int]:
    """Return the tokens of a row, its finish reason, and its token count (with the end token).

    After its end, a row is padded, often with the end token itself.

    >>> cut_row([7, 8, 2, 2, 2], 5, frozenset({2}))
    ([7, 8], 'stop', 3)
    >>> cut_row([7, 8, 9, 2, 2], 3, frozenset({2}))
    ([7, 8, 9], 'length', 3)
    """
    kept = list(tokens[:limit])
    for place, token in enumerate(kept):
        if token in ends:
            return kept[:place], "stop", place + 1
    return kept, "length", len(kept)


@dataclass(frozen=True, slots=True)
class EncodedPrompt:
    """A request in the input format of the model."""

    text: str
    images: tuple[Pillow.Image, ...] = ()


class Dialogue:
    """The tokenizer of a text model, or the processor of a vision-language model."""

    def __init__(self, processor: Any, sees: bool, settings: LocalSettings, config: Any) -> None:
        self._chat = ChatTemplate(processor, sees)
        self._settings = settings
        self.tokenizer = self._chat.tokenizer
        plain = sees and self._chat.template is None
        self._plain = PlainDialogue(self._chat, processor, config, settings) if plain else None
        if self._chat.template is None and not plain:
            raise Unavailable(
                "this model has no chat template, so it cannot answer questions",
                hint="use its instruction-tuned version",
            )

    def render(self, request: Request) -> EncodedPrompt:
        """Apply the chat template to a request and decode its images."""
        if self._plain is not None:
            return EncodedPrompt(*self._plain.render(request))
        parts = [part for message in request.messages for part in message.parts]
        images = [part for part in parts if isinstance(part, Image)]
        if images and not self._chat.sees:
            raise Rejected(
                "this model does not accept images", hint="choose a task or option without images"
            )
        shown = [self._lay_out(message) for message in request.messages]
        try:
            text: str = self._chat.template.apply_chat_template(
                shown, tokenize=False, add_generation_prompt=True, **self._settings.template
            )
        except (TemplateError, TypeError, ValueError, KeyError) as error:
            raise Rejected(f"the model's chat template rejects the request: {error}") from error
        decoded = (shrink(load(image.path), self._settings.max_pixels) for image in images)
        return EncodedPrompt(text, tuple(decoded))

    def _lay_out(self, message: Message) -> dict[str, Any]:
        texts = [self._chat.defuse(p) if isinstance(p, str) else p for p in message.parts]
        if not self._chat.sees:
            return {"role": message.role, "content": "\n".join(map(str, texts))}
        content = [
            {"type": "text", "text": part} if isinstance(part, str) else {"type": "image"}
            for part in texts
        ]
        return {"role": message.role, "content": content}

    def encode(self, prompts: Sequence[EncodedPrompt]) -> dict[str, Any]:
        """Return the tensors of a batch, left-padded for generation."""
        texts = [prompt.text for prompt in prompts]
        if self._plain is not None:
            return self._plain.encode(texts, [prompt.images for prompt in prompts])
        return self._chat.encode(texts, [prompt.images for prompt in prompts], "left")

    def decode(self, tokens: Sequence[int]) -> str:
        """Convert generated tokens to text."""
        return self._chat.decode(tokens)


class OutOfMemory(Exception):
    """The batch does not fit into memory; a smaller one may."""


@dataclass(frozen=True, slots=True)
class ReadyRequest:
    """A request that is prepared for generation."""

    prompt: EncodedPrompt
    limit: int
    draw: RowDecoding


def resolve_device(wanted: str) -> str:
    """Return the device for the setting ``auto``; reject a device that does not exist."""
    torch: Any = importlib.import_module("torch")
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if wanted == "auto":
        return "cuda" if gpus else "mps" if torch.backends.mps.is_available() else "cpu"
    number = int(wanted.partition(":")[2] or 0)
    if (wanted.startswith("cuda") and number >= gpus) or (wanted == "spread" and not gpus):
        raise Unavailable(
            f"device {wanted} does not exist: PyTorch sees {gpus} GPUs",
            hint="use --param device=cpu, or install a PyTorch version that matches the driver",
        )
    return wanted


def resolve_dtype(wanted: str, device: str) -> str:
    """Return the dtype for the setting ``auto``: that of the checkpoint, or float32 on a CPU.

    >>> resolve_dtype("auto", "cpu"), resolve_dtype("auto", "cuda"), resolve_dtype("float16", "cpu")
    ('float32', 'auto', 'float16')
    """
    return "float32" if wanted == "auto" and device == "cpu" else wanted


class Runtime:
    """A loaded model and its dialogue format. Not thread-safe."""

    def __init__(self, folder: Path, settings: LocalSettings) -> None:
        self._torch: Any = importlib.import_module("torch")
        self._settings = settings
        device = resolve_device(settings.device)
        try:
            self._load(folder, device)
        except ModelError:
            raise
        except Exception as error:  # transformers may raise any exception for a damaged checkpoint
            if is_memory_error(error):
                raise Unavailable(
                    f"{folder} does not fit into the memory of {device}",
                    hint="use --param dtype=bfloat16, device=spread, or a smaller model",
                ) from None
            raise Unavailable(
                f"{folder} cannot be loaded: {shorten(error)}", hint=_advise(error)
            ) from error

    def _load(self, folder: Path, device: str) -> None:
        transformers: Any = importlib.import_module("transformers")
        logs: Any = importlib.import_module("transformers.utils.logging")
        logs.set_verbosity_error()
        logs.disable_progress_bar()
        adapter, folder = folder, find_base(folder) or folder
        trust = self._settings.trust_remote_code
        arguments: dict[str, Any] = {"local_files_only": True, "trust_remote_code": trust}
        config = transformers.AutoConfig.from_pretrained(str(folder), **arguments)
        sees = _sees(config)
        if sees:
            processor = open_processor(folder, config, trust)
        else:
            processor = transformers.AutoTokenizer.from_pretrained(str(folder), **arguments)
        self.dialogue = Dialogue(processor, sees, self._settings, config)
        kind = "AutoModelForImageTextToText" if sees else "AutoModelForCausalLM"
        if self._settings.attn != "auto":
            arguments["attn_implementation"] = self._settings.attn
        model = getattr(transformers, kind).from_pretrained(
            str(folder),
            dtype=resolve_dtype(self._settings.dtype, device),
            device_map="auto" if device == "spread" else {"": device},
            use_safetensors=True,
            **arguments,
        )
        self._model = (model if adapter == folder else join_adapter(model, adapter)).eval()
        self.architecture = type(self._model).__name__
        self._generation, self._ends = self._settle(self._model.generation_config)
        text = config.get_text_config()
        self._encodes = encodes(config)
        self._longest = int(getattr(text, "max_position_embeddings", 0) or 0)

    def _settle(self, generation: Any) -> tuple[Any, frozenset[int]]:
        """Return the generation config (greedy; this module samples) and the end tokens."""
        tokenizer = self.dialogue.tokenizer
        ends = (
            generation.eos_token_id
            if isinstance(generation.eos_token_id, list)
            else [generation.eos_token_id]
        )
        known = frozenset(end for end in (*ends, tokenizer.eos_token_id) if end is not None)
        made = copy.deepcopy(generation)
        made.update(
            do_sample=False,
            num_beams=1,
            temperature=None,
            top_p=None,
            top_k=None,
            max_length=None,
            eos_token_id=sorted(known) or None,
            pad_token_id=tokenizer.pad_token_id,
        )
        if self._settings.repetition_penalty is not None:
            made.repetition_penalty = self._settings.repetition_penalty
        return made, known

    def prepare(self, request: Request) -> ReadyRequest:
        """Render a request and decode its images; raise an error for an invalid request."""
        sampling, settings = request.sampling, self._settings
        wanted = settings.temperature if settings.temperature is not None else sampling.temperature
        seed = sampling.seed if sampling.seed is not None else secrets.randbits(62)
        return ReadyRequest(
            self.dialogue.render(request),
            settings.max_tokens or sampling.max_tokens or MAX_TOKENS,
            RowDecoding(wanted or 0.0, seed % (1 << 63)),
        )

    def generate(self, turns: Sequence[ReadyRequest], stop: Callable[[], bool]) -> list[Reply]:
        """Answer a batch in which either all or no requests have images."""
        try:
            return self._generate(turns, stop)
        except Exception as error:
            if not is_memory_error(error):
                raise
        # The batch is repeated outside the exception handler, because the traceback keeps tensors
        # alive.
        self._free()
        raise OutOfMemory

    def _generate(self, turns: Sequence[ReadyRequest], stop: Callable[[], bool]) -> list[Reply]:
        inputs = self.dialogue.encode([turn.prompt for turn in turns])
        counts = [int(count) for count in inputs["attention_mask"].sum(-1).tolist()]
        if self._longest and max(counts) > self._longest:
            raise Rejected(
                f"the prompt has {max(counts):,} tokens, "
                f"but the model accepts at most {self._longest:,}",
                hint="use fewer or smaller images (--param max_pixels=500000)",
            )
        device, limits = self._model.device, [turn.limit for turn in turns]
        # The output of an encoder-decoder does not contain the prompt; it begins with one start
        # token.
        length = 1 if self._encodes else inputs["input_ids"].shape[1]
        made = copy.copy(self._generation)
        made.max_new_tokens = max(limits)
        settings = self._settings
        draws = [turn.draw for turn in turns]
        with self._torch.inference_mode():
            found = self._model.generate(
                **move(inputs, self._model),
                generation_config=made,
                logits_processor=[RowSampler(draws, device, settings.top_k, settings.top_p)],
                stopping_criteria=[RowLimits(length, limits, stop, device)],
            )
        return [
            self._reply(row, limit, count)
            for row, limit, count in zip(found[:, length:].tolist(), limits, counts, strict=True)
        ]

    def _reply(self, row: list[int], limit: int, count: int) -> Reply:
        tokens, finish, taken = cut_row(row, limit, self._ends)
        reasoning, text = split_thought(self.dialogue.decode(tokens))
        return Reply(
            text,
            reasoning=reasoning,
            finish=finish,
            tokens_in=count,
            tokens_out=taken,
            served_by=self.architecture,
        )

    def _free(self) -> None:
        gc.collect()
        if self._torch.cuda.is_available():
            self._torch.cuda.empty_cache()


def _sees(config: Any) -> bool:
    """Return whether a model accepts images; reject an unsupported architecture."""
    auto: Any = importlib.import_module("transformers.models.auto.modeling_auto")
    remote = getattr(config, "auto_map", None) or {}
    if type(config) in auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING:
        return True
    if "AutoModelForImageTextToText" in remote:
        return True
    if type(config) in auto.MODEL_FOR_CAUSAL_LM_MAPPING or "AutoModelForCausalLM" in remote:
        return False
    raise Unavailable(
        f"a {config.model_type} model does not answer questions",
        hint="use a causal language model or an image-text-to-text model",
    )


def is_memory_error(error: BaseException) -> bool:
    """Return whether a device or this machine ran out of memory.

    >>> is_memory_error(MemoryError()), is_memory_error(ValueError("no"))
    (True, False)
    """
    words = str(error).lower()
    named = type(error).__name__ in ("OutOfMemoryError", "MemoryError")
    return named or (isinstance(error, RuntimeError) and "out of memory" in words)


def shorten(error: BaseException) -> str:
    """Return the first line of an error message."""
    line = next((part.strip() for part in str(error).splitlines() if part.strip()), "")
    return line[:300] or type(error).__name__


def _advise(error: BaseException) -> str:
    words = str(error)
    if "trust_remote_code" in words:
        return "it brings its own code; if you trust it: --param trust_remote_code=true"
    if isinstance(error, ImportError):
        return "install the package it names"
    if "does not recognize this architecture" in words or isinstance(error, KeyError):
        return "a newer transformers may know it: pip install --upgrade transformers"
    return "download the folder again, or try another checkpoint"
