"""LoRA tuning of local vision-language models for pun and harm detection (extra ``detector``)."""
