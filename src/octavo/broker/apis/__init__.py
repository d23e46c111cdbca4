"""The handlers, one module for each API. `handlers` has them by the number of their API."""
