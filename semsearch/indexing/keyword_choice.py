"""What keyword search of an index reads: its titles, languages, stems and synonyms, as the texts and options say."""

from dataclasses import dataclass

from semsearch.engine.bundle import NO_STEMS
from semsearch.indexing.corpus import Corpus
from semsearch.indexing.corpus.report import ReadReport
from semsearch.indexing.keywords import STEMMING, KeywordOptions, is_language, stemmer_of
from semsearch.indexing.synonyms import Synonyms


@dataclass(frozen=True, slots=True)
class KeywordChoice:
    """What keyword search reads. The options of `index` of these names explain the fields."""

    keywords: bool
    stem: str | None
    text_column: str | None
    title_column: str | None
    language_column: str | None
    synonyms: Synonyms | None
    fusion_weight: float

    def title_column_of(self, corpus: Corpus) -> str | None:
        """Return the column with the titles: the chosen one, or the first of several text columns; None for none."""
        first, *others = (self.text_column or "").split(",")
        if self.title_column is None and others and first in corpus.columns:
            return first
        return self.title_column

    def language_column_of(self, corpus: Corpus, report: ReadReport) -> str | None:
        """Return the column with the languages: the chosen one, or that of a site which is not in English alone."""
        if self.language_column == NO_STEMS:
            return None
        if self.language_column is None and _has_languages(corpus, report):
            return "language"
        return self.language_column

    def options_of(self, corpus: Corpus, report: ReadReport) -> KeywordOptions | None:
        """Return the options of keyword search in these texts, None if the index has no keywords."""
        if not self.keywords:
            return None
        return KeywordOptions(
            stemming=None if self.stem == NO_STEMS else self.stem or STEMMING,
            fusion_weight=self.fusion_weight,
            title_column=self.title_column_of(corpus),
            language_column=self.language_column_of(corpus, report),
            synonyms=self.synonyms or (),
        )

    def has_default_stems(self, corpus: Corpus, report: ReadReport) -> bool:
        """Return whether keyword search ignores the endings of English, and nobody has said so."""
        return self.keywords and self.stem is None and self.language_column_of(corpus, report) is None


def _has_languages(corpus: Corpus, report: ReadReport) -> bool:
    """Return whether the pages of a site are in several languages, or in one that has stems and is not English."""
    languages = report.of_site.get("language", ())
    if corpus.columns.get("language") != "string" or not all(map(is_language, languages)):
        return False
    return len(languages) > 1 or not {None, STEMMING}.issuperset(map(stemmer_of, languages))
