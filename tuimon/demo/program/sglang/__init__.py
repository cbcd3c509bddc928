"""The demo's stand-in for SGLang: the same modules, classes and functions on the stack, and nothing behind them."""

__version__ = "0.5.6"
