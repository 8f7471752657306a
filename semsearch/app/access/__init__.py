"""API keys, and filters that limit what a caller finds."""
