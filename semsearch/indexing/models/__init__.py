"""What a checkpoint states, read without PyTorch, and the cache of converted models."""
