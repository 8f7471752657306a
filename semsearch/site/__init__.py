"""A static site from a bundle: the search page, a worker that answers its requests, and the bundle's files for it."""
