"""Text to embedding, embedding to hits: no AWS, no HTTP, no environment, no torch."""
