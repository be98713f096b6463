"""The gRPC edge: the only place of the product that knows gRPC and protobuf.

A call passes, in this order: `interceptors` (errors, identity, admission, deadline, log line), a
servicer (`memory_servicer`, `admin_servicer`), `convert` (wire to domain), a use case, `convert`
again. Nothing below this package sees a message of the contract.
"""
