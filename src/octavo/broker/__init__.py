"""What a broker decides: a request and the broker's state in; the parts of an answer, a wait, or nothing out.

It knows no sockets and starts no threads: `octavo.server` connects it. There is a module for each API in `apis`.
"""
