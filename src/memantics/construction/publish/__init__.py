"""Publishing: reviewed drafts become a benchmark that runs at once, and a data set for others."""
