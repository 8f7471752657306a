"""A search from a query to results, shared by /similar, MCP and the command line. It knows no HTTP."""
