"""Reports of runs: leaderboards, tables, plots, galleries and self-contained pages."""
