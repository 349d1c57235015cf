"""`condmeta inspect`: what a model file holds, and in what two of them differ."""

from __future__ import annotations

import json
import os

import click

from condmeta.cli.failures import tell_failures


@click.command("inspect", short_help="What a model holds, or in what two differ.")
@click.argument("model")
@click.argument("other", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@tell_failures
def inspect_command(model, other, as_json):
    """Show what MODEL is and reads; with OTHER, in what the two differ.

    Two models are compared by settings, columns, tasks and coefficients.

    \b
    condmeta inspect stores.condmeta
    condmeta inspect stores.condmeta stores2.condmeta --json

    Exit codes: 0 done, 1 a file cannot be read, 2 the command was not understood.
    """
    if other is None:
        found = card_of(model)
    else:
        from condmeta.cli.models import load_any
        from condmeta.table.differences import differences

        found = {"first": model, "second": other}
        found |= differences(load_any(model), load_any(other))
    if as_json:
        click.echo(json.dumps(found, indent=2, default=str))
    else:
        click.echo("\n".join(lines_of(found)))


def card_of(path: str) -> dict:
    """Return the card of a model file and its size."""
    from condmeta.files import no_file
    from condmeta.persistence import read_card

    try:
        card = read_card(path)
        return {"file": path, "bytes": os.path.getsize(path)} | card
    except FileNotFoundError:
        raise no_file(path) from None


def lines_of(found: dict, indent: int = 0):
    """Yield a nested dict as lines of text: a name, then what it holds."""
    width = max((len(name) for name, value in found.items() if not _is_nested(value)), default=0)
    for name, value in found.items():
        shown = name.replace("_", " ")
        if not _is_nested(value):
            yield f"{' ' * indent}{shown:<{width + 2}}{_short(value)}"
            continue
        yield f"{' ' * indent}{shown}"
        for item in value if isinstance(value, list) else [value]:
            yield from (
                lines_of(_row(item), indent + 2)
                if isinstance(value, list)
                else lines_of(item, indent + 2)
            )


def _is_nested(value) -> bool:
    return bool(value) and (isinstance(value, dict) or _is_rows(value))


def _is_rows(value) -> bool:
    return isinstance(value, list) and all(isinstance(item, dict) for item in value)


def _row(item: dict) -> dict:
    """Return a row as one line: its first value names it."""
    (_, name), *rest = item.items()
    return {str(name): "  ".join(f"{key} {_short(value)}" for key, value in rest)}


def _short(value) -> str:
    """Write a value on one line, a long list by its beginning."""
    if isinstance(value, list):
        shown = ", ".join(map(_short, value[:12]))
        return f"{shown}, ... ({len(value)})" if len(value) > 12 else shown or "-"
    if isinstance(value, float):
        return f"{value:.6g}"
    return "-" if value is None or value == {} else str(value)
