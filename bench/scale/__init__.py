"""How search, cold starts and the export grow with the number of texts."""
