"""Every task of ours as a task of Inspect: ``inspect eval memantics/mquest_qa --model …``."""
