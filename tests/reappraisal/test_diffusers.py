"""A real pipeline with tiny random weights, loaded from a folder and asked for a picture."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from memantics.core.errors import InputError, Unavailable, UnknownName
from memantics.core.images import decode
from memantics.models.editors import DiffusersEditor, DiffusersSettings, open_editor
from memantics.models.kinds import ModelSettings
from tests.reappraisal.test_openai_images import REQUEST

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_pipeline(tmp_path_factory.mktemp("pipeline"))


def make_pipeline(folder: Path, *, inpaint: bool = False) -> Path:
    """An instruction or inpainting editor of a few thousand weights."""
    pytest.importorskip("diffusers", reason="the extra 'edit' is not installed")
    torch: Any = pytest.importorskip("torch")
    import diffusers
    import transformers

    folder.mkdir(exist_ok=True)
    library: Any = diffusers
    words: Any = transformers
    torch.manual_seed(0)
    unet = library.UNet2DConditionModel(
        block_out_channels=(8, 16),
        layers_per_block=1,
        norm_num_groups=4,
        sample_size=8,
        in_channels=9 if inpaint else 8,
        out_channels=4,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
        cross_attention_dim=16,
        attention_head_dim=4,
    )
    vae = library.AutoencoderKL(
        block_out_channels=[8, 16],
        norm_num_groups=4,
        in_channels=3,
        out_channels=3,
        down_block_types=["DownEncoderBlock2D", "DownEncoderBlock2D"],
        up_block_types=["UpDecoderBlock2D", "UpDecoderBlock2D"],
        latent_channels=4,
        sample_size=16,
    )
    config = words.CLIPTextConfig(
        hidden_size=16,
        intermediate_size=24,
        num_attention_heads=2,
        num_hidden_layers=1,
        vocab_size=300,
        max_position_embeddings=32,
        bos_token_id=0,
        eos_token_id=1,
        pad_token_id=1,
    )
    kind = "StableDiffusionInpaintPipeline" if inpaint else "StableDiffusionInstructPix2PixPipeline"
    made = getattr(library, kind)(
        vae=vae,
        text_encoder=words.CLIPTextModel(config),
        tokenizer=_make_tokenizer(folder / "words", words),
        unet=unet,
        scheduler=library.DDIMScheduler(),
        safety_checker=None,
        feature_extractor=None,
        requires_safety_checker=False,
    )
    made.save_pretrained(str(folder), safe_serialization=True)
    return folder


def _make_tokenizer(folder: Path, words: Any) -> Any:
    """A tokenizer that knows single letters."""
    folder.mkdir()
    letters = "abcdefghijklmnopqrstuvwxyz"
    names = ["<|startoftext|>", "<|endoftext|>", *letters, *(f"{c}</w>" for c in letters)]
    vocabulary = {name: place for place, name in enumerate(names)}
    (folder / "vocab.json").write_text(json.dumps(vocabulary))
    (folder / "merges.txt").write_text("#version: 0.2\n")
    return words.CLIPTokenizer(
        str(folder / "vocab.json"), str(folder / "merges.txt"), model_max_length=32
    )


def test_a_picture_comes_back_in_the_size_of_its_source(pipeline: Path) -> None:
    async def work(editor: DiffusersEditor) -> bytes:
        try:
            return await editor.edit(REQUEST)
        finally:
            await editor.close()

    settings = DiffusersSettings(steps=2, longest=64)
    pictures = [asyncio.run(work(DiffusersEditor(pipeline, settings))) for _ in range(2)]
    assert decode(pictures[0], "made").size == (16, 12)
    assert pictures[0] == pictures[1]


def test_settings_are_checked(pipeline: Path) -> None:
    editor = open_editor(
        f"diffusers/{pipeline}", ModelSettings(params={"steps": "2", "guidance": "5"})
    )
    assert editor.identity["settings"] == {
        "steps": 2,
        "guidance": 5.0,
        "image_guidance": None,
        "strength": None,
        "longest": 1024,
    }
    with pytest.raises(UnknownName):
        open_editor(f"diffusers/{pipeline}", ModelSettings(params={"colour": "red"}))
    with pytest.raises(InputError, match="use a whole number"):
        open_editor(f"diffusers/{pipeline}", ModelSettings(params={"steps": "many"}))


def test_a_folder_that_is_no_pipeline_is_said(tmp_path: Path) -> None:
    pytest.importorskip("diffusers", reason="the extra 'edit' is not installed")
    (tmp_path / "model_index.json").write_text('{"_class_name": "NoSuchPipeline"}')

    async def work() -> bytes:
        editor = DiffusersEditor(tmp_path)
        try:
            return await editor.edit(REQUEST)
        finally:
            await editor.close()

    with pytest.raises(Unavailable, match="cannot be loaded as a pipeline"):
        asyncio.run(work())
