"""Truth for `paged_decode`, sequence by sequence."""

import torch


def paged_decode(q, k, v, table, lens):
    """Return attention of each sequence's query over its own live keys."""
    outputs = []
    for b in range(q.shape[0]):
        pages = table[b].long()
        keys = k[pages].flatten(0, 1)[: int(lens[b])]
        values = v[pages].flatten(0, 1)[: int(lens[b])]
        scores = torch.einsum("hd,nhd->hn", q[b], keys) / q.shape[-1] ** 0.5
        outputs.append(torch.einsum("hn,nhd->hd", torch.softmax(scores, -1), values))
    return torch.stack(outputs)
