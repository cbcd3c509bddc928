"""tuimon: is this silent launch slow, or is it dead?"""

__version__ = "0.1.0"
