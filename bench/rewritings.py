"""What each rewriting of a query is worth: the ranking with all of them, and without each one in turn.

A rewriting changes few questions of SciFact and CISI, so three more sets have questions that it changes. bench/judged/
has 60 questions about this documentation, which its sections answer, and 99 about the products of an invented shop. The
ids of both begin with the kind of the question. They were written before any search was run with them. The third set,
`names`, is made from this documentation: each heading, and each name that one section alone has in its text.
"""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bench import DATA, PROJECT, WORK
from bench.relevance import make_keywords
from bench.tables import make_provenance, report
from bench.work import CISI, SCIFACT, SHIPPED, TOP_K, embed_once, make_models, make_once, open_embedder, read_scifact
from semsearch import index
from semsearch.engine.bundle import KEYWORDS
from semsearch.engine.hybrid import fuse
from semsearch.engine.keyword.analyzer import names_in
from semsearch.engine.keyword.keywords import Keywords
from semsearch.engine.keyword.rewritings import REWRITINGS
from semsearch.engine.loading import LoadedBundle, load_bundle, require_embedder
from semsearch.engine.quantization import Embeddings, quantize
from semsearch.engine.semantic.index import Index
from semsearch.evaluation.measures import measure
from semsearch.indexing.keywords import KeywordOptions

JUDGED = Path(__file__).with_name("judged")
UNFINISHED = "unfinished"  # kind of the questions that somebody has not typed to the end
DEPTH = 4 * TOP_K  # rows in which the sections of a question are looked for
ALL, SYNONYMS = "all rewritings", "synonyms"


@dataclass(frozen=True, slots=True)
class Judged:
    """An index, and questions by their ids with what answers them: values of `keys`, which has one for each row."""

    keys: Sequence[str]
    index: Index
    keywords: Keywords
    questions: Mapping[str, str]
    relevant: Mapping[str, set[str]]
    embeddings: Embeddings  # the embedding of each question, in their order: (questions, dim)

    def rank(self) -> tuple[float, float]:
        """Return the mean nDCG@10 by words and in hybrid search."""
        sums = [0.0, 0.0]
        for (id, text), embedding in zip(self.questions.items(), self.embeddings, strict=True):
            matches = self.keywords.match(text, prefix=id.startswith(UNFINISHED))
            hybrid = fuse(self.index, embedding, matches, self.keywords.info, DEPTH).hits()
            for mode, hits in enumerate((matches.best(DEPTH), hybrid)):
                found = list(dict.fromkeys(self.keys[hit.row] for hit in hits))[:TOP_K]
                sums[mode] += measure(found, dict.fromkeys(self.relevant[id], 1))[0]
        return sums[0] / len(self.questions), sums[1] / len(self.questions)


def rewritings(*, work: Path = WORK, data: Path = DATA) -> None:
    """What each rewriting of a query is worth: five sets are ranked with all of them, and without each one in turn."""
    sets = {Path(name).name: public_set(work, data, name) for name in (SCIFACT, CISI)}
    documentation = make_once(work / "docs", lambda bundle: index(PROJECT / "docs", bundle, mode="replace"))
    shop = make_once(
        work / "shop",
        lambda bundle: index(JUDGED / "products.jsonl", bundle, mode="replace", synonyms=JUDGED / "synonyms.txt"),
    )
    docs = load_bundle(documentation)
    sets |= {"docs": own_set(docs, "docs"), "shop": own_set(load_bundle(shop), "shop"), "names": names_set(docs)}
    found = {ALL: [each.rank() for each in sets.values()]}
    for left_out in REWRITINGS:
        for each in sets.values():
            each.keywords.rewritings = [one for one in REWRITINGS if one is not left_out]
        found[f"without {left_out.__name__}"] = [each.rank() for each in sets.values()]
    for each in sets.values():
        each.keywords.rewritings = REWRITINGS
        each.keywords.info = replace(each.keywords.info, synonyms={})
    found[f"without {SYNONYMS}"] = [each.rank() for each in sets.values()]
    rows = [(name, *(f"{words:.4f}, {hybrid:.4f}" for words, hybrid in ranked)) for name, ranked in found.items()]
    columns = ("nDCG@10 by words, hybrid", *(f"{name} ({len(each.questions)})" for name, each in sets.items()))
    report("rewritings", columns, rows, {"results": found}, make_provenance("SciFact, CISI, docs/ and a shop"))


def public_set(work: Path, data: Path, name: str) -> Judged:
    """Return SciFact or CISI."""
    test, model = read_scifact(data, name), make_models(work)[SHIPPED]
    texts = list(test.documents.values())
    return Judged(
        keys=list(test.documents),
        index=Index(*quantize(embed_once(work, model, texts))),
        keywords=make_keywords(
            work / f"{Path(name).name}-{KEYWORDS}", texts, KeywordOptions(), None, open_embedder(model)
        ),
        questions=test.queries,
        relevant=test.relevant,
        embeddings=embed_once(work, model, list(test.queries.values())),
    )


def own_set(bundle: LoadedBundle, name: str) -> Judged:
    """Return a set of `judged/` over a bundle. Raises ValueError if a text that answers a question is not there."""
    lines = (JUDGED / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    entries = {entry["id"]: entry for entry in map(json.loads, lines)}
    relevant = {id: set(entry["relevant"]) for id, entry in entries.items()}
    judged = over(bundle, {id: entry["query"] for id, entry in entries.items()}, relevant)
    missing = set[str]().union(*relevant.values()).difference(judged.keys)
    if missing:
        raise ValueError(f"{JUDGED / name}.jsonl: found {sorted(missing)}, expected ids of texts; correct `relevant`")
    return judged


def names_set(bundle: LoadedBundle) -> Judged:
    """Return the headings of documents and the names that one section alone has, each as a question."""
    sections = defaultdict[str, set[str]](set)
    names = defaultdict[str, set[str]](set)
    for row, section in enumerate(section_ids(bundle)):
        headings = bundle.passages.metadata(row)["headings"]
        if headings:
            sections[headings[-1]].add(section)
        for name in names_in(bundle.passages.text(row)):
            names[name].add(section)
    relevant = sections | {name: found for name, found in names.items() if len(found) == 1}
    return over(bundle, {text: text for text in relevant}, relevant)


def over(bundle: LoadedBundle, questions: Mapping[str, str], relevant: Mapping[str, set[str]]) -> Judged:
    """Return questions over a bundle with keywords."""
    assert bundle.keywords is not None
    embedder = require_embedder(bundle)
    embeddings = embedder.embed(embedder.tokenize(list(questions.values())))
    return Judged(section_ids(bundle), bundle.index, bundle.keywords, questions, relevant, embeddings)


def section_ids(bundle: LoadedBundle) -> list[str]:
    """Return the id of each text; of a passage, that of its section."""
    ids = [bundle.passages.id(row) for row in range(bundle.manifest.corpus.rows)]
    if bundle.manifest.corpus.heading_prefix:
        return [id.rpartition(":")[0] for id in ids]
    return ids
