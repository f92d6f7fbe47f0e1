"""Looking where a thread is collects no garbage meanwhile, and leaves collection as it was."""

from __future__ import annotations

import gc
import sys
import threading

from osmosis_ai.running.loop_thread import frame_of


def test_the_frame_is_that_of_the_thread():
    assert frame_of(-1) is None
    seen = frame_of(threading.get_ident())
    assert seen is not None
    while seen is not None and seen is not sys._getframe():
        seen = seen.f_back
    assert seen is sys._getframe()


def test_collection_goes_on_as_before():
    was_enabled = gc.isenabled()
    try:
        for enabled in (True, False):
            (gc.enable if enabled else gc.disable)()
            frame_of(threading.get_ident())
            assert gc.isenabled() == enabled
    finally:
        (gc.enable if was_enabled else gc.disable)()
