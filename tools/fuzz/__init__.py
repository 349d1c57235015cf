"""Fuzzing: random and hostile input for the parts of condmeta that read raw memory, bytes or text.

    make fuzz FUZZ_SECONDS=60       # this many seconds for each target
    python -m tools.fuzz native     # one target

Every target makes a call from random parts and checks a contract: an answer or a clear refusal,
never another exception, and nothing changed by a refused call. Hypothesis draws the parts and
reduces a failure to a small example, which it prints.
"""
