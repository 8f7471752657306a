"""AWS and HTTP on top of the engine: what runs in Lambda."""
