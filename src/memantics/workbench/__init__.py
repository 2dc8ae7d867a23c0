"""Functions that combine the packages: ``analyze``, the studio, the demo and sharded analyses."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memantics.workbench.analyze import Analyses as Analyses
    from memantics.workbench.analyze import Analysis as Analysis
    from memantics.workbench.analyze import AnalyzeSettings as AnalyzeSettings
    from memantics.workbench.analyze import LocalParts as LocalParts
    from memantics.workbench.analyze import analyze as analyze
    from memantics.workbench.analyze import analyze_async as analyze_async
    from memantics.workbench.analyze import describe as describe
    from memantics.workbench.demo import Tour as Tour
    from memantics.workbench.demo import demo as demo
    from memantics.workbench.shards import ShardsBuilt as ShardsBuilt
    from memantics.workbench.shards import build_shards as build_shards
    from memantics.workbench.studio import HarmFound as HarmFound
    from memantics.workbench.studio import HomophoneFound as HomophoneFound
    from memantics.workbench.studio import KinderFound as KinderFound
    from memantics.workbench.studio import MeaningFound as MeaningFound
    from memantics.workbench.studio import Picture as Picture
    from memantics.workbench.studio import Studio as Studio
    from memantics.workbench.studio import TextFound as TextFound
    from memantics.workbench.studio import draw_meaning as draw_meaning
    from memantics.workbench.studio import find_homophones as find_homophones
    from memantics.workbench.studio import follow_meaning as follow_meaning
    from memantics.workbench.studio import judge as judge
    from memantics.workbench.studio import list_samples as list_samples
    from memantics.workbench.studio import read_text as read_text
    from memantics.workbench.studio import redraw as redraw
    from memantics.workbench.studio import soften as soften
    from memantics.workbench.studio import tell_sample_meaning as tell_sample_meaning
else:
    from memantics.core.lazy import offer

    offer(__name__, __file__)
