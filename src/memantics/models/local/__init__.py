"""``local/PATH``: open models on this machine, through transformers (extra ``local``)."""

from memantics.models.kinds import ModelKind
from memantics.models.local.model import LocalModel
from memantics.models.local.settings import read_settings

__all__ = ["KIND"]

KIND = ModelKind(
    "local",
    "local/PATH",
    "open model in a local folder, through transformers (extra: local)",
    lambda name, settings: LocalModel(name, read_settings(settings.params)),
)
