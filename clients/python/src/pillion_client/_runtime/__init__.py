"""What the blocking and the asyncio client do differently: two twins with the same names."""
