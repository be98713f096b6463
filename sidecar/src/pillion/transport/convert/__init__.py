"""Wire to domain and back: total functions, one module for each family of messages.

From the wire, what only the edge can see is checked here: ids that are no UUIDs, oneofs without a
choice, numbers of no enum, absent messages, instants out of range, and requests for what this
server does not serve. Everything else is the domain's to judge. To the wire nothing can fail.
"""
