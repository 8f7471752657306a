"""The command `semsearch index`. Its options are those of `semsearch.index`, read from its signature and docstring."""

import inspect
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, get_type_hints

from cyclopts import App, Group, Parameter
from docstring_parser import parse
from rich.console import Console
from rich.markup import escape

from semsearch.aws.s3.published import S3
from semsearch.commands.console import TerminalConsole, suggested
from semsearch.commands.options import AS_JSON, SEVERAL_LINES, as_command, lines_by_name
from semsearch.commands.published import AMAZON, open_store
from semsearch.engine.errors import ExpectedError, OptionError
from semsearch.indexing.make import FailedChecksError, index
from semsearch.indexing.modes import MODES
from semsearch.indexing.options import Form, options_of
from semsearch.indexing.progress import OnProgress, ProgressLines, showing_progress
from semsearch.indexing.replacing import find_kept
from semsearch.indexing.summary import print_checks, print_summary

EXAMPLES = """\
Examples:

    semsearch index docs/ --out bundle/ --base-url https://docs.example.com/
    semsearch index coats.csv --text-column name,description --id-column sku --column price=number
    semsearch index headlines.parquet --stem german --model models/multilingual
"""
# the types of options that a command line cannot have in the form that Python has, by the name of the form
FORMS: dict[Form, Any] = {
    "PATH": Annotated[list[str], Parameter(name="PATH")],
    "COLUMN": Annotated[str | None, Parameter(metavar="COLUMN")],
    "FILE": Annotated[str | None, Parameter(metavar="FILE")],
    "SECONDS": Annotated[float, Parameter(metavar="SECONDS")],
    "NAME=TYPE": Annotated[list[str] | None, Parameter(metavar="NAME=TYPE")],
    "NAME=TEXT": Annotated[list[str] | None, SEVERAL_LINES],
    "JSON": Annotated[dict[str, Any] | None, AS_JSON],
}
VERBOSE = inspect.Parameter(
    "verbose",
    inspect.Parameter.KEYWORD_ONLY,
    default=False,
    annotation=Annotated[bool, Parameter(negative=(), help="print everything that was counted and checked.")],
)


def options_of_index(**changed: Any) -> dict[str, inspect.Parameter]:
    """Return the parameters of `index` as a command line has them: with their sentences, in groups, by their names.

    changed has other types for some of them. The parameters of Python alone are left out.
    """
    kinds = get_type_hints(index)
    sentences = {each.arg_name: each.description for each in parse(index.__doc__ or "").params}
    parameters = inspect.signature(index).parameters
    groups: dict[str, Group] = {}
    options = {}
    for place, (name, option) in enumerate(options_of(index).items()):
        group = groups.setdefault(option.topic, Group(option.topic, sort_key=place))
        if not option.in_python_alone:
            kind = changed.get(name) or (kinds[name] if option.form is None else FORMS[option.form])
            options[name] = parameters[name].replace(
                annotation=Annotated[kind, Parameter(group=group, help=sentences[name])],
                kind=parameters[name].kind if name == "data" else inspect.Parameter.KEYWORD_ONLY,
            )
        for flag, sentence in option.flags.items():
            kind = Annotated[bool, Parameter(group=group, negative=(), help=sentence)]
            options[flag] = inspect.Parameter(flag, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=kind)
    return options


def run_index(data: list[str], /, *, verbose: bool = False, **options: Any) -> None:
    """Make an index of texts or documents, or update it.

    An index that is there already is updated with its own model and options; options that are stated replace these.
    """
    console = TerminalConsole()
    if options.get("column") is not None:
        options["column"] = types_of_columns(options["column"])
    if options.get("describe") is not None:
        options["describe"] = lines_by_name(options["describe"])
    modes = [mode for mode in MODES if options.pop(mode, False)]
    if len(modes) > 1:
        raise OptionError(modes[1], f"contradicts --{modes[0]}; choose one")
    if modes:
        options["mode"] = modes[0]
    out = Path(options.get("out", inspect.signature(index).parameters["out"].default))
    try:
        with _progress(console, options.get("ray")) as on_progress, _fetched(options, on_progress) as fetched:
            places = data[0] if len(data) == 1 else [*map(Path, data)]
            summary = index(places, **fetched, progress=on_progress)
    except FailedChecksError as error:
        print_checks(console, error.checks)
        raise
    except OptionError:
        raise
    except (ExpectedError, OSError, KeyboardInterrupt, SystemExit) as error:
        kept = find_kept(out)
        if kept is not None:
            error.add_note(f"{kept} keeps what is finished for the next try")
        raise
    if verbose:
        print_checks(console, summary.checks)
    for warning in summary.warnings:
        TerminalConsole(stderr=True).print(f"[yellow]warning:[/] {escape(warning)}")
    print_summary(console, summary, is_verbose=verbose)
    console.print(f"{summary.out}/ is ready. Try it: {suggested('serve', summary.out)}", markup=False)


command: App = as_command(run_index, [*options_of_index().values(), VERBOSE], EXAMPLES, "index")


def types_of_columns(words: Iterable[str]) -> dict[str, str]:
    """Return the types of columns by name, for words such as year=number. Raises OptionError for other words."""
    found = {}
    for word in words:
        name, _, kind = word.rpartition("=")
        if not name:
            raise OptionError("column", f"found {word!r}, expected NAME=TYPE, such as year=number")
        found[name] = kind
    return found


@contextmanager
def _progress(console: Console, ray: str | None) -> Iterator[OnProgress]:
    """Yield what displays the progress: as lines beside Ray, whose own bars would be overwritten."""
    if ray is not None:
        yield ProgressLines(console)
        return
    with showing_progress(console) as on_progress:
        yield on_progress


@contextmanager
def _fetched(options: dict[str, Any], on_progress: OnProgress) -> Iterator[dict[str, Any]]:
    """Yield the options, with a copy of the bundle of --update if that is in S3."""
    url = options.get("update")
    if url is None or not str(url).startswith(S3):
        yield options
        return
    with open_store(str(url), AMAZON) as store, TemporaryDirectory() as folder:
        store.fetch(Path(folder), on_progress)
        yield options | {"update": folder}
