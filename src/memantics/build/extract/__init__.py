"""Knowledge from memes: one structured call for each dimension, in a declared order."""

from memantics.build.extract.chain import (
    Extraction,
    ExtractSettings,
    StepResult,
    extract_meme,
    extract_memes,
    in_order,
)
from memantics.build.extract.folder import (
    IMAGES,
    REPORT,
    Adopted,
    adopt_memes,
    read_background,
    write_report,
)
from memantics.build.extract.plan import PLANS, ExtractionPlan, PlannedStep, Refine, find_plan
from memantics.build.extract.report import KnowledgeReport, ReportTally

__all__ = [
    "IMAGES",
    "PLANS",
    "REPORT",
    "Adopted",
    "ExtractSettings",
    "Extraction",
    "ExtractionPlan",
    "KnowledgeReport",
    "PlannedStep",
    "Refine",
    "ReportTally",
    "StepResult",
    "adopt_memes",
    "extract_meme",
    "extract_memes",
    "find_plan",
    "in_order",
    "read_background",
    "write_report",
]
