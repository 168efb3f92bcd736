"""Warehouse Tool Delivery: two Turtlebots and a Fetch robot bring tools to people at work."""

from mavic.envs.warehouse.env import State, Warehouse

__all__ = ["State", "Warehouse"]
