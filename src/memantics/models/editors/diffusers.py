"""``diffusers/PATH``: an instruction or inpainting pipeline in a local folder (extra: edit).

Nothing is downloaded and no code of the folder is run: only safetensors weights and the classes
of the diffusers library itself are loaded.
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from PIL import Image
from pydantic import JsonValue

from memantics.core.closed import Closed
from memantics.core.editor import EditRequest
from memantics.core.errors import InputError, MissingExtra, Rejected, Unavailable
from memantics.core.images import decode, encode_png

_STEP = 8  # pipelines work on multiples of this


def choose_size(size: tuple[int, int], longest: int) -> tuple[int, int]:
    """The size at which a pipeline works: bounded, near to the shape, in steps of 8.

    >>> choose_size((1000, 500), 768)
    (768, 384)
    >>> choose_size((30, 31), 768)
    (32, 32)
    """
    scale = min(1.0, longest / max(size))
    width, height = (max(_STEP, round(side * scale / _STEP) * _STEP) for side in size)
    return width, height


class DiffusersSettings(Closed):
    """How pictures are made. ``None`` leaves the pipeline's own default."""

    steps: int = 30
    guidance: float | None = None
    image_guidance: float | None = None
    strength: float | None = None
    longest: int = 1024


class DiffusersEditor:
    """Runs a pipeline on one thread of its own; it is loaded at the first picture."""

    note = ""

    def __init__(self, path: Path, settings: DiffusersSettings | None = None) -> None:
        if not (path / "model_index.json").is_file():
            raise InputError(
                f"{path} holds no pipeline: model_index.json is missing",
                hint="name a folder that diffusers' save_pretrained wrote",
            )
        self.name = f"diffusers/{path}"
        self.settings = settings or DiffusersSettings()
        self._path = path
        self._pipeline: Any = None
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="editor")

    @property
    def identity(self) -> Mapping[str, JsonValue]:
        """The pipeline's index and the settings."""
        index = (self._path / "model_index.json").read_bytes()
        return {
            "name": self.name,
            "index": hashlib.sha256(index).hexdigest()[:16],
            "settings": self.settings.model_dump(),
        }

    async def edit(self, request: EditRequest) -> bytes:
        """Repaint one picture."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._worker, self._edit, request)

    def _edit(self, request: EditRequest) -> bytes:
        pipeline = self._load()
        import torch

        source = decode(request.image, "picture")
        mask = decode(request.mask, "mask").convert("L") if request.mask else None
        size = choose_size(source.size, self.settings.longest)
        takes = inspect.signature(pipeline.__call__).parameters
        offered: dict[str, Any] = {
            "prompt": request.instruction,
            "image": source.resize(size, Image.Resampling.LANCZOS),
            "mask_image": mask and mask.resize(size, Image.Resampling.NEAREST),
            "width": size[0],
            "height": size[1],
            "num_inference_steps": self.settings.steps,
            "guidance_scale": self.settings.guidance,
            "image_guidance_scale": self.settings.image_guidance,
            "strength": self.settings.strength,
            "generator": torch.Generator("cpu").manual_seed(request.seed),
        }
        if "image" not in takes:
            raise Rejected(
                f"{type(pipeline).__name__} makes pictures from nothing",
                hint="use an instruction, image-to-image or inpainting pipeline",
            )
        given = {k: v for k, v in offered.items() if k in takes and v is not None}
        try:
            painted = pipeline(**given).images[0]
        except (RuntimeError, ValueError, TypeError) as error:
            raise Rejected(f"{self.name} failed: {error}") from error
        return encode_png(painted.convert("RGB").resize(source.size, Image.Resampling.LANCZOS))

    def _load(self) -> Any:
        if self._pipeline is None:
            try:
                import torch
                from diffusers import DiffusionPipeline
            except ImportError as error:
                raise MissingExtra("diffusers/… editors", "edit") from error
            loader: Any = DiffusionPipeline  # untyped
            try:
                pipeline = loader.from_pretrained(
                    str(self._path),
                    local_files_only=True,
                    use_safetensors=True,
                    trust_remote_code=False,
                    torch_dtype=torch.float16 if torch.cuda.is_available() else torch.float32,
                )
            except (OSError, ValueError, AttributeError, TypeError) as error:
                raise Unavailable(
                    f"{self._path} cannot be loaded as a pipeline: {str(error).splitlines()[0]}",
                    hint="name a folder that diffusers' save_pretrained wrote",
                ) from error
            pipeline.set_progress_bar_config(disable=True)
            self._pipeline = pipeline.to("cuda" if torch.cuda.is_available() else "cpu")
        return self._pipeline

    async def close(self) -> None:
        """Let the thread end and the weights go."""
        await asyncio.to_thread(self._worker.shutdown, cancel_futures=True)
        self._pipeline = None
