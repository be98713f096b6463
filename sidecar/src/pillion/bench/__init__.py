"""The load bench: open loop, latencies from the intended send time, floors beside every figure.

Closed-loop benches let a slow server slow its own load down, and so leave out the waits that
people see ("coordinated omission"). Here calls are due at instants drawn beforehand (`schedule`),
are sent whatever became of those before, and are timed from when they were due (`sender`), into
HdrHistograms (`histograms`). `ladder` looks for the knee; `echo` and `floors` are what any server
on this machine and this gRPC stack could do. The client is a process of its own (`worker`) that
says how late it was itself: where it is the bottleneck, the round does not count.
"""
