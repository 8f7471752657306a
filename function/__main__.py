"""python -m function: `query` searches a bundle from the shell, `key` makes an API key; `serve`, or none, serves."""

import sys

from semsearch.commands.terminal import run

arguments = sys.argv[1:]
is_query = arguments[:1] == ["query"]


def main() -> int:
    """Run the command and return its exit code."""
    if is_query:
        from semsearch.commands.query import main as query  # imports no server

        return query(arguments[1:])
    if arguments[:1] == ["key"]:
        from semsearch.commands.key import main as key

        return key(arguments[1:])
    from semsearch.server.cli import main as serve

    return serve(arguments[1:] if arguments[:1] == ["serve"] else arguments)


sys.exit(run(main, encoding=None if is_query else "utf-8"))  # the server's log is UTF-8
