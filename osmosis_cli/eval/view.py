"""`osmosis eval view`: serve reports and kept evaluations as pages, on this machine alone."""

from __future__ import annotations

import json
from pathlib import Path

import click

from osmosis_ai.escaping import printable

from ..buffered_output import BufferedStreams
from ..errors import ENDS_BY_SIGNAL, CommandError
from .lines import say
from .report_files import readable

EPILOG = """\b
Examples:
  osmosis eval view
  osmosis eval view results.json
  osmosis eval view reports/ --port 8080
"""


@click.command("view", epilog=EPILOG)
@click.argument("place", metavar="[DIR|FILE]", required=False, type=click.Path(path_type=Path))
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    metavar="N",
    help="The port to listen on (default: one that is free).",
)
@click.option("--json", "as_json", is_flag=True, help="Print the address as one JSON document.")
@click.pass_context
def view_command(ctx: click.Context, place: Path | None, port: int, as_json: bool) -> None:
    """Show reports and kept evaluations in a browser, live while a session runs.

    DIR is a project, a folder of JSON reports or one of kept evaluations (default: the project
    here); FILE is one JSON report. The pages are served on 127.0.0.1 alone, under an address that
    cannot be guessed, until Ctrl-C.
    """
    from .viewer.library import Library
    from .viewer.server import Viewer

    with readable():
        library = Library(place)
    try:
        viewer = Viewer(library, (place or Path.cwd()).absolute(), port=port)
    except OSError as error:
        reason = error.strerror or error
        raise CommandError(f"cannot listen on port {port}: {reason}", code="port") from None
    ctx.meta[ENDS_BY_SIGNAL] = True
    with viewer:
        if as_json:
            click.echo(json.dumps({"url": viewer.url, "pages": len(library.entries())}))
            if streams := ctx.find_object(BufferedStreams):
                streams.release()
        else:
            say(f"{printable(str(viewer.place))}: {viewer.url}")
            say("Ctrl-C ends it")
        viewer.serve_forever()
