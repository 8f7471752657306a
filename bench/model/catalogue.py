"""An invented catalogue of German and English products, and questions that share few words with the right product.

Each product is described in one language by a template. A question names it in the other language, or describes what it
is for without its name. Words such as "for", "with" or "Garten" occur in many products, so keyword search finds wrong
ones: a test of what hybrid search does where the words of a question say little.
"""

import random

from bench.texts import SEED, Retrieval

PRODUCTS = 4  # products of each kind
# English name, what it is for in English, German name, what it is for in German
KINDS = """\
cordless lawn mower|a machine to cut the grass behind my house|Akku-Rasenmäher|eine Maschine, die Gras kurz schneidet
garden hose|to bring water to the flowers outside|Gartenschlauch|um die Blumen draußen mit Wasser zu versorgen
wheelbarrow|carry soil and stones across the yard|Schubkarre|Erde und Steine über den Hof tragen
hedge trimmer|keep the bushes in shape|Heckenschere|die Büsche in Form halten
sleeping bag|stay warm at night in a tent|Schlafsack|nachts im Zelt nicht frieren
hiking boots|sturdy shoes for the mountains|Wanderstiefel|feste Schuhe für die Berge
rain jacket|something to keep me dry on a wet day|Regenjacke|etwas, das mich an nassen Tagen trocken hält
winter gloves|protect fingers against frost|Winterhandschuhe|die Finger vor Frost schützen
swimming goggles|see under water in the pool|Schwimmbrille|im Becken unter Wasser sehen
bicycle helmet|protect the head while cycling|Fahrradhelm|den Kopf beim Radfahren schützen
bicycle pump|put air into a flat tyre|Fahrradpumpe|Luft in einen platten Reifen füllen
child car seat|take a baby along in the automobile|Kindersitz fürs Auto|ein Baby im Wagen mitnehmen
pushchair|take the toddler for a walk|Kinderwagen|mit dem Kleinkind spazieren fahren
teddy bear|a soft toy to cuddle|Teddybär|ein weiches Spielzeug zum Kuscheln
jigsaw puzzle|many small pieces that make one picture|Puzzle|viele kleine Teile, die ein Bild ergeben
coffee machine|brew an espresso in the morning|Kaffeemaschine|am Morgen einen Espresso brühen
kettle|boil water for tea|Wasserkocher|Wasser für Tee erhitzen
toaster|brown slices of bread|Toaster|Brotscheiben rösten
frying pan|fry eggs without sticking|Bratpfanne|Eier braten, ohne dass sie kleben
kitchen knife|chop onions and meat|Küchenmesser|Zwiebeln und Fleisch schneiden
cutting board|a base of wood to chop vegetables on|Schneidebrett|eine Unterlage aus Holz zum Gemüseschneiden
refrigerator|keep milk and cheese cold|Kühlschrank|Milch und Käse kalt aufbewahren
dishwasher|clean dirty plates automatically|Geschirrspüler|schmutzige Teller automatisch reinigen
washing machine|get dirty clothes clean|Waschmaschine|schmutzige Kleidung sauber bekommen
vacuum cleaner|get the dust out of the carpet|Staubsauger|Staub aus dem Teppich holen
clothes iron|make shirts smooth|Bügeleisen|Hemden glätten
hair dryer|blow wet hair dry|Haartrockner|nasse Haare trocken blasen
electric shaver|remove a beard without a blade|Elektrorasierer|den Bart ohne Klinge entfernen
toothbrush|for healthy white teeth|Zahnbürste|für gesunde weiße Zähne
bathroom scale|find out how heavy I am|Personenwaage|herausfinden, wie schwer ich bin
alarm clock|wake up in time for work|Wecker|rechtzeitig zur Arbeit aufwachen
desk lamp|light for reading at night|Schreibtischlampe|Licht zum Lesen am Abend
office chair|sit at a computer all day without a sore back|Bürostuhl|ohne Rückenschmerzen am Computer sitzen
bookshelf|furniture to store novels|Bücherregal|ein Möbel, um Romane aufzubewahren
mattress|lie softly in bed|Matratze|im Bett weich liegen
curtains|darken the bedroom window|Vorhänge|das Fenster im Schlafzimmer verdunkeln
headphones|listen to music without disturbing others|Kopfhörer|Musik hören, ohne andere zu stören
external hard drive|back up the files of my computer|externe Festplatte|die Dateien meines Rechners sichern
printer|put documents onto paper|Drucker|Dokumente zu Papier bringen
power drill|make holes in a wall|Bohrmaschine|Löcher in die Wand machen
hammer|drive nails into wood|Hammer|Nägel ins Holz schlagen
ladder|reach the ceiling safely|Leiter|sicher an die Decke kommen
paint roller|give the walls a new colour|Farbroller|den Wänden eine neue Farbe geben
smoke detector|a warning when there is a fire|Rauchmelder|eine Warnung, wenn es brennt
dog leash|go for a walk with my pet|Hundeleine|mit meinem Haustier Gassi gehen
cat litter|for the kitten's toilet|Katzenstreu|für die Toilette des Kätzchens
acoustic guitar|an instrument with six strings|Akustikgitarre|ein Instrument mit sechs Saiten
sunscreen|avoid burnt skin at the beach|Sonnencreme|verbrannte Haut am Strand vermeiden"""
BRANDS = ("Nordwind", "Altera", "Velmo", "Kestrel", "Birkholm", "Tavira", "Okapi", "Lumen & Sohn")
WORDS = {  # colours, qualities, uses and further sentences of a description
    "en": (
        ("black", "red", "light grey", "dark green", "silver", "white"),
        ("very light", "easy to clean", "quiet", "made to last", "compact", "made of recycled material"),
        ("for the home and the garden", "for beginners and professionals", "for the whole family", "for every day"),
        (
            "With a guarantee of {n} years.",
            "Weighs {n} kg with the box.",
            "Keep it away from water and heat.",
            "Small enough to carry in a bag.",
            "Comes with a wall bracket of wood.",
            "Ready to use in the morning and at night.",
            "Keep in a dry place.",
            "Soft on the fingers and on the back.",
            "A picture on the box shows each of the {n} pieces.",
            "Made without paint, for a healthy home.",
            "Its head has {n} small holes.",
            "Stays cold outside.",
        ),
    ),
    "de": (
        ("schwarz", "rot", "hellgrau", "dunkelgrün", "silbern", "weiß"),
        ("sehr leicht", "einfach zu reinigen", "leise", "besonders haltbar", "kompakt", "aus recyceltem Material"),
        ("für Haus und Garten", "für Anfänger und Profis", "für die ganze Familie", "für jeden Tag"),
        (
            "Mit {n} Jahren Garantie.",
            "Wiegt {n} kg mit der Verpackung.",
            "Vor Wasser und Hitze schützen.",
            "Klein genug, um es in der Tasche zu tragen.",
            "Mit einer Halterung aus Holz für die Wand.",
            "Am Morgen und in der Nacht bereit.",
            "Trocken aufbewahren.",
            "Weich für Finger und Rücken.",
            "Ein Bild auf der Verpackung zeigt alle {n} Teile.",
            "Ohne Farbe hergestellt, für ein gesundes Haus.",
            "Der Kopf hat {n} kleine Löcher.",
            "Bleibt draußen kalt.",
        ),
    ),
}


def make_catalogue() -> Retrieval:
    """Return the products, and of each kind a question with its name in the other language and one with its purpose.

    Every third kind is described in German. The products of a question's kind are the relevant ones.
    """
    choose = random.Random(SEED)
    documents, queries, relevant = {}, {}, {}
    for number, line in enumerate(KINDS.splitlines()):
        names, purposes = line.split("|")[::2], line.split("|")[1::2]
        own = int(number % 3 == 0)
        colours, qualities, uses, sentences = WORDS[("en", "de")[own]]
        ids = [f"{number}-{each}" for each in range(PRODUCTS)]
        for id in ids:
            parts = choose.choice(BRANDS), names[own], *map(choose.choice, (colours, qualities, uses))
            further = " ".join(choose.sample(sentences, 2)).format(n=choose.randint(2, 12))
            documents[id] = f"{parts[0]} {', '.join(parts[1:])}. {further}"
        for kind, text in (("name", names[1 - own]), ("purpose", purposes[own])):
            queries[f"{number}, {kind}"], relevant[f"{number}, {kind}"] = text, set(ids)
    return Retrieval(documents, queries, relevant)
