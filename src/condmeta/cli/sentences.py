"""Sentences of the library, which speaks of Python, in the words of the command line."""

from __future__ import annotations

WORDS = {
    "missing from side_info": "missing from the side table",
    "Give their rows in side_info, or set missing_side='mean'": (
        "Give their rows in --side-table, or fit with --missing-side mean"
    ),
    "name its key column with side_key=": "name its key column with --side-key",
    "say missing='impute'": "say --missing impute",
    "fit it with intervals=True": "fit it with --intervals",
    "calibrate takes regressors, not classifiers": "fit without --intervals",
    "Save it with resume=True, or call adapt with all the points of the task": (
        "Fit it without --share, or give all the rows of the task to adapt"
    ),
    "Save it with resume=True": "Fit it without --share",
    "take one learner, such as ConditionalRidge": "fit with --learner ridge",
    "take a classifier, or leave the choice to the target": "leave --learner out",
}


def in_commands(sentence: str) -> str:
    """Return a sentence with what a user of the command line can do.

    Examples
    --------
    >>> in_commands("The model has no intervals: fit it with intervals=True.")
    'The model has no intervals: fit it with --intervals.'
    """
    for python, command in WORDS.items():
        sentence = sentence.replace(python, command)
    return sentence
