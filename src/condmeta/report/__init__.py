"""The outcome of a reproduction as one self-contained page, or as plain data (needs jinja2)."""

from condmeta.report.outcome import outcome_of
from condmeta.report.reproduction import write_report

__all__ = ["outcome_of", "write_report"]
