"""Tiny models with random weights, made from configs: nothing is downloaded.

Each folder is a checkpoint as one would download it: config, weights, tokenizer, processor and
chat template. The tokenizer reads bytes. Weights are scaled up: with the usual start the largest
logit hangs on rounding, and no comparison of two ways to compute it would mean anything.
"""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

END, PAD, START = "<|im_end|>", "<|pad|>", "<|im_start|>"
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n"
    "{% if m['content'] is string %}{{ m['content'] }}{% else %}{% for c in m['content'] %}"
    "{% if c['type'] == 'image' %}IMAGE{% else %}{{ c['text'] }}{% endif %}{% endfor %}{% endif %}"
    "<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% if note is defined %}{{ note }}"
    "{% endif %}{% endif %}"
)

VISION: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
}


def make_tokenizer(marks: tuple[str, ...] = (), image: str = "") -> Any:
    tokenizers: Any = importlib.import_module("tokenizers")
    transformers: Any = importlib.import_module("transformers")
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {letter: place for place, letter in enumerate(alphabet)}
    plain = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=vocabulary, merges=[]))
    plain.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    plain.decoder = tokenizers.decoders.ByteLevel()
    made = transformers.PreTrainedTokenizerFast(
        tokenizer_object=plain,
        eos_token=END,
        pad_token=PAD,
        additional_special_tokens=[START, *marks],
    )
    made.chat_template = TEMPLATE.replace("IMAGE", image)
    return made


def text_settings(tokenizer: Any, **changes: Any) -> dict[str, Any]:
    return {
        "vocab_size": len(tokenizer),
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 2048,
        "bos_token_id": None,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
    } | changes


def save(folder: Path, model: Any, tokenizer: Any) -> Path:
    torch: Any = importlib.import_module("torch")
    with torch.no_grad():
        for weights in model.parameters():
            if weights.dim() > 1:
                weights.mul_(6.0)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def make_qwen(folder: Path, kind: str, vision: dict[str, Any], patch: int = 14) -> Path:
    """Images of any size become a number of tokens that depends on it."""
    transformers, torch = _packages()
    marks = ("<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>")
    tokenizer = make_tokenizer(marks, "<|vision_start|><|image_pad|><|vision_end|>")
    ids = dict(zip(marks, tokenizer.convert_tokens_to_ids(list(marks)), strict=True))
    rope = {"rope_type": "default", "mrope_section": [1, 1, 2], "rope_theta": 10000.0}
    config = getattr(transformers, kind)(
        text_config=text_settings(tokenizer, rope_parameters=rope, head_dim=8),
        vision_config={"depth": 2, "num_heads": 4, "hidden_size": 32} | vision,
        vision_start_token_id=ids["<|vision_start|>"],
        vision_end_token_id=ids["<|vision_end|>"],
        image_token_id=ids["<|image_pad|>"],
        video_token_id=ids["<|video_pad|>"],
    )
    torch.manual_seed(1)
    model = transformers.AutoModelForImageTextToText.from_config(config)
    pil: Any = importlib.import_module("transformers.models.qwen2_vl.image_processing_pil_qwen2_vl")
    unit = 4 * patch * patch
    size = {"shortest_edge": unit, "longest_edge": unit * 16}
    pil.Qwen2VLImageProcessorPil(size=size, patch_size=patch).save_pretrained(folder)
    return save(folder, model, tokenizer)


def make_qwen2_vl(folder: Path) -> Path:
    return make_qwen(folder, "Qwen2VLConfig", {"embed_dim": 32})


def make_qwen2_5_vl(folder: Path) -> Path:
    vision = {"intermediate_size": 64, "out_hidden_size": 32, "window_size": 56}
    return make_qwen(folder, "Qwen2_5_VLConfig", vision | {"fullatt_block_indexes": [1]})


def make_qwen3_vl(folder: Path) -> Path:
    vision: dict[str, Any] = {"intermediate_size": 64, "out_hidden_size": 32, "patch_size": 16}
    vision |= {"deepstack_visual_indexes": [0], "num_position_embeddings": 64}
    return make_qwen(folder, "Qwen3VLConfig", vision, patch=16)


def make_internvl(folder: Path) -> Path:
    """A large image is cut into tiles, and each becomes the same number of tokens."""
    transformers, torch = _packages()
    marks = {
        "start_image_token": "<img>",
        "end_image_token": "</img>",
        "context_image_token": "<IMG_CONTEXT>",
        "video_token": "<video>",
    }
    plain = make_tokenizer(tuple(marks.values()), "<IMG_CONTEXT>")
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=plain.backend_tokenizer,
        eos_token=END,
        pad_token=PAD,
        extra_special_tokens=marks,
        chat_template=plain.chat_template,
    )
    vision: dict[str, Any] = {"image_size": [56, 56], "patch_size": [14, 14]}
    config = transformers.InternVLConfig(
        text_config={"model_type": "qwen2", **text_settings(tokenizer)},
        vision_config=VISION | vision,
        image_token_id=tokenizer.convert_tokens_to_ids("<IMG_CONTEXT>"),
        image_seq_length=4,
    )
    torch.manual_seed(4)
    model = transformers.AutoModelForImageTextToText.from_config(config)
    pil: Any = importlib.import_module("transformers.models.got_ocr2.image_processing_pil_got_ocr2")
    pil.GotOcr2ImageProcessorPil(
        size={"height": 56, "width": 56}, crop_to_patches=True, max_patches=4
    ).save_pretrained(folder)
    facts = {"processor_class": "InternVLProcessor", "image_seq_length": 4}
    (folder / "processor_config.json").write_text(json.dumps(facts), encoding="utf-8")
    return save(folder, model, tokenizer)


