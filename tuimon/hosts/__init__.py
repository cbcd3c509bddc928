"""How to reach a machine: Host (protocol), SSH, this machine."""
