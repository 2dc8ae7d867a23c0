#!/usr/bin/env bash
# Build a harm benchmark from your images: annotate, publish, split and audit it, train a detector,
# score two models, and fill the tables of ToxiCN MM's paper. Offline, with simulated annotators.
#
#   examples/reproduce_paper/own_paper.sh MEMES LABELS
#
# MEMES is a folder of images. LABELS is a table of simulated annotations (id, harmful, type,
# modality, target); real annotators use the browser: memantics annotate MEMES --workflow label-by-vote.
set -euo pipefail

memes=$1 labels=$2 here=$(cd "$(dirname "$0")" && pwd)
step() { printf '\n== %s\n' "$1"; }

step "1. Read the images: text, duplicates, template clusters"
memantics collect "$memes" --no-page

step "2. Draft captions of text and image, which the format of ToxiCN MM requires"
memantics build captions "$memes" --model "${MODEL:-fake/builder}" --out builds/own
cp builds/own/captions.jsonl "$memes/captions.jsonl"

step "3. Questionnaire for three annotators, in a separate database"
memantics annotate questionnaire --annotators 3 --out people
python "$here/vote.py" introduce people --db people.db
memantics annotate export 1 --db people.db --out people/annotations.jsonl

step "4. Annotate each meme; the majority label counts"
python "$here/vote.py" vote "$memes" "$labels" --db votes.db
memantics annotate export 1 --db votes.db --out "$memes/annotations.jsonl"

step "5. Publish a benchmark with a training and a test split, cluster-disjoint"
memantics publish "$memes" --name own_harm --licence CC-BY-4.0 --split 8:2

step "6. Audit it"
memantics audit own_harm --out own_harm-audit.html

step "7. Train a detector on it, and compare two in a study"
memantics detector train --data own_harm --preset ridge --out own_harm.zip
memantics detector study ridge linear --against ridge --data own_harm --out study

step "8. Score two models on both tasks"
memantics run own_harm/detection own_harm/type --model fake/keys --model embedded/reader --out runs

step "9. Fill the tables of ToxiCN MM's paper"
memantics paper own_harm runs/own-harm-* --detectors study --detectors own_harm.zip \
  --annotations "$memes" --annotations people
