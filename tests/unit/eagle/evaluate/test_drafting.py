"""What chains do at every token of a reply, against a server that steps through it and a count by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")

from breakeven.eagle.evaluate.drafting import Drafting  # noqa: E402
from breakeven.eagle.evaluate.replies import Reply  # noqa: E402
from breakeven.eagle.sampling import softmax, verify_greedy, widened  # noqa: E402
from breakeven.eagle.states.target_head import TargetHead  # noqa: E402
from tests.unit.eagle.tiny_head import FULL, TINY, tiny_head  # noqa: E402

pytestmark = pytest.mark.eagle
K, START, TOKENS, TEMPERATURE = 4, 6, 70, 0.8


def followed(head, seed: int, tokens: int = TOKENS):
    """A reply that goes on as the head drafts, and breaks off its chains at random; with states at random."""
    rng, random = np.random.default_rng(seed), torch.Generator().manual_seed(seed)
    states = torch.randn(tokens, 4, head.shape.hidden, generator=random)
    ids = rng.integers(head.shape.vocabulary, size=START).tolist()
    while len(ids) < tokens:
        drafts = chain(head, ids, states, K)
        ids += [*drafts[: rng.integers(K + 1)], int(rng.integers(head.shape.vocabulary))]
    return Reply("r", "r", "c", np.array(ids[:tokens], np.int32), START), states


def chain(head, ids, states, k: int) -> list[int]:
    """What the head drafts after these tokens, from scratch."""
    entries = head.entries(torch.tensor(ids[1:]), states[: len(ids) - 1, :3])
    logits = head.chains(entries, torch.tensor([len(entries) - 1]), k)
    return [int(head.drafted(one)[0]) for one in logits]


def served(head, reply: Reply, states, k: int) -> list[tuple[int, int]]:
    """A server's steps over a reply: the token before which each drafts, and how many drafts it accepts. Its
    cache holds the target's states of verified tokens only, and grows with them."""
    ids = reply.ids.astype(np.int64).tolist()
    end, steps, entries = reply.start + 1, [], None
    while end < len(ids):
        have = 0 if entries is None else len(entries)
        entries = head.entries(torch.tensor(ids[1 + have : end]), states[have : end - 1, :3], entries)
        logits = head.chains(entries, torch.tensor([end - 2]), k)
        drafts = [int(head.drafted(one)[0]) for one in logits]
        coming = ids[end : end + k + 1]
        done = verify_greedy([*coming, *[-1] * (k + 1 - len(coming))], drafts)
        steps.append((end - reply.start, done.accepted))
        end += done.accepted + 1
    return steps


def drafting(head, k: int = K, temperature: float = TEMPERATURE) -> Drafting:
    random = torch.Generator().manual_seed(9)
    size = (head.shape.vocabulary, head.shape.hidden)
    target = TargetHead(torch.ones(head.shape.hidden), 0.5 * torch.randn(size, generator=random), 1e-5)
    return Drafting(head, target, k, temperature)


@pytest.mark.parametrize("seed", range(3))
def test_accepted_is_what_a_server_accepts_at_its_steps(tmp_path: Path, seed: int):
    head = tiny_head(tmp_path)
    reply, states = followed(head, seed)
    accepted = drafting(head)(reply, states).accepted
    steps = served(head, reply, states, K)
    assert [accepted[token - 1] for token, _ in steps] == [one for _, one in steps]
    assert {one for _, one in steps} >= {0, 2}  # the reply is neither all drafted nor never


def test_own_drafts_pass_as_far_as_the_replys_tokens_agree(tmp_path: Path):
    """Chains that feed themselves, from every token on: what is teacher-forced accepts the same."""
    head = tiny_head(tmp_path)
    reply, states = followed(head, 4)
    ids = reply.ids.astype(np.int64).tolist()
    own = []
    for t in range(reply.start + 1, len(ids)):
        coming = [*ids[t : t + K], *[-1] * (K + 1)]
        own.append(verify_greedy(coming[: K + 1], chain(head, ids[:t], states, K)).accepted)
    assert drafting(head)(reply, states).accepted == own


