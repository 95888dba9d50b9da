import pytest

from bothost.bench import ppo


@pytest.mark.filterwarnings("ignore")  # of Stable-Baselines3 and its dependencies
def test_the_benchmark_measures_both_in_one_run():
    pytest.importorskip("sb3_contrib")
    figures = ppo.command(environments=4, horizon=8, minibatch=16, epochs=1, repeats=1)
    assert figures["samples_per_s_core"] > 0 and figures["rollout_steps_per_s_core"] > 0
    assert figures["ratio_fp32"] == pytest.approx(
        figures["samples_per_s_core"] / figures["maskable_ppo_samples_per_s_core"]
    )
    if ppo.has_bf16():
        assert figures["ratio_bf16"] > 0
    else:
        assert figures["ratio_bf16"] == ppo.ABSENT
