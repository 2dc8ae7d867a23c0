"""The verbs: one module each, typed in and typed out; every face calls these and nothing else."""
