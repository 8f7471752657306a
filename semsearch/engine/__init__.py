"""Text to embedding, embedding or words to hits: no AWS, no HTTP, no environment, no torch."""
