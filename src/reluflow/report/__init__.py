"""Drawings: functions that take ``ax=`` and return it, without global state."""
