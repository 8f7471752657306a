"""Frequent words without a meaning of their own, which highlights leave out: articles, pronouns, prepositions.

Keyword search counts them, but little: a word that most texts have adds next to nothing to BM25. A threshold of
frequency cannot replace the lists: in texts about cells, "cell" is as frequent as "from" is in headlines.
Left out: letters that often name something ("vitamin D"), and other languages. All words of those are highlighted.
"""

from collections.abc import Iterable

STOP_WORDS = {  # by the name of Snowball's stemmer
    "danish": "af at de den der det du en er et for fra han har hun i ikke jeg med og om på som til var vi",
    "dutch": """
        aan als bij dat de die dit door een en er hij het ik in is je met naar niet of om op te van voor was we ze
        zijn zij""",
    "english": """
        a about all an and any are as at be been but by can could did do does for from had has have he her his how i
        if in into is it its me my no not of on or our s shall she should so such than that the their them then there
        these they this those to was we were what when where which who whom whose why will with would you your""",
    "french": """
        à au aux avec ce ces cette c dans de des du d elle en est et il ils j je l la le les leur lui mais ne nous n
        on ou où par pas pour qu que qui s sa se ses son sont sur un une vous y""",
    "german": """
        als am an auch auf aus bei bin das dass dem den der des die du ein eine einem einen einer eines er es für hat
        ich ihr im in ist mit nach nicht oder sein sich sie sind so um und uns vom von vor war was wer wie wir wird wo
        zu zum zur über""",
    "italian": """
        a al alla ai che chi ci come con da dal dalla dei del della delle di e è gli i il in io la le l lo ma ne nel
        nella non o per più se si sono su sul un una uno""",
    "norwegian": "av at de den der det du en er et for fra han har hun i ikke jeg med og om på som til var vi",
    "portuguese": """
        a ao aos as com da das de do dos e é em eu mas na nas no nos não o os ou para pela pelo por que se sem seu sua
        são um uma""",
    "spanish": """
        a al como con cuando de del donde e el ella en es está este esta ha la las le lo los me mi no nos o para pero
        por qué que quién se si sin son su sus también un una y yo""",
    "swedish": "att av de den det du en ett för från han har hon i inte jag med och om på som till var vi är",
}


def stop_words_of(languages: Iterable[str | None]) -> frozenset[str]:
    """Return the stop words of these languages in lower case; a language without a list has none."""
    return frozenset(word for language in languages for word in STOP_WORDS.get(language or "", "").split())
