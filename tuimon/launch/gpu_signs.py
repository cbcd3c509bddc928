"""Signs of life on the GPUs: work, memory, link traffic. Utilisation is none of them."""

from __future__ import annotations

from tuimon.launch.gpus import Card, Gpus
from tuimon.launch.ranks import gpu_names
from tuimon.launch.signs import Look, Sign

LINK_FLOOR = 14_000.0
"""KB/s. Measured floors 0.4-2.4 MB/s, in a hang up to 6.7; the lightest work (graph capture) moves 28 MB/s."""
LINK_OVER_FLOOR = 4.0


def _none(sign: Sign, gpus: Gpus) -> bool:
    if gpus.none_here:
        sign.hidden("no GPU in this machine", absent=True)
    elif not gpus.seen:
        sign.hidden(gpus.note or "GPUs cannot be read")
    else:
        sign.visible = True
        return False
    return True


class GpuWork(Sign):
    """Memory traffic, DRAM bandwidth, or power clearly over this GPU's own idle."""

    name = "GPU work"

    def see(self, look: Look) -> None:
        """Read one sample."""
        if _none(self, look.gpus):
            return
        ours = look.gpus.ours
        told = [card for card in ours if card.work is not None]
        if ours and not told:
            self.hidden("neither memory traffic nor idle power is known")
        if any(card.working for card in ours):
            self.visible = True
            self.seen(look.at)
        self.text = _words(ours) if self.visible else self.text


class GpuMemory(Sign):
    """Used memory changed by more than 2 MiB."""

    name = "GPU memory"

    def see(self, look: Look) -> None:
        """Read one sample."""
        if _none(self, look.gpus):
            return
        cards = [card for card in look.gpus.ours if card.memory is not None]
        if not cards and look.gpus.ours:
            self.hidden("used memory cannot be read")
            return
        moved = [card for card in cards if card.memory_moved]
        if moved:
            self.seen(look.at)
        held = sum(card.memory or 0 for card in cards) / 2**30  # so do SGLang, vLLM and nvidia-smi, and they say GB
        self.text = f"{held:.1f} GB, moving on {len(moved)} of {len(cards)}" if moved else f"{held:.1f} GB, unchanged"


class LinkTraffic(Sign):
    """PCIe traffic clearly over this link's own floor, in two readings running: single spikes mean nothing."""

    name = "link traffic"

    def __init__(self) -> None:
        super().__init__()
        self._floors: dict[int, float] = {}
        self._over: dict[int, int] = {}

    def see(self, look: Look) -> None:
        """Read one sample."""
        if _none(self, look.gpus):
            return
        read = [(card, traffic) for card in look.gpus.ours if (traffic := _traffic(card)) is not None]
        if not read:
            if self.last is None:
                self.hidden("read once it goes quiet" if look.gpus.ours else "no GPU is ours yet", absent=True)
            return
        for card, traffic in read:
            floor = min(self._floors.get(card.index, traffic), traffic)
            self._floors[card.index] = floor
            over = traffic > max(LINK_FLOOR, LINK_OVER_FLOOR * min(floor, LINK_FLOOR))
            self._over[card.index] = self._over.get(card.index, 0) + 1 if over else 0
            if self._over[card.index] >= 2:
                self.seen(look.at)
        most = max(traffic for _, traffic in read)
        self.text = f"{most / 1000:.1f} MB/s at most"


def _traffic(card: Card) -> float | None:
    """Reading receive and send apart would only matter if one of them lied."""
    sides = [side for side in (card.now.pcie_rx, card.now.pcie_tx) if side is not None]
    return max(sides) if sides else None


def _words(cards: list[Card]) -> str:
    if not cards:
        return "no GPU is ours yet"
    spins = [card for card in cards if card.spins]
    if spins:
        names = gpu_names(card.index for card in spins)
        return f"{names} 100 % busy without work{_power(spins)}"
    working = [card for card in cards if card.working]
    if working:
        share = max(card.work or 0 for card in working)
        return f"{len(working)} of {len(cards)} at work, up to {max(1, round(share * 100))} %"
    utils = [card.now.util for card in cards if card.now.util is not None]
    busiest = max(utils, default=0.0)
    words = f"up to {busiest:.0f} % busy, no work" if busiest >= 1 else "0 % everywhere" if utils else "no work"
    return f"{words}{_power(cards)}"


def _power(cards: list[Card]) -> str:
    watts = [card.now.power for card in cards if card.now.power is not None]
    if not watts:
        return ""
    low, high = min(watts), max(watts)
    return f", {low:.0f} W" if high - low < 1 else f", {low:.0f}-{high:.0f} W"
