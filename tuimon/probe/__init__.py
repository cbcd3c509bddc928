"""The program that runs on the host, and how it is sent. It leaves nothing behind."""
