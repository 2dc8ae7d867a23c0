"""Understanding of memes: OCR and text roles, homophone readings, knowledge, reappraisal."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memantics.understanding.analysis.records import Feeling as Feeling
    from memantics.understanding.analysis.records import Harm as Harm
    from memantics.understanding.analysis.records import Missing as Missing
    from memantics.understanding.edit import Edited as Edited
    from memantics.understanding.edit import edit as edit
    from memantics.understanding.edit import edit_async as edit_async
    from memantics.understanding.editing import DraftSettings as DraftSettings
    from memantics.understanding.editing import EditorSettings as EditorSettings
    from memantics.understanding.editing import ReappraiseSettings as ReappraiseSettings
    from memantics.understanding.extraction.chain import ExtractSettings as ExtractSettings
    from memantics.understanding.extraction.report import KnowledgeReport as KnowledgeReport
    from memantics.understanding.kb import SAMPLE as SAMPLE
    from memantics.understanding.kb import KnowledgeStore as KnowledgeStore
    from memantics.understanding.kb import StoreReader as StoreReader
    from memantics.understanding.kb import list_dimensions as list_dimensions
    from memantics.understanding.kb import outline as outline
    from memantics.understanding.kb import read_cell as read_cell
    from memantics.understanding.kb import retrieve as retrieve
    from memantics.understanding.kb import retrieve_background as retrieve_background
    from memantics.understanding.kb import tabulate_account as tabulate_account
    from memantics.understanding.kb import tabulate_breaches as tabulate_breaches
    from memantics.understanding.kb import tabulate_dangling as tabulate_dangling
    from memantics.understanding.kb import tabulate_near as tabulate_near
    from memantics.understanding.kb import tabulate_rows as tabulate_rows
    from memantics.understanding.kb import tabulate_store as tabulate_store
    from memantics.understanding.knowledge.drawing import read_style as read_style
    from memantics.understanding.knowledge.formats import GraphFormat as GraphFormat
    from memantics.understanding.knowledge.querying import MOST_CHARACTERS as MOST_CHARACTERS
    from memantics.understanding.knowledge.querying import PATIENCE as PATIENCE
    from memantics.understanding.knowledge.querying import QueryRows as QueryRows
    from memantics.understanding.knowledge.records import KNOWLEDGE as KNOWLEDGE
    from memantics.understanding.knowledge.records import Dangling as Dangling
    from memantics.understanding.knowledge.records import Knowledge as Knowledge
    from memantics.understanding.phonetics.detector import PunVerdict as PunVerdict
    from memantics.understanding.phonetics.evaluation import format_metrics as format_metrics
    from memantics.understanding.phonetics.reading import CaptionLanguage as CaptionLanguage
    from memantics.understanding.phonetics.reading import HomophoneReadings as HomophoneReadings
    from memantics.understanding.phonetics.reading import ModelName as ModelName
    from memantics.understanding.phonetics.reading import Settings as Settings
    from memantics.understanding.phonetics.reading import explain as explain
    from memantics.understanding.puns import detect_pun as detect_pun
    from memantics.understanding.puns import detect_pun_async as detect_pun_async
    from memantics.understanding.puns import read_captions as read_captions
    from memantics.understanding.puns import read_homophones as read_homophones
    from memantics.understanding.puns import score_readings as score_readings
    from memantics.understanding.reappraisal.records import MEME as MEME
    from memantics.understanding.reappraisal.records import PAGE as PAGE
    from memantics.understanding.reappraisal.records import SHEET as SHEET
    from memantics.understanding.reappraisal.records import Shape as Shape
    from memantics.understanding.reappraisal.records import TargetEmotion as TargetEmotion
    from memantics.understanding.reappraisal.stages import NO_MODEL as NO_MODEL
    from memantics.understanding.reappraisal.workshop import Reappraisal as Reappraisal
    from memantics.understanding.reappraisal.workshop import ReappraisalStage as ReappraisalStage
    from memantics.understanding.reappraise import ReappraisalDrafts as ReappraisalDrafts
    from memantics.understanding.reappraise import draft_reappraisals as draft_reappraisals
    from memantics.understanding.reappraise import (
        draft_reappraisals_async as draft_reappraisals_async,
    )
    from memantics.understanding.reappraise import reappraise as reappraise
    from memantics.understanding.reappraise import reappraise_async as reappraise_async
    from memantics.understanding.versions import none_read as none_read
    from memantics.understanding.versions import tabulate_results as tabulate_results
    from memantics.understanding.versions import tell_flaws as tell_flaws
    from memantics.understanding.versions import tell_sources as tell_sources
    from memantics.understanding.versions import tell_versions as tell_versions
else:
    from memantics.core.lazy import offer

    offer(__name__, __file__)
