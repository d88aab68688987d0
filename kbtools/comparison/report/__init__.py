"""Reports of a comparison: tables, records, pictures and pages; matplotlib is imported in `pictures` alone."""
