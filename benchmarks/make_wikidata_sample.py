"""Write sample.wikidata.json: an invented country in the format of Wikidata's JSON dump, with awkward entities.

python benchmarks/make_wikidata_sample.py

Properties have Wikidata's numbers; items are invented, and so are their numbers.
"""

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

Record = dict[str, Any]

PROPERTIES = {
    "P31": ("instance of", "ist ein(e)", "wikibase-item"),
    "P279": ("subclass of", "Unterklasse von", "wikibase-item"),
    "P17": ("country", "Staat", "wikibase-item"),
    "P19": ("place of birth", "Geburtsort", "wikibase-item"),
    "P26": ("spouse", "Ehepartner", "wikibase-item"),
    "P36": ("capital", "Hauptstadt", "wikibase-item"),
    "P50": ("author", "Autor", "wikibase-item"),
    "P106": ("occupation", "Tätigkeit", "wikibase-item"),
    "P131": ("located in", "liegt in", "wikibase-item"),
    "P136": ("genre", "Genre", "wikibase-item"),
    "P170": ("creator", "Urheber", "wikibase-item"),
    "P18": ("image", "Bild", "commonsMedia"),
    "P214": ("VIAF ID", "VIAF-ID", "external-id"),
    "P1082": ("population", "Einwohnerzahl", "quantity"),
    "P1476": ("title", "Titel", "monolingualtext"),
    "P2044": ("elevation above sea level", "Höhe über dem Meeresspiegel", "quantity"),
    "P2048": ("height", "Höhe", "quantity"),
    "P569": ("date of birth", "Geburtsdatum", "time"),
    "P570": ("date of death", "Sterbedatum", "time"),
    "P577": ("publication date", "Veröffentlichungsdatum", "time"),
    "P625": ("coordinate location", "geographische Koordinaten", "globe-coordinate"),
    "P856": ("official website", "offizielle Website", "url"),
    "P10000": ("made-up property", "", "entity-schema-of-tomorrow"),
}
CLASSES = {
    5: ("human", "Mensch", None),
    6256: ("country", "Staat", None),
    515: ("city", "Stadt", 486972),
    486972: ("human settlement", "Siedlung", None),
    1549591: ("big city", "Großstadt", 515),
    571: ("book", "Buch", 838948),
    838948: ("work of art", "Kunstwerk", None),
    8261: ("novel", "Roman", 571),
    8502: ("mountain", "Berg", None),
    36180: ("writer", "Schriftsteller", None),
    1028181: ("painter", "Maler", None),
    3305213: ("painting", "Gemälde", 838948),
    11573: ("metre", "Meter", None),
    174728: ("centimetre", "Zentimeter", None),
    24925: ("science fiction", "Science-Fiction", None),
    1054574: ("romance", "Liebesroman", None),
}
"""Number: English label, German label, and the class above."""

FIRST = "Mira Tomas Ilse Joren Petra Anselm Livia Marek Odile Runa Casper Thea Viggo Salme Bruno Edda".split()
LAST = "Talvik Orban Leitner Sorokin Vale Marchetti Dunholm Brandt Quist Aarons Ferro Novak".split()
BEGINNINGS = "Nord Oster Alt Lind Marsh Stone Silver Black Winter High".split()
ENDINGS = "haven burg field mere wick".split()
TITLES = """Glass Harvest|The Slow River|Ashes of Noon|A Letter to Winter|Lanterns|The Ninth Door|Salt|Under the Orrery
Paper Kingdoms|Meridian"""


def main() -> None:
    path = Path(__file__).parents[1] / "examples" / "sample.wikidata.json"
    lines = [json.dumps(entity, ensure_ascii=False, separators=(",", ":")) for entity in entities()]
    path.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")


def entities() -> list[Record]:
    """List the entities in the order of their file: classes, places, people, works, awkward ones, properties."""
    draw = random.Random(7)
    country = item(900_001, "Velmora", "Velmorien", claims=[entity_claim("P31", 6256), entity_claim("P36", 900_100)])
    places = [city(draw, number, name) for number, name in enumerate(names_of_cities(), 900_100)]
    hills = [mountain(draw, number) for number in range(900_200, 900_220)]
    people = [person(draw, number, name) for number, name in enumerate(names_of_people(draw), 901_000)]
    works = [work(draw, number, title) for number, title in enumerate(titles_of_works(), 902_000)]
    classes = [
        item(number, label, german, claims=[] if above is None else [entity_claim("P279", above)])
        for number, (label, german, above) in CLASSES.items()
    ]
    return [*classes, country, *places, *hills, *people, *works, *awkward(), *map(described_property, PROPERTIES)]


def names_of_cities() -> list[str]:
    return [beginning + ending for beginning in BEGINNINGS for ending in ENDINGS]


