"""Durable records of requests, attempts, prices and engine time."""
