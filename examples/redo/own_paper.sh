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

# What is printed on each meme, copies, template families.
memantics collect "$memes" --no-page

# What words mean and pictures show: the format of ToxiCN MM wants both.
memantics build captions "$memes" --model "${MODEL:-fake/builder}" --out builds/own
cp builds/own/captions.jsonl "$memes/captions.jsonl"

# Three people vote on each meme; the verdicts are what most of them say.
python "$here/vote.py" "$memes" "$labels" --db votes.db
memantics annotate export 1 --db votes.db --out "$memes/verdicts.jsonl"

# A benchmark that runs at once; memes of one template stay in one part. Its card holds an audit.
memantics publish "$memes" --name own_harm --licence CC-BY-4.0 --split 8:2
memantics audit own_harm --out own_harm-audit.html

# A detector of one's own, and a study that compares two.
memantics detector train --data own_harm --preset ridge --out own_harm.zip
memantics detector study ridge linear --against ridge --data own_harm --out study

# Two models on both tasks.
memantics run own_harm/detection own_harm/type --model fake/keys --model embedded/reader --out runs

# The tables of the family's paper, from one's own data: all of it on one page.
memantics paper own_harm runs/own-harm-* --detectors study --detectors own_harm.zip --verdicts "$memes"
