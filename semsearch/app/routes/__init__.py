"""One file for each family of routes; each adds its own to the app and receives what it needs."""
