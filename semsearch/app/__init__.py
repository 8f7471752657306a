"""The HTTP application: routes, MCP, access control and the search page."""
