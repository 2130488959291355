"""Ask 20,000 people who trust nobody: who smokes, how old they are, what they eat.

Run it anywhere: the people are made up. Each answer is randomized as a device would do it; the
last lines show what the server infers, and how sure it can be.
"""

import sfumato as sf

PEOPLE = 20_000
SMOKER, AGE = sf.Boolean(name="smoker"), sf.Integer(name="age", low=18, high=89)


def main() -> None:
    """Advice first, then questions, then estimates."""
    rng = sf.secure_rng()
    best = sf.advise(people=PEOPLE, epsilon=1, categories=2)[0]
    print(f"expect +-{best.standard_error:.4f} by {best.protocol}")

    smokers = sf.Question(column=SMOKER, epsilon=1)
    codes = (rng.below(4, PEOPLE) == 0).astype(int)  # one in four
    found = smokers.estimate(smokers.answer_many(codes, rng=rng))
    low, high = found.interval(0.95)
    print(f"smokers: {found.frequencies[1]:.3f}, 95% between {low[1]:.3f} and {high[1]:.3f}")

    ages = sf.Question(column=AGE, epsilon=1, protocol="hybrid")
    mean = ages.estimate(ages.answer_many(rng.below(40, PEOPLE), rng=rng))  # 18 to 57
    print(f"mean age: {mean.mean:.1f} +- {mean.standard_error:.1f}")

    food = sf.PairsQuestion(keys=("apples", "pears"), epsilon=2, protocol="pckv-grr")
    likes = sf.Pairs.from_dicts(
        [{"apples": 0.5} if person % 3 else {"pears": -0.5} for person in range(PEOPLE)],
        names=food.keys,
    )
    print(food.estimate(food.answer_many(likes, rng=rng)))


if __name__ == "__main__":
    main()
