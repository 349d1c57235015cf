"""What a fit leaves: one immutable value that answers every question (see `fitted.py`)."""
