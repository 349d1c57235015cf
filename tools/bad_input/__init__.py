"""Bad input, case by case, and the sentence that each case gets.

    python -m tools.bad_input       # writes docs/bad-input.md

A case is a call that cannot be right: of the Python functions (`python_calls.py`) or of the command
line (`commands.py`), with bad values from `values.py`. The contract is in `contract.py`: an error
of condmeta with a sentence, at once, and nothing changed. `tests/contracts/test_bad_input.py`
checks the contract, and that the page is up to date.
"""
