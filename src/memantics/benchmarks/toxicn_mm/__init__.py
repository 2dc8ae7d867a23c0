"""ToxiCN MM: Chinese memes labelled for harm, its type, modality and target."""
