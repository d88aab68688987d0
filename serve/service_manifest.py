"""The manifest of the reconciliation service: its offers, their addresses, and how large a batch may be."""

import re
from typing import Any

from kbtools.serve.extension import SETTINGS
from kbtools.serve.live_kb import Edition
from kbtools.serve.previews import HEIGHT, WIDTH
from kbtools.serve.reconciliation_queries import BATCH
from kbtools.version import __version__

VERSIONS = ["0.2"]
DEFAULT_TYPES = 10
FREEBASE = re.compile(r"m\.0")


def service_manifest(name: str, edition: Edition, url: str) -> dict[str, Any]:
    """Say what the service offers, and where; `url` is its own address."""
    kinds = ("entity", "property", "type")
    spaces = identifier_spaces(edition, url)
    return {
        "versions": VERSIONS,
        "name": f"{name} (kbtools)",
        **spaces,
        "serviceVersion": __version__,
        "defaultTypes": [
            {"id": type_id, "name": type_id} for type_id in edition.vocabulary.frequent_types(DEFAULT_TYPES)
        ],
        "view": {"url": url.removesuffix("reconcile") + "#entity?id={{id}}"},
        "preview": {"url": f"{url}/preview?id={{{{id}}}}", "width": WIDTH, "height": HEIGHT},
        "suggest": {
            kind: {
                "service_url": url,
                "service_path": f"/suggest/{kind}",
                "flyout_service_url": url,
                "flyout_service_path": f"/flyout/{kind}?id=${{id}}",
            }
            for kind in kinds
        },
        "extend": {
            "propose_properties": {"service_url": url, "service_path": "/properties"},
            "property_settings": SETTINGS,
        },
        "batchSize": BATCH,
    }


def identifier_spaces(edition: Edition, url: str) -> dict[str, str]:
    """Name the spaces of ids: Freebase's where the ids are, else those of this service."""
    kb = edition.answerer.kb
    if any(FREEBASE.match(entity_id) for entity_id in kb.ids(kb.entity_rows()[:50])):
        return {
            "identifierSpace": "http://rdf.freebase.com/ns/",
            "schemaSpace": "http://rdf.freebase.com/ns/type.object.id",
        }
    return {"identifierSpace": f"{url}#entities", "schemaSpace": f"{url}#types"}
