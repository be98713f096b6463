"""Token counters: built-in plug-ins of the group ``pillion.token_counters``."""
