"""Storage for Pillion: one small interface (``api``) and the engines that keep it."""
