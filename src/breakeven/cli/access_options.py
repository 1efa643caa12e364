"""How a server is reached where nothing is asked of its model: credentials, headers and TLS."""

from __future__ import annotations

from pathlib import Path

import click

from breakeven.cli import options

access_options = options.stack(
    click.option("--api-key-env", metavar="NAME", help="Environment variable that holds the API key."),
    click.option("--api-key-file", type=click.Path(path_type=Path), help="File that holds the API key."),
    click.option("--header", "headers", multiple=True, metavar="NAME:VALUE", help="Further request header."),
    click.option("--ca-file", type=click.Path(path_type=Path), help="Certificate authority to trust."),
    click.option("--insecure", is_flag=True, help="Do not verify the server's TLS certificate."),
)
