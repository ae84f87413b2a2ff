import os, time
import pytest
import test_tensor_parallel as t
from test_tensor_parallel import group
@pytest.mark.parametrize("version", os.environ["V"].split())
def test_more(version, group):
    t.test_two_ranks_do_what_one_does(version, t.ODD, group)
@pytest.mark.parametrize("version", os.environ["V"].split())
def test_draws(version, group):
    t.test_ranks_whose_draws_differ_take_those_of_rank_0(version, group)
