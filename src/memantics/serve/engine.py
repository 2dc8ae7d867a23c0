"""Everything that is loaded once and shared by all requests of a process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, TypeVar, cast

from memantics.actions.analyze import LocalParts
from memantics.actions.desk import Asking
from memantics.actions.detect import Detector, Moderator, RememberingOcr, Subject, Verdict
from memantics.actions.detector_files import find_detector
from memantics.actions.knowledge import STARTER, KnowledgeStore
from memantics.core.errors import MemanticsError
from memantics.serve.batching import Batcher
from memantics.serve.settings import ServeSettings

T = TypeVar("T")
_TEXTS, _IMAGES = 64, 4
_THREADS = 4
_FEW, _SHORT = 2000, 0.01  # characters, seconds: judged without another thread


class Engine:
    """Detector, OCR and knowledge, each behind a bounded queue.

    ``texts`` and ``images`` are judged and read in batches; ``work`` runs any other function in a
    thread, likewise bounded.
    """

    def __init__(self, settings: ServeSettings) -> None:
        models, room = settings.models, settings.bounds.waiting
        self._settings = models
        self.moderator = self._open()
        self.shadow = Moderator(Detector.load(models.shadow)) if models.shadow else None
        self.models = models.models
        # What clients send is in no cache of ours.
        self.asking: Asking = replace(models.asking, use_cache=False)
        self._store = models.store
        self.texts: Batcher[str | Subject, Verdict] = Batcher(
            self._judge, name="verdicts", most=_TEXTS, waiting=room
        )
        self.texts.is_quick = self._is_quick
        self.images: Batcher[bytes, Subject | MemanticsError] = Batcher(
            self._read, name="OCR", most=_IMAGES, waiting=room
        )
        self._others: Batcher[Callable[[], object], object] = Batcher(
            _call_first, name="other work", most=1, waiting=room, threads=_THREADS
        )

    def _open(self, ocr: RememberingOcr | None = None) -> Moderator:
        models = self._settings
        file = find_detector(models.detector)
        first = Detector.load(file) if file is not None else Detector.starter()
        others = [Detector.load(path) for path in models.others]
        return Moderator(first, ocr, models.language, others, models.text)

    def reload(self) -> str:
        """Open the files of the detectors again, and judge by them from the next batch on.

        What is being judged is finished by the old ones; where a file cannot be opened, they stay.
        """
        self.moderator = self._open(self.ocr)
        self.__dict__.pop("parts", None)
        return self.moderator.name

    # A batch is judged by the detectors that are open when it begins.
    def _judge(self, items: Sequence[str | Subject]) -> list[Verdict]:
        return self.moderator.judge(items)

    def _read(self, images: Sequence[bytes]) -> list[Subject | MemanticsError]:
        return self.moderator.read(images)

    @property
    def detector(self) -> Detector:
        """The first detector."""
        return self.moderator.detector

    def _is_quick(self, items: Sequence[str | Subject]) -> bool:
        length = sum(len(item if isinstance(item, str) else item.example.text) for item in items)
        return length <= _FEW and self.texts.pace * len(items) <= _SHORT

    @property
    def batchers(self) -> tuple[Batcher[Any, Any], ...]:
        """All queues."""
        return self.texts, self.images, self._others

    @property
    def ocr(self) -> RememberingOcr:
        """The OCR; threads may share it."""
        return self.moderator.ocr

    @cached_property
    def parts(self) -> LocalParts:
        """What this machine says about memes."""
        return LocalParts(self.detector, self.ocr)

    @cached_property
    def store(self) -> KnowledgeStore:
        """The knowledge that is asked; the starter pack's where no store was named."""
        if self._store is not None:
            return KnowledgeStore.open(self._store)
        made = KnowledgeStore.in_memory()
        made.import_path(STARTER)
        return made

    async def work(self, function: Callable[..., T], *args: object, **options: Any) -> T:
        """Run a function in a thread when its turn comes; a refusal where too many wait."""
        (found,) = await self._others.ask([partial(function, *args, **options)])
        return cast("T", found)

    def warm_up(self) -> None:
        """Load what the first request would wait for; the ear takes seconds and comes later."""
        _ = self.parts
        self.moderator.judge(["开始"])
        self.moderator.read([_blank()])

    async def close(self) -> None:
        """Finish what was accepted."""
        for batcher in self.batchers:
            await batcher.close()
        self.ocr.close()


def _call_first(calls: Sequence[Callable[[], object]]) -> list[object]:
    return [call() for call in calls]


def _blank() -> bytes:
    from PIL import Image

    from memantics.core.images import encode_png

    return encode_png(Image.new("RGB", (64, 64), "white"))
