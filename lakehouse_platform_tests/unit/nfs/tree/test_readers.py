from __future__ import annotations

import weakref

from lakehouse_platform.nfs.tree.handles import Kind
from lakehouse_platform.nfs.tree.nodes import ViewKey
from lakehouse_platform.nfs.tree.readers import Readers


class _Image:
    pass


VIEW = ViewKey(b"mnt1", Kind.CSV, b"12345678")
OTHER = ViewKey(b"mnt2", Kind.CSV, b"12345678")


def streaming() -> Readers[str]:
    """Return readers of which one is in the middle of `old`."""
    readers: Readers[str] = Readers()
    readers.told(VIEW, "old", 0.0)
    readers.read(VIEW, "old", 0.1, at_end=False)
    return readers


def test_reading_begins_with_the_image_that_was_told() -> None:
    readers: Readers[str] = Readers()
    readers.told(VIEW, "old", 0.0)
    assert readers.pinned(VIEW, 1.0) is None
    assert readers.reading(VIEW, 0, 1.0) == "old"
    assert readers.reading(OTHER, 0, 1.0) is None


def test_what_was_told_long_ago_is_not_begun_with() -> None:
    readers: Readers[str] = Readers()
    readers.told(VIEW, "old", 0.0)
    assert readers.reading(VIEW, 0, 3.1) is None


def test_a_reader_keeps_its_image_whatever_it_is_told_meanwhile() -> None:
    readers = streaming()
    readers.told(VIEW, "new", 0.2)
    assert readers.pinned(VIEW, 0.3) == "old"
    assert readers.reading(VIEW, 100, 0.3) == "old"


def test_a_reader_that_pauses_loses_its_image() -> None:
    readers = streaming()
    assert readers.pinned(VIEW, 2.0) == "old"
    assert readers.pinned(VIEW, 2.2) is None
    assert readers.reading(VIEW, 100, 2.2) is None


def test_reads_that_the_last_one_overtook_still_get_the_image() -> None:
    readers = streaming()
    readers.read(VIEW, "old", 0.2, at_end=True)
    assert readers.pinned(VIEW, 0.3) is None
    assert readers.reading(VIEW, 100, 0.3) == "old"
    assert readers.reading(VIEW, 0, 0.3) is None


def test_the_next_pass_begins_with_what_was_told_after_the_end() -> None:
    readers = streaming()
    readers.read(VIEW, "old", 0.2, at_end=True)
    readers.told(VIEW, "new", 0.3)
    assert readers.reading(VIEW, 0, 0.4) == "new"


def test_no_reader_keeps_an_image_for_more_than_five_minutes() -> None:
    readers = streaming()
    for second in range(1, 400):
        readers.read(VIEW, "old", float(second), at_end=False)
    assert readers.pinned(VIEW, 400.0) is None


def test_who_writes_lets_go() -> None:
    readers = streaming()
    readers.release(VIEW)
    assert readers.reading(VIEW, 100, 0.3) is None


def test_images_of_long_ago_are_not_held() -> None:
    image = _Image()
    gone = weakref.ref(image)
    readers: Readers[_Image] = Readers()
    readers.told(VIEW, image, 0.0)
    del image
    readers.told(OTHER, _Image(), 301.0)
    assert gone() is None


def test_readers_of_long_ago_make_room() -> None:
    readers = streaming()
    for number in range(5000):
        readers.told(ViewKey(b"%04d" % number, Kind.CSV, b"12345678"), "new", 0.2)
    assert readers.pinned(VIEW, 0.3) is None
