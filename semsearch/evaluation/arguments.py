"""The options of `python -m export evaluate`."""

import argparse
import math
from pathlib import Path

from semsearch.commands.options import filter_object, number_option
from semsearch.evaluation.measures import MEASURED_MODES, MEASURES

EVALUATE = """\
Measure how well a bundle answers questions whose answers you know, in each mode of search.

  python -m export evaluate bundle/ --make-questions 30 > questions.jsonl   write a question into each line, then:
  python -m export evaluate bundle/ --questions questions.jsonl
"""
MEASURES_HELP = """\
measures, each a mean over the questions from 0 to 1 with its 95 % confidence interval:
  nDCG@10     how high the relevant texts stand among the first 10 hits, better grades first; 1 is the best order
  recall@5    the share of the relevant texts that are among the first 5 hits; the same for @10 and @100
  MRR@10      1 divided by the place of the first relevant text, 0 if it is not among the first 10

questions:
  JSON lines  {"query": "reset my password", "relevant": ["faq-12", "faq-40"]}
              or with grades: {"query": "reset my password", "relevant": {"faq-12": 2, "faq-40": 1}}
  BEIR        a folder with queries.jsonl and qrels/test.tsv
  TREC        a file of lines with an id, a tab and a question; and --qrels FILE

examples:
  python -m export evaluate bundle/ --questions questions.jsonl --group-by path
  python -m export evaluate bundle/ --questions questions.jsonl --filter '{"language": "en"}'
  python -m export evaluate bundle/ --questions questions.jsonl --compare older-bundle/
  python -m export evaluate bundle/ --questions questions.jsonl --mode hybrid --floor ndcg@10=0.6
  python -m export evaluate bundle/ --questions topics.txt --qrels qrels.txt --mode semantic --run semantic.run
"""


def add_evaluation_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments to its parser."""
    add = parser.add_argument
    add("bundle", nargs="?", type=Path, default=Path("bundle"), help="the bundle's folder (default: bundle/)")
    one = parser.add_mutually_exclusive_group(required=True)
    about = "questions and their relevant ids: JSON lines, BEIR or TREC"
    one.add_argument("--questions", type=Path, metavar="FILE", help=about)
    drawn = "print N random passages as lines of questions that you fill in"
    one.add_argument("--make-questions", type=number_option(1, 10**6), metavar="N", help=drawn)
    add(
        "--from-log",
        type=Path,
        metavar="FILE",
        help="with --make-questions: draw the questions of a log (LOG_QUERIES=1)",
    )
    add("--qrels", type=Path, metavar="FILE", help="judgements of TREC topics, or another split of a BEIR folder")
    modes = "only this mode; may be repeated (default: all of the bundle)"
    add("--mode", choices=MEASURED_MODES, action="append", help=modes)
    scored = "texts that the reranker scores in the modes with rerank, if the bundle has one (default: 20)"
    add("--candidates", type=number_option(1, 100), default=20, metavar="N", help=scored)
    add("--no-correct", action="store_true", help="search for misspelled words as they are, instead of similar ones")
    group = "compare relevant ids with this column instead of passages' ids, such as path for documents; of passages "
    add("--group-by", metavar="COLUMN", help=group + "with the same value, only the best counts")
    among = "measure requests with this filter too, with the relevant texts that pass it; may be repeated"
    add("--filter", type=filter_object, action="append", default=[], metavar="JSON", help=among)
    added = "search with these boosts of columns instead of the bundle's; {} searches without any"
    add("--boost", type=filter_object, metavar="JSON", help=added)
    add("--allow-missing", action="store_true", help="count relevant ids that the bundle lacks as not found")
    other = "test whether this bundle differs, question by question (paired randomization test)"
    add("--compare", type=Path, metavar="OTHER", help=other)
    least = f"exit with 1 if a measured mode is below this; one of {', '.join(MEASURES)}; may be repeated"
    add("--floor", type=_floor, action="append", default=[], metavar="MEASURE=VALUE", help=least)
    add("--run", type=Path, metavar="FILE", help="write the hits of one --mode as a TREC run")
    add("--json", action="store_true", help="print one object of JSON for other programs")


def check_evaluation(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Exit with an error unless the options belong together."""
    if options.from_log is not None and options.make_questions is None:
        parser.error("--from-log is for --make-questions N; add it")
    if options.run is not None and len(set(options.mode or ())) != 1:
        parser.error("--run writes the hits of one mode; name it with --mode, such as --mode semantic")


def _floor(text: str) -> tuple[str, float]:
    measure, _, words = text.partition("=")
    try:
        value = float(words)
    except ValueError:
        value = math.nan
    if measure.lower() not in MEASURES or not 0 <= value <= 1:
        expected = f"MEASURE=VALUE with a measure of {', '.join(MEASURES)} and a value from 0 to 1"
        raise argparse.ArgumentTypeError(f"found {text!r}, expected {expected}")
    return measure.lower(), value
