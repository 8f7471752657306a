"""Whether the texts of a corpus are mostly English, as the default model and the default stems expect.

A text counts as English if it has common English words, and as another language if it has more common words of one, or
none of English and a word with a letter beyond ASCII. Other texts, such as many names of products, count as neither.
Left out: which of two other languages it is. The name in the warning is the likeliest one of COMMON.
"""

import re
from collections import Counter
from collections.abc import Sequence

LANGUAGE_SAMPLE, CHARACTERS = 1_000, 500  # maximum number of texts that are read, and of characters of each
# Share of a sample that must look like another language, which must also be more than looks like English. In English it
# is at most 0.009: headlines (half of them in lower case), titles and abstracts of arXiv with their LaTeX, SciFact,
# Python's documentation, and the names of 20,000 products of Flipkart. In German it is 1.0 for articles (10kGNAD), 0.92
# for their first sentences, 0.78 for the names of 102 products of a shop, and 0.40 for Django's short messages.
FOREIGN_SHARE = 0.1
FOREIGN_TEXTS = 3  # fewer texts in another language are no evidence
FOREIGN_LETTERS = 3  # letters of a foreign word; a unit such as µF or kΩ has fewer
LETTERS = re.compile(r"[^\W\d_]+")

ENGLISH_WORDS = """\
the of and to is that for with as be by are this from at or have not you which can if will has but when they its
how what your my we he his who after new up out all about into no one more their
"""
ENGLISH = frozenset(ENGLISH_WORDS.split())
# Frequent words of the languages that have a Snowball stemmer. Words of English texts are left out, such as the German
# "die", the Italian "per", the French "et" (al.) and the Portuguese "com".
COMMON = {
    "danish": "og det til på som ikke af den har der eller efter også blev",
    "dutch": "de het een en dat voor niet zijn ook bij uit naar wordt",
    "finnish": "ja ei että oli mutta myös kuin ovat joka sekä sen tämä mukaan voi",
    "french": "le la les des une du dans pour que qui sur pas avec sont ou",
    "german": "der das und ist nicht den von mit für auf ein eine dem sich auch zu zum bei",
    "indonesian": "yang di untuk dengan dari pada tidak itu adalah dalam akan oleh",
    "italian": "il di che la una con della le dei gli nel sono alla anche più",
    "norwegian": "og det til på som ikke den har der eller etter også ble",
    "polish": "na się nie jest że oraz jak dla przez są być lub",
    "portuguese": "de que da em um para não uma na mais ao são por",
    "spanish": "de la que el en los del las un una por con para es su como más",
    "swedish": "och att det är som på för med den inte har ett från",
    "turkish": "ve bir bu için ile çok olarak gibi daha sonra değil",
}
LANGUAGES_OF = {
    word: [language for language, others in COMMON.items() if word in others.split()]
    for words in COMMON.values()
    for word in words.split()
}
ENGLISH_NAMES = ("en", "eng", "english")  # what pages call it
LEAST_NAMED = 0.5  # common words of a language in each text, on average, before the warning names it
MULTILINGUAL = "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2"


def warn_of_language(
    texts: Sequence[str], source: str, is_default_model: bool, has_default_stems: bool, stated: Sequence[str] = ()
) -> str | None:
    """Return a warning if the texts are mostly not English and the default model or the default stems are used.

    stated are the languages that pages of a site state: if most texts are English, the others are named.
    """
    if not (is_default_model or has_default_stems):
        return None
    if (other := find_other_language(texts)) is None:
        return _warn_of_pages(source, stated) if is_default_model else None
    share, name = other
    reasons, remedies = [], []
    if is_default_model:
        reasons.append("the default model was trained with it")
        remedies.append(f"a multilingual MODEL, such as {MULTILINGUAL}")
    if has_default_stems:
        reasons.append("keyword search removes its endings")
        remedies.append(f"--stem {name or 'LANGUAGE'} (or --stem none)")
    likest = ""
    if name:
        likest = f", most like {name.capitalize()}"
    return (
        f"{source}: found mostly texts in another language ({share:.0%} of a sample{likest}), expected English, "
        f"because {' and '.join(reasons)}; index with {' and '.join(remedies)}"
    )


def _warn_of_pages(source: str, stated: Sequence[str]) -> str | None:
    others = [language for language in stated if re.split("[-_]", language.casefold())[0] not in ENGLISH_NAMES]
    if not others:
        return None
    return (
        f"{source}: found pages in {', '.join(others)}, expected English, because the default model was trained with "
        "it and finds less in others by their meaning; rely on their words, or index with a multilingual MODEL, such "
        f"as {MULTILINGUAL}, which no static site can have"
    )


def find_other_language(texts: Sequence[str]) -> tuple[float, str | None] | None:
    """Return the share of a sample of texts that are in another language, and its name; None if most are English.

    The name is one of COMMON, and None if too few texts have common words of one.
    """
    english = others = 0
    votes: Counter[str] = Counter()
    sample = range(0, len(texts), len(texts) // LANGUAGE_SAMPLE + 1)
    for row in sample:
        words = LETTERS.findall(texts[row][:CHARACTERS].lower())
        hits = Counter(language for word in words for language in LANGUAGES_OF.get(word, ()))
        most, english_words = max(hits.values(), default=0), sum(word in ENGLISH for word in words)
        is_foreign = any(len(word) >= FOREIGN_LETTERS and not word.isascii() for word in words)
        if most > english_words or (is_foreign and not english_words):
            others += 1
            votes += hits
        elif english_words:
            english += 1
    if others <= english or others < max(FOREIGN_TEXTS, FOREIGN_SHARE * len(sample)):
        return None
    named = [name for name, count in votes.most_common(1) if count >= LEAST_NAMED * others]
    return others / len(sample), named[0] if named else None
