"""``local/PATH``: open models on this machine, through transformers (extra ``local``)."""

from memantics.models.local.model import LocalModel
from memantics.models.local.settings import LocalSettings, read_settings

__all__ = ["LocalModel", "LocalSettings", "read_settings"]
