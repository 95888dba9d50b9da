"""The examples of docs/guide/environments.md run as written."""

import re
import warnings
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs/guide/environments.md"
EXAMPLES = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), flags=re.M | re.S)


@pytest.mark.parametrize("code", EXAMPLES, ids=[re.search(r"\w+Env", code)[0] for code in EXAMPLES])
def test_the_examples_run(code):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        exec(compile(code, str(PAGE), "exec"), {})
