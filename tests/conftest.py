"""What holds for every test."""

from __future__ import annotations

import os

# Tests see the same world wherever they run: in a developer's tmux pane, on a desktop, on a bare CI machine.
_OTHERS = ("COLUMNS", "LINES", "TMUX", "TMUX_PANE", "STY", "NO_COLOR", "FORCE_COLOR", "COLORTERM", "VTE_VERSION", "TZ")
_FAMILIES = ("TERM_", "LC_", "SSH_", "XDG_", "TUIMON_", "TEXTUAL", "SLURM_", "CUDA_", "NCCL_", "TORCH_")
_MEANT = ("TUIMON_GOLDENS",)

for name in list(os.environ):
    if name in _OTHERS or (name.startswith(_FAMILIES) and name not in _MEANT):
        del os.environ[name]
# Without SHELL, tmux would take the one of the user's account: nobody's ends at once, and its pane with it.
os.environ.update(SHELL="/bin/sh", TERM="xterm-256color", LANG="C.UTF-8")
