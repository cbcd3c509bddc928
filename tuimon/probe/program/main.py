"""The probe: one JSON line a second on stdout, requests on stdin, and the end when stdin ends."""

import os
import signal
import time

from .gpus import Gpus
from .speech import Speech, listen


def run(stdin, options, nvml):
    """Never returns."""
    try:
        os.nice(5)  # the server comes first
    except OSError:
        pass
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup hands on that it is ignored
    within = os.environ.get("TUIMON_WITHIN", "")
    if within.isdigit() and not options.get("within"):
        options["within"] = int(within)
    speech = Speech()
    speech.begin()
    gpus = Gpus(nvml, speech)
    gpus.start()  # before any thread: a fork is safest then; and before the rest is in memory, which it would copy
    from .collector import Collector  # noqa: PLC0415
    from .health import Health  # noqa: PLC0415

    def end(status):
        gpus.end()
        os._exit(status)

    health = Health(speech)
    collector = Collector(options, speech, gpus, health)
    listen(stdin, collector.request, end, options.get("patience"))
    health.start()
    collector.start()
    while True:
        time.sleep(0.5)
        gpus.tend()
        collector.watch()
