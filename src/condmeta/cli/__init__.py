"""The command `condmeta` (needs click and rich)."""

import sys


def main() -> None:
    """Run the command line; heavy packages are loaded by the command that needs them."""
    try:
        from condmeta.cli.app import app
    except ModuleNotFoundError as error:
        if error.name not in ("click", "rich"):
            raise
        sys.exit('The command line needs click and rich: pip install "condmeta[cli]".')
    app()


__all__ = ["main"]