def make_pixtral(folder: Path) -> Path:
    """Rows of patches with a mark behind each; its processor cannot do without torchvision."""
    transformers, torch = _packages()
    tokenizer = make_tokenizer(("[IMG]", "[IMG_BREAK]", "[IMG_END]"), "[IMG]")
    vision = {"model_type": "pixtral", "image_size": 112, "patch_size": 14}
    config = transformers.LlavaConfig(
        text_config={"model_type": "mistral", **text_settings(tokenizer)},
        vision_config=VISION | vision,
        image_token_id=tokenizer.convert_tokens_to_ids("[IMG]"),
        vision_feature_select_strategy="full",
        vision_feature_layer=-1,
    )
    torch.manual_seed(5)
    model = transformers.AutoModelForImageTextToText.from_config(config)
    pil: Any = importlib.import_module("transformers.models.pixtral.image_processing_pil_pixtral")
    images = pil.PixtralImageProcessorPil(
        size={"longest_edge": 112}, patch_size={"height": 14, "width": 14}
    )
    transformers.PixtralProcessor(
        image_processor=images,
        tokenizer=tokenizer,
        patch_size=14,
        chat_template=tokenizer.chat_template,
    ).save_pretrained(folder)
    return save(folder, model, tokenizer)


def make_llava(folder: Path) -> Path:
    """Every image becomes the same number of tokens."""
    transformers, torch = _packages()
    tokenizer = make_tokenizer(("<image>",), "<image>")
    config = transformers.LlavaConfig(
        text_config={"model_type": "llama", **text_settings(tokenizer)},
        vision_config=VISION
        | {"model_type": "clip_vision_model", "image_size": 28, "patch_size": 14},
        image_token_id=tokenizer.convert_tokens_to_ids("<image>"),
        vision_feature_select_strategy="default",
        vision_feature_layer=-1,
    )
    torch.manual_seed(2)
    model = transformers.AutoModelForImageTextToText.from_config(config)
    pil: Any = importlib.import_module("transformers.models.clip.image_processing_pil_clip")
    square = {"height": 28, "width": 28}
    processor = transformers.LlavaProcessor(
        image_processor=pil.CLIPImageProcessorPil(size=square, crop_size=square),
        tokenizer=tokenizer,
        patch_size=14,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=tokenizer.chat_template,
    )
    processor.save_pretrained(folder)
    return save(folder, model, tokenizer)


def make_llama(folder: Path) -> Path:
    """A causal language model without eyes."""
    transformers, torch = _packages()
    tokenizer = make_tokenizer()
    torch.manual_seed(3)
    config = transformers.LlamaConfig(**text_settings(tokenizer))
    model = transformers.AutoModelForCausalLM.from_config(config)
    return save(folder, model, tokenizer)


def make_blip(folder: Path, kind: str, text: dict[str, Any]) -> Path:
    """One picture becomes as many tokens as there are queries; no chat template."""
    transformers, torch = _packages()
    tokenizer = make_tokenizer(("<image>",))
    tokenizer.chat_template = None
    vision: dict[str, Any] = {"image_size": 28, "patch_size": 14}
    reader: dict[str, Any] = VISION | {"vocab_size": len(tokenizer), "encoder_hidden_size": 32}
    size = {"vocab_size": len(tokenizer), "pad_token_id": tokenizer.pad_token_id}
    config = getattr(transformers, f"{kind}Config")(
        vision_config=VISION | vision,
        qformer_config=reader | {"pad_token_id": tokenizer.pad_token_id},
        text_config=text | size | {"eos_token_id": tokenizer.eos_token_id},
        num_query_tokens=4,
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
    )
    torch.manual_seed(6)
    model = getattr(transformers, f"{kind}ForConditionalGeneration")(config)
    pil: Any = importlib.import_module("transformers.models.blip.image_processing_pil_blip")
    images = pil.BlipImageProcessorPil(size={"height": 28, "width": 28})
    parts = [images, tokenizer] + ([tokenizer] if kind == "InstructBlip" else [])
    processor = getattr(transformers, f"{kind}Processor")(*parts, num_query_tokens=4)
    processor.save_pretrained(folder)
    return save(folder, model, processor.tokenizer)


def make_blip2(folder: Path) -> Path:
    """A picture before a language model that writes on."""
    text = {"model_type": "opt", "hidden_size": 32, "ffn_dim": 64, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 4, "word_embed_proj_dim": 32, "max_position_embeddings": 512}
    return make_blip(folder, "Blip2", text | heads)


def make_instructblip(folder: Path) -> Path:
    """A picture before an encoder, whose decoder answers."""
    text = {"model_type": "t5", "d_model": 32, "d_ff": 64, "d_kv": 8, "num_layers": 2}
    return make_blip(folder, "InstructBlip", text | {"num_heads": 4, "decoder_start_token_id": 0})


# Without a chat template.
PLAIN = {"blip2": make_blip2, "instructblip": make_instructblip}
MAKERS = {
    "qwen2_vl": make_qwen2_vl,
    "qwen2_5_vl": make_qwen2_5_vl,
    "qwen3_vl": make_qwen3_vl,
    "internvl": make_internvl,
    "llava": make_llava,
    "pixtral": make_pixtral,
    "llama": make_llama,
}
BLIND = frozenset({"llama"})
NEED_TORCHVISION = frozenset({"pixtral"})


def _packages() -> tuple[Any, Any]:
    return importlib.import_module("transformers"), importlib.import_module("torch")
