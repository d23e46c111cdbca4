"""What a broker is connected with: sockets, one thread that serves them all, and threads for slow work.

with octavo.server.serve() as broker:
    Producer({"bootstrap.servers": broker.bootstrap_servers})
"""
