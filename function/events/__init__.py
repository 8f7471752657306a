"""The Lambda handler of an app. It checks each event, and runs the app through Mangum."""

from function.events.adapter import make_handler as make_handler