def names_of_people(draw: random.Random) -> list[str]:
    names = [f"{first} {last}" for first in FIRST for last in LAST]
    return draw.sample(names, 120)


def titles_of_works() -> list[str]:
    titles = TITLES.replace("\n", "|").split("|")
    return [*titles, *(f"{title} {number}" for title in titles for number in ("II", "III", "IV"))]


def city(draw: random.Random, number: int, name: str) -> Record:
    """Make a city, the first of them the capital."""
    people = draw.randint(2_000, 900_000)
    return item(
        number, name, name,
        aliases=[f"City of {name}"] if number % 3 == 0 else [],
        sitelinks=number % 7,
        claims=[
            entity_claim("P31", 1549591 if people > 100_000 else 515),
            entity_claim("P17", 900_001),
            quantity_claim("P1082", f"+{people - 900}", rank="normal"),
            quantity_claim("P1082", f"+{people}", rank="preferred"),
            claim("P625", "globecoordinate", {
                "latitude": round(draw.uniform(40, 45), 4), "longitude": round(draw.uniform(10, 20), 4),
                "altitude": None, "precision": 0.0001, "globe": "http://www.wikidata.org/entity/Q2",
            }),
            claim("P856", "string", f"https://www.{name.lower()}.example/"),
        ],
    )  # fmt: skip


def mountain(draw: random.Random, number: int) -> Record:
    """Make a mountain, whose height has a unit."""
    name = f"Mount {draw.choice(LAST)} {number - 900_199}"
    claims = [
        entity_claim("P31", 8502),
        entity_claim("P131", draw.randint(900_100, 900_149)),
        quantity_claim("P2044", f"+{draw.randint(800, 3200)}", unit=11573),
    ]
    return item(number, name, name.replace("Mount", "Berg"), claims=claims)


def person(draw: random.Random, number: int, name: str) -> Record:
    """Make a person; births are known to the day, the month or the year."""
    year = draw.randint(1820, 1990)
    precision = draw.choice([9, 10, 11, 11, 11])
    month = draw.randint(1, 12) if precision > 9 else 0
    day = draw.randint(1, 28) if precision > 10 else 0
    return item(
        number, name, name,
        aliases=[f"{name[0]}. {name.split()[1]}"],
        sitelinks=number % 5,
        claims=[
            entity_claim("P31", 5),
            entity_claim("P19", draw.randint(900_100, 900_149)),
            entity_claim("P106", 36180 if number % 4 else 1028181),
            time_claim("P569", f"+{year}-{month:02d}-{day:02d}T00:00:00Z", precision),
            claim("P214", "string", str(draw.randint(10**7, 10**8))),
            quantity_claim("P2048", f"+{draw.randint(150, 199)}", unit=174728),
        ],
    )  # fmt: skip


def work(draw: random.Random, number: int, title: str) -> Record:
    """Make a novel."""
    return item(
        number, title, "",
        claims=[
            entity_claim("P31", 8261),
            entity_claim("P50", draw.randint(901_000, 901_119)),
            entity_claim("P136", draw.choice([24925, 1054574])),
            time_claim("P577", f"+{draw.randint(1860, 2020)}-00-00T00:00:00Z", 9),
            claim("P1476", "monolingualtext", {"text": title, "language": "en"}),
        ],
    )  # fmt: skip


