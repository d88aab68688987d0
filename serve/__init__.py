"""The web server over knowledge bases: page, JSON API and reconciliation service."""
