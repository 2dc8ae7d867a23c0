"""``local/PATH``: open models on this machine, through transformers (extra ``local``)."""

from memantics.models.kinds import ModelKind
from memantics.models.local.model import LocalModel
from memantics.models.local.settings import LocalSettings, read_settings

__all__ = ["KIND", "LocalModel", "LocalSettings", "read_settings"]

KIND = ModelKind(
    "local",
    "local/PATH",
    "an open model in a folder here, through transformers (extra: local)",
    lambda name, settings: LocalModel(name, read_settings(settings.params)),
)
