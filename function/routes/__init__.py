"""One file for each family of routes; each gives a router and receives what it needs."""
