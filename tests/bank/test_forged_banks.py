"""Forged files of a bank are refused, or work; the long version is tests/long/fuzz_bank.py."""

import cases
import fuzz_bank
import pytest


@pytest.mark.parametrize("part", range(2))
def test_forged_banks(part):
    """Bytes, facts, keys, states, schema: a ValueError, or what is asked for."""
    results, findings = cases.campaign(fuzz_bank.case, 125, 60.0, first=7 * 10**9 + 125 * part, quiet=True)
    assert not findings
    assert sum(results.values()) > 20
    assert results["refused"] > results["works"] > 0


def test_no_statement_of_a_file_runs(tmp_path):
    """A view that never ends, a trigger: such a file is refused before anything is asked of it."""
    from gossamer.bank import ModelBank

    tried = 0
    for number in range(400):
        name, raw = fuzz_bank.forged(number)
        if b"RECURSIVE" not in raw and b"TRIGGER" not in raw:
            continue
        tried += 1
        (tmp_path / "bank").write_bytes(raw)
        with pytest.raises(ValueError, match="ModelBank"):
            ModelBank(fuzz_bank.MODELS[name], path=tmp_path / "bank", classes=fuzz_bank.GIVEN.get(name))
    assert tried > 5
