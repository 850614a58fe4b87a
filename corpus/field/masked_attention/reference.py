"""Truth for `masked_attention`, query by query."""

import torch


def masked_attention(q, k, v, mask):
    """Return attention of each query over the keys that its row of `mask` allows."""
    rows = []
    for i in range(q.shape[2]):
        keys, values = k[:, :, mask[i]], v[:, :, mask[i]]
        scores = q[:, :, i : i + 1] @ keys.transpose(-1, -2) / q.shape[3] ** 0.5
        rows.append(torch.softmax(scores, dim=-1) @ values)
    return torch.cat(rows, dim=2)
