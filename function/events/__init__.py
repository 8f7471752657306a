"""From Lambda's events to the app and back: what an event is, whether it can be read, and how the app is asked."""

from function.events.adapter import make_handler as make_handler
