# SPDX-License-Identifier: MIT
"""Models of transformers, beside its own from_pretrained()."""

import os

import pytest

from support import need, version
from tshare import weights

# No test asks a server for anything.
os.environ.setdefault("HF_HUB_OFFLINE", "1")

torch = need("torch")

try:
    import transformers
except ImportError:
    pytest.skip("transformers is not installed", allow_module_level=True)

if version(torch) < (2, 9):
    pytest.skip("PyTorch before 2.9 takes no read-only memory", allow_module_level=True)

TOKENS = torch.arange(20)[None]


@pytest.fixture(params=[True, False], ids=["tied", "untied"])
def config(request):
    return transformers.LlamaConfig(
        vocab_size=128,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        tie_word_embeddings=request.param,
    )


@pytest.fixture
def folder(tmp_path, config):
    """A model with random weights, in several shards with an index."""
    torch.manual_seed(0)
    transformers.LlamaForCausalLM(config).save_pretrained(tmp_path, max_shard_size="100KB")
    assert len(list(tmp_path.glob("*.safetensors"))) > 1
    return tmp_path


def check_same(model, folder, config):
    expected = transformers.LlamaForCausalLM.from_pretrained(folder).eval()
    assert torch.equal(model(TOKENS).logits, expected(TOKENS).logits)
    tied = model.lm_head.weight is model.model.embed_tokens.weight
    assert tied == config.tie_word_embeddings


def check_memory(model, state):
    """Check that the parameters have the memory of these tensors."""
    addresses = {name: parameter.data_ptr() for name, parameter in model.named_parameters()}
    assert addresses == {name: tensor.data_ptr() for name, tensor in state.items()}


def test_assigned_model_has_the_logits_of_from_pretrained(folder, config, name):
    with torch.device("meta"):
        model = transformers.LlamaForCausalLM(config).eval()
    with weights.load(folder, name) as loaded:
        weights.assign(model, loaded)
        check_memory(model, {key: tensor.torch() for key, tensor in loaded.items()})
    check_same(model, folder, config)


def test_from_pretrained_takes_the_tensors_without_a_copy(folder, config):
    state = weights.load_file(folder)
    model = transformers.LlamaForCausalLM.from_pretrained(None, config=config, state_dict=state)
    check_memory(model, state)
    check_same(model.eval(), folder, config)


@pytest.mark.skipif(
    version(transformers) < (5, 0), reason="transformers before 5 doesn't compute such buffers"
)
def test_buffers_that_are_in_no_file_are_computed(tmp_path, name):
    config = transformers.BertConfig(
        vocab_size=128,
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=128,
    )
    expected = transformers.BertModel(config).eval()
    expected.save_pretrained(tmp_path)
    with torch.device("meta"):
        model = transformers.BertModel(config).eval()
    with weights.load(tmp_path, name) as loaded:
        assert weights.assign(model, loaded) == []
    found = model(TOKENS).last_hidden_state
    assert torch.equal(found, expected(TOKENS).last_hidden_state)


def test_file_is_taken_before_the_index_of_older_shards(folder, config, name):
    torch.manual_seed(1)
    newer = transformers.LlamaForCausalLM(config).eval()
    newer.save_pretrained(folder / "newer")
    (folder / "newer" / "model.safetensors").rename(folder / "model.safetensors")
    with torch.device("meta"):
        model = transformers.LlamaForCausalLM(config).eval()
    with weights.load(folder, name) as loaded:
        weights.assign(model, loaded)
    check_same(model, folder, config)
    assert torch.equal(model(TOKENS).logits, newer(TOKENS).logits)