@pytest.mark.parametrize("shape", [TINY, FULL], ids=["draft vocabulary", "whole vocabulary"])
def test_counts_are_those_of_a_count_by_hand(tmp_path: Path, shape):
    head = tiny_head(tmp_path, shape)
    reply, states = followed(head, 6, 30)
    judge = drafting(head)
    found = judge(reply, states)
    ids, draft_ids = reply.ids.astype(np.int64), head.draft_ids.numpy()
    entries = head.entries(torch.from_numpy(ids[1:]), states[: len(ids) - 1, :3])
    p = softmax(judge._target(states[:, 3]).numpy(), TEMPERATURE)  # of what comes after each token
    contexts, agree, reached, passed = np.zeros((4, K), int)
    overlaps, survived = np.zeros((2, K))
    for t in range(reply.start + 1, len(ids)):
        fed = torch.from_numpy(np.resize(np.append(ids[t:], [0] * K), K)[None])
        all_before, product = True, 1.0
        for j, logits in enumerate(head.chains(entries, torch.tensor([t - 2]), K, fed[:, :-1])):
            if t + j >= len(ids):
                break
            x = ids[t + j]
            q = widened(softmax(logits[0].numpy(), TEMPERATURE), draft_ids, shape.vocabulary)
            right = bool(draft_ids[int(logits[0].argmax())] == x)
            contexts[j] += 1
            agree[j] += right
            reached[j] += all_before
            all_before = all_before and right
            passed[j] += all_before
            overlaps[j] += np.minimum(p[t + j - 1], q).sum()
            product *= min(1.0, q[x] / p[t + j - 1][x])
            survived[j] += product
    assert found.contexts == contexts.tolist() == [len(ids) - reply.start - 1 - j for j in range(K)]
    assert found.agree == agree.tolist() and found.reached == reached.tolist()
    assert found.passed == passed.tolist() and sum(found.accepted) == sum(found.passed)
    assert found.overlap == pytest.approx(overlaps.tolist(), rel=1e-4)
    assert found.survived == pytest.approx(survived.tolist(), rel=1e-4)
    likeliest = p[reply.start : -1].argmax(-1)
    assert found.greedy == int((likeliest == ids[reply.start + 1 :]).sum())


def test_blocks_of_chains_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    head = tiny_head(tmp_path)
    reply, states = followed(head, 7)
    whole = drafting(head)(reply, states)
    monkeypatch.setattr("breakeven.eagle.evaluate.drafting.CHAINS_AT_ONCE", 5)
    blocks = drafting(head)(reply, states)
    assert blocks.accepted == whole.accepted and blocks.agree == whole.agree
    assert blocks.overlap == pytest.approx(whole.overlap) and blocks.survived == pytest.approx(whole.survived)


@pytest.mark.parametrize("tokens", [START + 2, START + 3])
def test_a_reply_that_is_shorter_than_a_chain(tmp_path: Path, tokens: int):
    head = tiny_head(tmp_path)
    reply, states = followed(head, 8, tokens)
    found = drafting(head)(reply, states)
    chains = tokens - START - 1
    assert found.contexts == [chains - j if j < chains else 0 for j in range(K)]
    assert len(found.accepted) == chains and max(found.accepted) <= chains


def test_a_prompt_of_one_token_and_chains_of_one(tmp_path: Path):
    head = tiny_head(tmp_path)
    ids = np.arange(9, dtype=np.int32)
    states = torch.randn(9, 4, TINY.hidden, generator=torch.Generator().manual_seed(1))
    found = drafting(head, k=1)(Reply("r", "r", "c", ids, 1), states)
    assert found.contexts == [7] and found.reached == [7]


def test_a_sure_target_makes_the_overlap_the_share_that_the_head_gives_its_token(tmp_path: Path):
    """At a low temperature p is all on one token: Σ min(p, q) is q of it, and agreement where q is sure."""
    head = tiny_head(tmp_path)
    reply, states = followed(head, 10, 40)
    cold = drafting(head, temperature=1e-3)
    found = cold(reply, states)
    best = cold._target(states[reply.start : len(reply.ids) - 1, 3]).argmax(-1)
    entries = head.entries(torch.from_numpy(reply.ids[1:].astype(np.int64)), states[:-1, :3])
    (logits,) = head.chains(entries, torch.arange(reply.start - 1, len(entries) - 1), 1)
    assert found.overlap[0] == pytest.approx(int((head.drafted(logits) == best).sum()), abs=0.2)
