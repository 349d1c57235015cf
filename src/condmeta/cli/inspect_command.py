"""`condmeta inspect`: the contents of a model file, or the differences of two."""

import json
import os

import click

from condmeta.cli.failures import report_failures


@click.command("inspect", short_help="Show a model, or how two models differ.")
@click.argument("model")
@click.argument("other", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@report_failures
def inspect_command(model, other, as_json):
    """Show the columns, sizes and settings of MODEL; with OTHER, how the two models differ.

    Two models are compared by settings, columns, tasks and coefficients.

    \b
    condmeta inspect stores.condmeta
    condmeta inspect stores.condmeta stores2.condmeta --json

    Exit codes: 0 done, 1 a file cannot be read, 2 wrong usage.
    """
    from condmeta.cli.inputs import open_model
    from condmeta.persistence import read_card
    from condmeta.tables.files.source import require_file

    for path in (model, other):
        if path is not None:
            require_file(path)
    if other is None:
        card = open_model(model, read_card)
        found = {"file": model, "bytes": os.path.getsize(model)} | card
    else:
        from condmeta.tables.differences import differences  # loads scikit-learn

        found = {"first": model, "second": other}
        found |= differences(open_model(model), open_model(other))
    if as_json:
        click.echo(json.dumps(found, indent=2, default=str))
    else:
        click.echo("\n".join(_lines(found)))


def _lines(found: dict, indent: int = 0):
    """Yield a nested dict as lines of text: a name, then its value."""
    width = max((len(name) for name, value in found.items() if not _is_nested(value)), default=0)
    for name, value in found.items():
        shown = name.replace("_", " ")
        if not _is_nested(value):
            yield f"{' ' * indent}{shown:<{width + 2}}{_short(value)}"
            continue
        yield f"{' ' * indent}{shown}"
        for item in map(_row, value) if isinstance(value, list) else [value]:
            yield from _lines(item, indent + 2)


def _is_nested(value) -> bool:
    """Return whether a value is a dict or a list of dicts, and not empty."""
    rows = value if isinstance(value, list) else [value]
    return bool(value) and all(isinstance(row, dict) for row in rows)


def _row(item: dict) -> dict:
    """Return a row as one line, named by its first value."""
    (_, name), *rest = item.items()
    return {str(name): "  ".join(f"{key} {_short(value)}" for key, value in rest)}


def _short(value) -> str:
    """Return a value as text on one line; a long list is cut."""
    if isinstance(value, list):
        shown = ", ".join(map(_short, value[:12]))
        return f"{shown}, ... ({len(value)})" if len(value) > 12 else shown or "-"
    if isinstance(value, float):
        return f"{value:.6g}"
    return "-" if value is None or value == {} else str(value)
