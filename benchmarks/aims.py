"""What `quality.py` measures on FBSQ, with what was aimed at: must, target and stretch, in per cent."""

TAGGERS = {"crf": (86.5, 88.5, 90), "bigru-crf": (91, 93, 94), "bigru-crf+": (96, 97.3, 98)}
RELATIONS = {
    "embed-avg": ((73, 75, 76), (93, 94, 94.7)),
    "ltg-cnn+": ((70.5, 72.5, 75), (94.2, 95.2, 96)),
    "bigru": ((76.5, 78.3, 80), (94, 95, 95.7)),
}
PRUNING = {
    ("focused", "bigru-crf"): (92, 93.4, 94.5),
    ("focused", "bigru-crf+"): (94.3, 95.4, 96),
    ("focused-k", "bigru-crf+"): (95.5, 96.4, 97),
}
END_TO_END = {
    ("n-gram", "bigru-crf+"): (63, 65, 67),
    ("n-gram+", "bigru-crf+"): (74.5, 76, 78),
    ("focused", "bigru-crf"): (81, 82.5, 84),
    ("focused", "bigru-crf+"): (83, 84.4, 85.2),
}
PAPER = (79, 80.5, 82)
"""The profile `paper`, end to end."""

BEST, BEST_OBJECT = (84.5, 85.8, 87), (85.2, 86.5, 87.7)
"""The profile `best`, end to end: the pair, and the object it leads to."""

UNSEEN = (70, 80, 85)
"""Questions whose relation training has not seen, by `ltg-cnn+`, given the subject."""

HINGE = (69.5, 71.5, 74)
"""`bigru` trained with the hinge, all relations."""

SECONDS = {"bigru-crf+": 400, "bigru": 400, "ltg-cnn+": 450, "type-vector": 350, "embed-avg": 90}
"""CPU seconds of training that must not be passed."""
