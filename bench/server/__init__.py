"""The server beside others: requests a second, and ten minutes under load."""
