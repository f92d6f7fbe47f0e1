"""URLs to which one part of one upload can be sent without a token, for a while: signed by HMAC."""

from __future__ import annotations

import math
import time
from typing import Any
from urllib.parse import urlencode

from ..database.models import Dataset
from ..errors import Refused
from ..vault.cipher import Vault

PATH = "/uploads"


def part_count(dataset: Dataset) -> int:
    """Return in how many parts a dataset arrives."""
    if dataset.part_size is None:
        return 1
    return math.ceil(dataset.file_size / dataset.part_size)


def part_size(dataset: Dataset, number: int) -> int:
    """Return how many bytes a part has."""
    if dataset.part_size is None:
        return dataset.file_size
    return min(dataset.part_size, dataset.file_size - (number - 1) * dataset.part_size)


def upload_document(
    vault: Vault, base_url: str, dataset: Dataset, expires_s: int
) -> dict[str, Any]:
    """Return how to send a dataset: the method, and a URL for each part."""
    expires = int(time.time()) + expires_s
    urls = [
        _url(vault, base_url, dataset.id, number, expires)
        for number in range(1, part_count(dataset) + 1)
    ]
    if dataset.part_size is None:
        return {"method": "simple", "presigned_url": urls[0]}
    parts = [
        {"part_number": number, "presigned_url": url} for number, url in enumerate(urls, start=1)
    ]
    return {"method": "multipart", "part_size": dataset.part_size, "parts": parts}


def check(vault: Vault, dataset_id: str, number: int, expires: int, signature: str) -> None:
    """Refuse a URL that is not ours, or serves no longer."""
    if not vault.is_signature(_signed(dataset_id, number, expires), signature):
        raise Refused(403, "wrong_signature", "the URL of the upload is not one of this platform")
    if expires <= time.time():
        raise Refused(
            403, "expired_url", "the URL of the upload has expired; ask for the parts once more"
        )


def _url(vault: Vault, base_url: str, dataset_id: str, number: int, expires: int) -> str:
    signature = vault.sign(_signed(dataset_id, number, expires))
    query = urlencode({"expires": expires, "signature": signature})
    return f"{base_url}{PATH}/{dataset_id}/{number}?{query}"


def _signed(dataset_id: str, number: int, expires: int) -> str:
    return f"PUT {dataset_id} {number} {expires}"
