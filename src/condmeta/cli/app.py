"""The commands, and how errors are told."""

from __future__ import annotations

import click

import condmeta
from condmeta.cli.reproduce_command import reproduce_command


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(condmeta.__version__, prog_name="condmeta")
def app() -> None:
    """Give every small task a good model: conditional meta-learning."""


@app.command("versions")
def versions_command() -> None:
    """Show the versions of condmeta, its engine and the packages it works with."""
    condmeta.show_versions()


app.add_command(reproduce_command)
