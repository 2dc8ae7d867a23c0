#!/usr/bin/env bash
# Turn a folder of memes into a benchmark and score a model on it.
# After an interruption, run it again: logged calls are reused.
#
#   examples/build_benchmark.sh MEMES MODEL [HOW MANY]
#
# MEMES is a folder of images, or "sample". Set MODEL_OPTIONS for the model, such as
# MODEL_OPTIONS="--base-url http://localhost:8000/v1", and QUESTION_OPTIONS for the questions, such
# as QUESTION_OPTIONS="--per-dimension 2 --words 12".
set -euo pipefail

memes=$1 model=$2 limit=${3:-100000}
read -ra options <<<"${MODEL_OPTIONS:-}"
read -ra questions <<<"${QUESTION_OPTIONS:-}"

# Extract what each meme shows, says and means, with one structured call per dimension.
memantics build knowledge "$memes" --model "$model" "${options[@]}" --limit "$limit" --out builds/memes

# Write questions from that knowledge and remove answer cues.
memantics build questions builds/memes --model "$model" "${options[@]}" "${questions[@]}"

# Human review: 'memantics annotate builds/memes/queue', then export the annotations to
# builds/memes/queue/annotations.jsonl. Without them, the data card states that nobody reviewed it.
unreviewed=--unreviewed
[ -f builds/memes/queue/annotations.jsonl ] && unreviewed=
memantics publish builds/memes --name my_memes --licence CC-BY-4.0 $unreviewed

# Run it like any other benchmark.
memantics run my_memes --model embedded/reader --model "$model" "${options[@]}"
memantics report runs/my-memes-* --out my_memes.html
