"""The vectors that both devices are held to are what the device in Python does today."""

from golden import make_local_vectors


def test_the_vectors_are_what_this_program_makes():
    fresh = make_local_vectors.text()
    assert make_local_vectors.FILE.read_text(encoding="ascii") == fresh, (
        "run PYTHONPATH=tests python -m golden.make_local_vectors, and look at what changed"
    )


def test_the_vectors_cover_hundreds_of_settings_and_both_ends_of_epsilon():
    settings = {(name, epsilon) for name, epsilon, _, _ in make_local_vectors.thresholds()}
    assert len(settings) > 300
    assert {
        ("grr", "1/10000"),
        ("grr", "32"),
        ("hadamard", "1/10000"),
        ("fast-olh", "32"),
    } <= settings