def awkward() -> list[Record]:
    """Make the awkward entities of real dumps."""
    deprecated = item(903_001, "Old Bridge", "Alte Brücke", claims=[
        entity_claim("P31", 838948),
        entity_claim("P131", 900_100, rank="deprecated"),
        entity_claim("P131", 900_101, rank="preferred"),
        entity_claim("P131", 900_102),
        entity_claim("P170", 901_000, rank="deprecated"),
    ])  # fmt: skip
    unknown = item(903_002, "Nameless Statue", "", claims=[
        entity_claim("P31", 838948),
        valueless("P170", "somevalue"),
        valueless("P26", "novalue"),
        claim("P18", "string", "Statue, front.jpg"),
    ])  # fmt: skip
    ancient = item(903_003, "Velmor the Old", "", claims=[
        entity_claim("P31", 5),
        time_claim("P569", "-0099-03-15T00:00:00Z", 11),
        time_claim("P570", "-0050-00-00T00:00:00Z", 7),
        claim("P1476", "monolingualtext", {"text": 'He said "no"\\ twice\nand left', "language": "la"}),
    ])  # fmt: skip
    crater = item(903_004, "Talvik crater", "", claims=[
        claim("P625", "globecoordinate", {
            "latitude": -10, "longitude": 20.5, "altitude": None, "precision": None,
            "globe": "http://www.wikidata.org/entity/Q405",
        }),
        quantity_claim("P2044", "-1200.50", unit=11573),
        quantity_claim("P2048", "+3", unit=903_999),
    ])  # fmt: skip
    nameless = {**item(903_005, "", "", claims=[entity_claim("P31", 515), entity_claim("P17", 900_001)]), "labels": []}
    foreign = item(903_006, "", "Nur auf Deutsch", claims=[entity_claim("P31", 571)])
    everywhere = item(903_007, "", "", claims=[entity_claim("P31", 5), entity_claim("P19", 900_100)])
    everywhere["labels"] = {"mul": {"language": "mul", "value": "Odile Everywhere"}}
    empty = {"type": "item", "id": "Q903008", "labels": {"en": {"language": "en", "value": "Stub"}},
             "descriptions": [], "aliases": [], "claims": [], "sitelinks": []}  # fmt: skip
    newer = item(903_009, "Thing of Tomorrow", "", claims=[
        claim("P10000", "hologram", {"beam": 7}), entity_claim("P31", 838948),
    ])  # fmt: skip
    scripts = item(903_010, "北港", "", claims=[entity_claim("P31", 515), entity_claim("P17", 900_001)])
    scripts["labels"]["en-gb"] = {"language": "en-gb", "value": "Northport \N{FULLWIDTH LATIN CAPITAL LETTER A}"}
    reader = item(903_011, "Twice Married", "", claims=[
        entity_claim("P31", 5), entity_claim("P26", 901_001), entity_claim("P26", 901_002),
        entity_claim("P19", 903_012),
    ])  # fmt: skip
    merged = {"entity": "Q903012", "redirect": "Q900103"}
    return [deprecated, unknown, ancient, crater, nameless, foreign, everywhere, empty, newer, scripts, reader, merged]


def described_property(number: str) -> Record:
    """Make a property, which has claims of its own."""
    label, german, datatype = PROPERTIES[number]
    labels = {"en": label, "de": german}
    return {
        "type": "property",
        "datatype": datatype,
        "id": number,
        "labels": {language: {"language": language, "value": text} for language, text in labels.items() if text},
        "descriptions": {},
        "aliases": {"en": [{"language": "en", "value": "born in"}]} if number == "P19" else {},
        "claims": {"P31": [entity_claim("P31", 838948)]},
    }


def item(
    number: int,
    label: str,
    german: str,
    *,
    claims: list[Record],
    aliases: Sequence[str] = (),
    sitelinks: int = 0,
) -> Record:
    """Make an item; its claims are grouped by property."""
    by_property: dict[str, list[Record]] = {}
    for made in claims:
        by_property.setdefault(made["mainsnak"]["property"], []).append(made)
    labels = {"en": label, "de": german, "fr": label and f"{label} (fr)"}
    return {
        "type": "item",
        "id": f"Q{number}",
        "labels": {language: {"language": language, "value": text} for language, text in labels.items() if text},
        "descriptions": {"en": {"language": "en", "value": "made up"}},
        "aliases": {"en": [{"language": "en", "value": alias} for alias in aliases]} if aliases else {},
        "claims": by_property,
        "sitelinks": {
            f"{language}wiki": {"site": f"{language}wiki", "title": label, "badges": []}
            for language in ("en", "de", "fr", "es", "it", "pl")[:sitelinks]
        },
        "lastrevid": 2_000_000_000 + number,
    }


def claim(relation: str, kind: str, value: object, *, rank: str = "normal") -> Record:
    """Make a statement of a value."""
    snak = {
        "snaktype": "value",
        "property": relation,
        "datavalue": {"value": value, "type": kind},
        "datatype": PROPERTIES[relation][2],
    }
    return {"mainsnak": snak, "type": "statement", "rank": rank}


def valueless(relation: str, kind: str) -> Record:
    """Make a statement that has no value, or one that nobody knows."""
    return {"mainsnak": {"snaktype": kind, "property": relation}, "type": "statement", "rank": "normal"}


def entity_claim(relation: str, number: int, *, rank: str = "normal") -> Record:
    """Make a statement of an item."""
    value = {"entity-type": "item", "numeric-id": number, "id": f"Q{number}"}
    return claim(relation, "wikibase-entityid", value, rank=rank)


def quantity_claim(relation: str, amount: str, *, unit: int | None = None, rank: str = "normal") -> Record:
    """Make a statement of an amount."""
    address = "1" if unit is None else f"http://www.wikidata.org/entity/Q{unit}"
    return claim(relation, "quantity", {"amount": amount, "unit": address}, rank=rank)


def time_claim(relation: str, time: str, precision: int) -> Record:
    """Make a statement of a time."""
    value = {"time": time, "timezone": 0, "before": 0, "after": 0, "precision": precision,
             "calendarmodel": "http://www.wikidata.org/entity/Q1985727"}  # fmt: skip
    return claim(relation, "time", value)


if __name__ == "__main__":
    main()
