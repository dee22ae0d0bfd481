"""heddle's log as Python's: logging.getLogger("heddle")."""
import logging

from . import _core

_logger = logging.getLogger("heddle")
_logger.addHandler(logging.NullHandler())  # silent where the program wants no log
_LEVELS = {1: logging.WARNING, 2: logging.INFO, 3: logging.DEBUG}  # of heddle_info.h
_watched = 0


def watch() -> None:
    """Has heddle log what the logger wants now."""
    global _watched
    wanted = max((ours for ours, theirs in _LEVELS.items() if _logger.isEnabledFor(theirs)),
                 default=0)
    if wanted != _watched:
        _core._set_log(wanted)
        _watched = wanted


def deliver(messages: list[tuple[int, str]]) -> None:
    """Gives the logger what heddle has logged: (level, text)."""
    for level, text in messages:
        _logger.log(_LEVELS[level], "%s", text)
