"""One function: its starts and its requests, through Lambda's handler and under its emulator."""
