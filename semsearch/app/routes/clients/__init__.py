"""Routes for the clients of others: OpenAI's, text-embeddings-inference's and MCP's. Imported when needed."""
