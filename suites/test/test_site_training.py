"""The site's own training ends well, at its usual speed, with the numbers that it always had."""

import pytest

pytestmark = [pytest.mark.phase("test"), pytest.mark.active]


@pytest.mark.fault("gpu.burn.failed")
def test_site_training_ends_well(node, measure):
    """Require that the site's own training ended by itself after enough steps, with losses that are numbers."""
    trained = node.active.site_training
    measure("wrong_losses", trained.wrong_losses, at_most=0, unit="count")
    measure("site_training_steps", trained.steps, at_least=1, unit="count")
    assert trained.ended == "done", trained.ended
    measure("site_training_loss", trained.loss)


@pytest.mark.fault("collective.wrong")
def test_site_trains_as_golden(site_training, measure):
    """Compare the digests and losses of the site's own training with golden ones, where the spec has some."""
    measure("golden_steps", site_training.golden.steps, at_least=1, unit="count")
    measure("wrong_golden_steps", site_training.wrong_steps, at_most=0, unit="count", place=site_training.first_wrong)


@pytest.mark.fault("gpu.burn.failed")
def test_site_training_tells_its_speed(node, measure):
    """Record the tokens per second of the site's own training, where its declaration says how they are told."""
    measure("site_training_speed", node.active.site_training.tokens_per_s)


@pytest.mark.fault("collective.slow")
def test_site_trains_as_fast_as_the_fleet(node, limits, measure):
    """Compare the tokens per second of the site's own training with the median of other nodes of this kind."""
    below = 100 * (1 - node.active.site_training.tokens_per_s / node.fleet.site_training_speed.median)
    measure("below_fleet", below, at_most=limits.gpu_below_fleet, unit="%")


@pytest.mark.fault("gpu.burn.failed")
def test_site_training_tells_its_step_time(node, measure):
    """Record how long a step of the site's own training takes, where its declaration says how that is told."""
    measure("site_training_step", node.active.site_training.step_ms)


@pytest.mark.fault("collective.slow")
def test_site_steps_as_fast_as_in_the_fleet(node, limits, measure):
    """Compare the step time of the site's own training with the median of other nodes of this kind."""
    above = 100 * (node.active.site_training.step_ms / node.fleet.site_training_step.median - 1)
    measure("above_fleet", above, at_most=limits.gpu_below_fleet, unit="%")


@pytest.mark.fault("collective.wrong")
def test_site_trains_to_the_loss_of_the_fleet(node, limits, measure):
    """Compare the last loss of the site's own training with the median of other nodes of this kind."""
    usual = node.fleet.site_training_loss.median
    off = 100 * abs(node.active.site_training.loss - usual) / abs(usual)
    measure("off_fleet", off, at_most=limits.training_loss_off_fleet, unit="%")
