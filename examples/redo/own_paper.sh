#!/usr/bin/env bash
# From images of one's own to a voted, published, split and audited benchmark, a trained detector,
# two scored models and the tables of ToxiCN MM's paper. Offline: voters and models are made up.
#
#   examples/redo/own_paper.sh MEMES LABELS
#
# MEMES is a folder of images. LABELS is a table of what the made-up voters say (id, harmful, type,
# modality, target); real ones vote in the browser: memantics annotate MEMES --workflow label-by-vote.
set -euo pipefail

memes=$1 labels=$2 here=$(cd "$(dirname "$0")" && pwd)
step() { printf '\n== %s\n' "$1"; }

step "1. Read the images: what is printed on each, copies, template clusters"
memantics collect "$memes" --no-page

step "2. Draft captions: what words mean and pictures show; the format of ToxiCN MM wants both"
memantics build captions "$memes" --model "${MODEL:-fake/builder}" --out builds/own
cp builds/own/captions.jsonl "$memes/captions.jsonl"

step "3. Ask three people who they are, in a database that takes no votes"
memantics annotate questionnaire --annotators 3 --out people
python "$here/vote.py" introduce people --db people.db
memantics annotate export 1 --db people.db --out people/annotations.jsonl

step "4. Let them vote on each meme; the verdict is what most of them say"
python "$here/vote.py" vote "$memes" "$labels" --db votes.db
memantics annotate export 1 --db votes.db --out "$memes/annotations.jsonl"

step "5. Publish a benchmark with a training and a test part; memes of one template stay together"
memantics publish "$memes" --name own_harm --licence CC-BY-4.0 --split 8:2

step "6. Audit it"
memantics audit own_harm --out own_harm-audit.html

step "7. Train a detector on it, and compare two in a study"
memantics detector train --data own_harm --preset ridge --out own_harm.zip
memantics detector study ridge linear --against ridge --data own_harm --out study

step "8. Score two models on both tasks"
memantics run own_harm/detection own_harm/type --model fake/keys --model embedded/reader --out runs

step "9. Put all of it into the tables of the family's paper"
memantics paper own_harm runs/own-harm-* --detectors study --detectors own_harm.zip \
  --annotations "$memes" --annotations people
