"""The offers of a bag, as they are stored with it: records name them by number."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from linnet.fleet.fleet import Fleet
from linnet.fleet.model_text import model_from_json, model_to_json
from linnet.fleet.offers import Offer
from linnet.fleet.storage import Storage


def merged_offers(storage: Storage, fleet: Fleet) -> list[Offer]:
    """The offers of a bag: those it had before, under their numbers, and those of the fleet.

    Records name offers by number, so an offer whose price or law changed is another one, and one that the
    fleet no
    longer has is closed.
    """
    stored = [_offer(each) for each in json.loads(storage.get("offers") or "[]")]
    texts = [_offer_text(each) for each in stored]
    current = fleet.offers()
    wanted = [_offer_text(each) for each in current]
    for offer, text in zip(current, wanted, strict=True):
        if text not in texts:
            stored.append(offer)
            texts.append(text)
    offers = json.dumps([json.loads(text) for text in texts])
    storage.put({"offers": offers, "fleet": json.dumps(fleet.to_json())})
    names = {each.name for each in fleet.providers}
    return [
        each if text in wanted and each.provider in names else replace(each, limit=0)
        for each, text in zip(stored, texts, strict=True)
    ]


def _offer_text(offer: Offer) -> str:
    found = {name: getattr(offer, name) for name in Offer.__dataclass_fields__}
    return json.dumps({**found, "model": model_to_json(offer.model)}, sort_keys=True)


def _offer(data: dict[str, Any]) -> Offer:
    given: dict[str, Any] = {**data, "model": model_from_json(data["model"])}
    return Offer(**given)


def stored_offers(storage: Storage) -> list[Offer]:
    """The offers of a bag as they were last."""
    return [_offer(each) for each in json.loads(storage.get("offers") or "[]")]
