"""The account of an update on a cluster: its manifest, counts and statistics, and what the new version should hold.

All that did not change lies in files that the copy shares with the version before, so that its documents are counted
and no more: sums over all of them take longer the larger a knowledge base is.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from kbtools.indexers.elastic.cluster import Cluster
from kbtools.indexers.elastic.entity_changes import COUNTED, EntityChanges
from kbtools.indexers.elastic.form_changes import FormChanges
from kbtools.indexers.elastic.mapping import ENTITIES, NAMES
from kbtools.indexers.elastic.searches import WHOLE, cut
from kbtools.indexers.elastic.stored_entities import StoredEntities
from kbtools.indexers.updates.draft import Draft
from kbtools.kb.language_tags import UND
from kbtools.kb.manifest import UPDATE, Change, Count, Manifest

ROWS_AT_ONCE = 10_000
"""Changed entities whose documents are counted in one request; the cluster's own limit is 65,536 terms."""

CHANGED = {
    "documents of changed entities": "documents",
    "facts": "held",
    "facts of subjects": "facts",
    "incoming facts": "held_in",
    "facts of objects": "facts_in",
    "names": "named",
    "types": "types",
}
"""The counts of changed entities that are compared, by what they are of."""

STATISTICS = (
    "subjects",
    "objects",
    "subjects_of_no_fact",
    "entities_without_facts",
    "entities_without_names",
    "entities_without_types",
)


def update_manifest(
    old: Manifest,
    change: Change,
    entities: EntityChanges,
    forms: FormChanges,
    *,
    labels: Mapping[str, int],
    statistics: Mapping[str, int],
) -> Manifest:
    """Write the account of a new version; `labels` are the numbers of relations and types that are in use."""
    sums = entities.sums
    differences = {kind: sums["named" if kind == "names" else kind] for kind in old.counts}
    further = {"pairs": sums["pairs"], "forms": forms.stored, "descriptions": sums["descriptions"], **statistics}
    return replace(
        old,
        digest=change.after,
        counts={
            kind: Count(count.raw + differences[kind], count.unique + differences[kind])
            for kind, count in old.counts.items()
        },
        lengths=tuple(sorted({*old.lengths, *forms.lengths})),
        statistics=old.statistics
        | dict(labels)
        | {name: old.statistics.get(name, 0) + difference for name, difference in further.items()},
        history=(*old.history, change),
        languages=count_languages(old, entities),
    )


def count_languages(old: Manifest, entities: EntityChanges) -> dict[str, int]:
    """Count the names in each language now; nothing where none has one."""
    counts = Counter(old.languages or {UND: old.counts["names"].unique})
    counts.update(entities.languages)
    present = +counts
    return {} if present.keys() <= {UND} else dict(present.most_common())


def change_entry(old: Manifest, digest: str, *, sources: Sequence[str], counts: dict[str, int], size: int) -> Change:
    """Write the entry of the history."""
    when = datetime.now(UTC).isoformat(timespec="seconds")
    return Change(UPDATE, when, old.digest, digest, tuple(sources), counts, size)


def statistics_differences(draft: Draft, stored: StoredEntities) -> dict[str, int]:
    """Give the differences of the numbers of subjects, objects and so on."""
    totals = dict.fromkeys(STATISTICS, 0)
    for row in draft.touched():
        if draft.is_known(row):
            main = stored.parts(row)[0]
            named, typed = bool(stored.ranked_names(row)), bool(stored.texts(row, "types"))
            add(totals, flags(main["facts"] > 0, main["facts_in"] > 0, named, typed), -1)
        if row not in draft.deleted:
            has_facts, is_object = bool(draft.facts_from(row)), draft.is_object(row)
            add(totals, flags(has_facts, is_object, bool(draft.texts_of(row)), bool(draft.kinds_of(row))), 1)
    return totals


def count_documents(cluster: Cluster, indexes: Mapping[str, str]) -> dict[str, int]:
    """Count the documents of entities and of forms of a version."""
    queries = {ENTITIES: {"exists": {"field": "part"}}, NAMES: {"match_all": {}}}
    counts = {}
    for role, query in queries.items():
        body = {"size": 0, "track_total_hits": True, "query": query}
        answer = cluster.ask("POST", f"/{indexes[role]}/_search", body, to=f"count the {role}", params=WHOLE)
        counts[role] = int(answer["hits"]["total"]["value"])
    return {"documents of entities": counts[ENTITIES], "forms": counts[NAMES]}


def count_changed(cluster: Cluster, indexes: Mapping[str, str], rows: Sequence[int]) -> dict[str, int]:
    """Count what the documents of some entities hold."""
    sums = {name: {"sum": {"field": name}} for name in COUNTED}
    counts: Counter[str] = Counter()
    for chunk in cut(rows, ROWS_AT_ONCE):
        body = {
            "size": 0,
            "track_total_hits": True,
            "query": {"terms": {"row": list(chunk)}},
            "aggs": {"types": {"value_count": {"field": "types"}}, **sums},
        }
        answer = cluster.ask(
            "POST", f"/{indexes[ENTITIES]}/_search", body, to="count the changed entities", params=WHOLE
        )
        counts["documents"] += answer["hits"]["total"]["value"]
        counts.update({name: int(told["value"]) for name, told in answer["aggregations"].items()})
    return {kind: counts[name] for kind, name in CHANGED.items()}


def expected_counts(before: Mapping[str, int], entities: EntityChanges, forms: FormChanges) -> dict[str, int]:
    """Tell how much a new version should hold, by the documents of the one before and by what was changed."""
    return {
        "documents of entities": before["documents of entities"] + entities.sums["documents"],
        "forms": before["forms"] + forms.normal,
        **{kind: entities.held[name] for kind, name in CHANGED.items()},
    }


def flags(has_facts: bool, is_object: bool, is_named: bool, has_types: bool) -> tuple[bool, ...]:
    """Tell what an entity counts as, in the order of the statistics."""
    return has_facts, is_object, not has_facts, not has_facts and not is_object, not is_named, not has_types


def add(totals: dict[str, int], counted: tuple[bool, ...], sign: int) -> None:
    for name, holds in zip(STATISTICS, counted, strict=True):
        totals[name] += sign * holds
