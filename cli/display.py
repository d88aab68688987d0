"""Output that is safe on any terminal: no name, path or error can command one, break a line or turn its text around."""

import json

import click

from kbtools.text.shown import UNSHOWN, visible


def echo(*lines: str, err: bool = False) -> None:
    """Print lines for people; a line break inside one is an escape like other control characters."""
    for line in lines:
        click.echo(visible(line), err=err)


def named(entity_id: str, name: str | None) -> str:
    """Write an entity with its id; a literal stands for itself."""
    return f"{name or '(no name)'} ({entity_id})"


def overwrite(line: str, *, last: bool) -> None:
    """Print a line of progress on standard error in place of the one before; the last one stays."""
    click.echo(f"\r{visible(line)}\033[K", err=True, nl=last)


def echo_json(record: object) -> None:
    """Print a record for programs on one line, in UTF-8 whatever the terminal speaks."""
    echo_document(json.dumps(record, ensure_ascii=False))


def echo_document(text: str) -> None:
    """Print JSON text; what a terminal would obey, and lone surrogates, become the escapes that JSON has for them."""
    if not text.isascii() or "\x7f" in text:
        text = UNSHOWN.sub(lambda match: match[0] if match[0] == "\n" else f"\\u{ord(match[0]):04x}", text)
    click.echo(text.encode())
