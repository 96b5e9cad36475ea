"""The demo: fake engines, a fake endpoint, the gateway between, real SDK traffic past capacity."""
