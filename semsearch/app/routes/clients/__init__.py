"""Routes for clients of other products: OpenAI's, text-embeddings-inference's, and those of rerankers."""
