"""The usual heads of columns in tables of a knowledge base and of questions."""

import functools
import re
import unicodedata
from collections.abc import Sequence

USUAL = {
    "subject": ("subject", "subj", "head", "s", ":start", "entity", "subjekt", "sujet", "sujeto"),
    "relation": (
        "relation", "rel", "predicate", "pred", "property", "p", ":type", "relationship", "attribute",
        "prädikat", "prédicat", "predicado",
    ),
    "object": ("object", "obj", "tail", "o", ":end", "value", "objekt", "objet", "objeto"),
    "entity": ("entity", "id", "subject"),
    "language": ("language", "lang"),
    "name": ("name", "label", "title"),
    "alias": ("alias", "aliases"),
    "description": ("description",),
    "type": ("type", "types", "class"),
    "old": ("old", "from", "id"),
    "new": ("new", "to", "target"),
}  # fmt: skip

SUFFIX = re.compile(r"(?<=.)[_ ]?(id|uri|iri)$")
"""The ending of heads such as `subject_id` and `relation uri`."""

_TRIPLE = ("subject", "relation", "object")

ENTITY_ROLES = {
    "id": r"id|qid|mid|identifier|entity|subject|key|code|uri|iri",
    "name": r"name|label",
    "alias": (
        r"(.* )?(alias(es)?|s[iy]non[iy]m(e|en|es|os?|i|s)?|also known as|aka|auch bekannt als|acronym|abbreviation|"
        r"(short|other|alternative|andere) na(me|men|mes|am)|autres? noms?|otros? nombres?|outros? nomes?|altri nomi)"
        r"( .*)?"
    ),
    "type": r"types?|class|instance of",
    "description": r"descriptions?|summary|abstract|beschreibung|descripcion|descricao|descrizione|omschrijving",
}
"""The heads of an entity's columns, in the form of `plain_head`."""

NAME_HEADS = (
    r"title|full name|tit(el|re|ulo|olo)|bezeichnung|designation|denomina(cion|cao|zione)|libelle|nom|nombre|nome|naam|"
    r"(dc|dcterms) title( .*)?|(gene|hgnc|approved|official) symbol|"
    r"na(zwa|zev|ziv|mn|vn|ma)|nimi|denumire|megnevezes|isim|ad[iı]|"
    r"название|наименование|имя|назва|ονομα|الاسم|اسم|שם|नाम|名称|名稱|名字|姓名|名前|氏名|品名|이름|성명|명칭",
    r"(.* )?names?( .*)?",
    r"(nom|nome|naam) .*|nombre (comun|completo|cientifico|comercial)",
)
"""Heads of names if no column is called name or label, by preference."""

OTHER_NAMES = (
    r"(common|vernacular|trivial|scientific|latin|botanical|official|former|native|local|popular) names?|"
    "nom (commun|scientifique)|nombre (comun|cientifico)|nome (comum|comune|cientifico|scientifico)"
)
"""Heads of names that are asked for as well: a question may use one of them, and another may want it."""

_GIVEN = (
    r"(first|given|christian) ?names?|forenames?|vornamen?|rufname|prenoms?|voorna(am|men)|nombres? de pila|"
    "primeiro nome"
)
_FAMILY = (
    r"(last|family) ?names?|surnames?|(nach|familien|zu)namen?|nom de famille|achternaam|apellidos?|cognome|"
    "sobrenome|apelido"
)
_NAME = "name|nom|nome|nombres?|naam"


def name_parts(header: Sequence[str]) -> tuple[str, str] | None:
    """Return the columns of given and of family names; one of them may be called name, as in `Name;Vorname`."""
    for given, family in ((_GIVEN, _FAMILY), (_GIVEN, _NAME), (_NAME, _FAMILY)):
        parts = [
            next((head for head in header if re.fullmatch(heads, plain_head(head))), "") for heads in (given, family)
        ]
        if all(parts):
            return parts[0], parts[1]
    return None


@functools.lru_cache(maxsize=1_024)  # a table's header is compared with those of every layout
def plain_head(head: str) -> str:
    """Return a head in lower case without accents, with single spaces; `movieId` has two words."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", head.replace("_", " "))
    letters = unicodedata.normalize("NFKD", words).casefold()
    plain = "".join(letter for letter in letters if not unicodedata.combining(letter))
    # Syllables of Korean are whole again.
    return " ".join(re.findall(r"\w+", unicodedata.normalize("NFC", plain)))


def entity_role(head: str) -> str:
    """Return the usual role of a column in a table of entities, empty for a value."""
    plain = plain_head(head)
    if head.strip().casefold() == ":label":
        return "type"  # as Neo4j names it
    return next((role for role, heads in ENTITY_ROLES.items() if re.fullmatch(heads, plain)), "")


def is_header(cells: Sequence[str], *, least: int = 2) -> bool:
    """Return whether at least `least` of the first three cells of a line are heads of a triple."""
    # Two, since a single word such as `s` may be an id.
    heads = [SUFFIX.sub("", cell.strip().casefold()) for cell in cells[:3]]
    return sum(head in USUAL[column] for head, column in zip(heads, _TRIPLE, strict=False)) >= least
