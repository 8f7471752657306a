"""What turns the tree into an image; nothing of it runs in Lambda."""
