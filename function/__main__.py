"""python -m function: `query` searches a bundle from the shell; `serve`, or neither, serves it."""

import sys

arguments = sys.argv[1:]
if arguments[:1] == ["query"]:
    from function.query import main as query  # imports no server

    sys.exit(query(arguments[1:]))

from function.server.command import main as serve  # noqa: E402

sys.exit(serve(arguments[1:] if arguments[:1] == ["serve"] else arguments))
