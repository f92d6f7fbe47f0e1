"""`--env-file` and `--no-env-file`: options of every command, wherever they stand before `--`.

Without them the nearest `.env` is read. What was read is said once, on stderr.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import click

from .errors import CommandError
from .option_words import own_words

OPTION = "--env-file"
NO_OPTION = "--no-env-file"
_READ = "osmosis_cli.env_file.read"

env_file_options: tuple[click.Parameter, ...] = (
    click.Option(
        [OPTION],
        metavar="FILE",
        type=click.Path(path_type=Path),
        help="Read variables from this file of NAME=value lines, instead of the nearest .env.",
    ),
    click.Option([NO_OPTION], is_flag=True, help="Read no .env file."),
)


def moved_to_front(words: list[str]) -> list[str]:
    """Return the words with these options first: they mean the same behind any command."""
    own = words[: words.index("--")] if "--" in words else words
    front: list[str] = []
    rest: list[str] = []
    following = iter(own)
    for word in following:
        if word == OPTION:
            front.append(f"{word}={_value(following)}")
        elif word == NO_OPTION or word.startswith(f"{OPTION}="):
            front.append(word)
        else:
            rest.append(word)
    return [*front, *rest, *words[len(own) :]]


def _value(following: Iterator[str]) -> str:
    try:
        return next(following)
    except StopIteration:
        raise click.BadOptionUsage(OPTION, f"Option {OPTION!r} requires an argument.") from None


def read_env_file(ctx: click.Context, named: Path | None, *, none: bool) -> None:
    """Add the variables of the named file, or of the nearest `.env`, to the environment."""
    if named is not None and none:
        raise click.UsageError(f"{OPTION} and {NO_OPTION} contradict each other: give one of them")
    if none:
        return
    from osmosis_ai.platform import env_file
    from osmosis_ai.secret import mask_everywhere
    from osmosis_ai.secret_variables import secret_variables

    path = named if named is not None else env_file.find(Path.cwd())
    if path is None:
        return
    try:
        loaded = env_file.load(env_file.read(path), os.environ, named=named is not None)
    except env_file.EnvFileError as error:
        if named is not None:
            raise CommandError(f"{OPTION}: {error}", code="env_file", status=2) from None
        click.echo(f"warning: {error}", err=True)
        return
    mask_everywhere(*secret_variables())
    ctx.meta[_READ] = {name: os.environ[name] for name in loaded.names}
    if message := str(loaded):
        click.echo(own_words(f"{ctx.info_name}: {message}"), err=True)


def values_read(ctx: click.Context) -> Mapping[str, str]:
    """Return what the environment has from such a file alone."""
    found: Mapping[str, str] = ctx.meta.get(_READ, {})
    return found
