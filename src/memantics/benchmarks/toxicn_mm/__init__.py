"""ToxiCN MM: Chinese memes with the harm they do, its type, modality and target."""
