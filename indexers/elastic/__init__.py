"""A knowledge base on an Elasticsearch cluster: loaded from an embedded one, linked in one request per question."""
