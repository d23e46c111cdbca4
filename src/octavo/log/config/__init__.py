"""The configuration of topics, and how all settings are declared and parsed."""
