#!/usr/bin/env bash
# From a folder of memes to a benchmark of one's own and a first score.
# Run it again after any interruption: nothing that was answered is asked twice.
#
#   examples/build_benchmark.sh MEMES MODEL [HOW MANY]
#
# MEMES is a folder of images, or "sample". Further options for the model, such as an address,
# go into MODEL_OPTIONS: MODEL_OPTIONS="--base-url http://localhost:8000/v1"; those for the
# questions into QUESTION_OPTIONS: QUESTION_OPTIONS="--per-dimension 2 --words 12".
set -euo pipefail

memes=$1 model=$2 limit=${3:-100000}
read -ra options <<<"${MODEL_OPTIONS:-}"
read -ra questions <<<"${QUESTION_OPTIONS:-}"

# What each meme shows, says and means: one structured call for every dimension.
memantics build knowledge "$memes" --model "$model" "${options[@]}" --limit "$limit" --out builds/memes

# Questions that rest on that knowledge, levelled so that length gives no key away.
memantics build questions builds/memes --model "$model" "${options[@]}" "${questions[@]}"

# People come in here: 'memantics annotate builds/memes/queue', then export its verdicts to
# builds/memes/queue/annotations.jsonl. Until then the data card says that nobody reviewed it.
unreviewed=--unreviewed
[ -f builds/memes/queue/annotations.jsonl ] && unreviewed=
memantics publish builds/memes --name my_memes --licence CC-BY-4.0 $unreviewed

# It runs like any other benchmark.
memantics run my_memes --model embedded/reader --model "$model" "${options[@]}"
memantics report runs/my-memes-* --out my_memes.html
