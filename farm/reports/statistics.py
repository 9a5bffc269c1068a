"""Report step, the estimators: computes pass@k, intervals of shares, and the paired bootstrap. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from random import Random

#: How often a bootstrap resamples, and the seed of its random numbers: the same runs give the same report.
RESAMPLES, SEED = 10_000, 20_210_707

#: All intervals have this confidence; the normal quantile belongs to it.
CONFIDENCE = 0.95
_QUANTILE = 1.959963984540054


def all_of(samples: int, hits: int, k: int) -> float:
    """Return how likely k of `samples`, drawn without replacement, are all hits: C(h,k) / C(n,k)."""
    if hits < k:
        return 0.0
    misses = samples - hits
    # Both products are this quotient; the shorter one is taken.
    if k <= misses:
        return math.prod((hits - i) / (samples - i) for i in range(k))
    return math.prod((samples - k - i) / (samples - i) for i in range(misses))


def pass_at_k(samples: int, proved: int, k: int) -> float:
    """Return the unbiased estimate of pass@k of one problem, 1 - C(n-c,k) / C(n,k).

    See Chen et al. 2021, Evaluating Large Language Models Trained on Code, section 2.1. There are at least k
    samples.
    """
    return 1.0 - all_of(samples, samples - proved, k)


def sizes(most: int, usual: int) -> list[int]:
    """Return the k to report for problems with up to `most` samples: powers of two, and the usual number."""
    powers = {1 << each for each in range(most.bit_length())}
    return sorted(powers | {usual}) if most else []


def mean_and_interval(values: Mapping[float, int], samples: int) -> tuple[float, float, float]:
    """Return the mean of a number from 0 to 1 per problem, and the bounds of its interval over problems.

    ``values`` maps each value to its number of problems; ``samples`` is the number of all samples together.
    The bounds are Wilson's for the number of independent trials that would vary like this mean: at least one
    for each problem, at most one for each sample. Few problems hardly show how much they vary, so these
    trials are reduced as Student's interval is wider than the normal one. If all problems agree, they do not
    show that others of the kind would: each is one trial, whatever its samples.
    """
    problems = sum(values.values())
    mean = math.fsum(value * number for value, number in values.items()) / problems
    spread = math.fsum((value - mean) ** 2 * number for value, number in values.items())
    trials = float(problems)
    if spread > 1e-12:  # less is rounding
        worth = problems * mean * (1 - mean) * (problems - 1) / spread
        worth *= (_QUANTILE / student_quantile(problems - 1)) ** 2
        trials = max(trials, min(worth, float(samples)))
    low, high = wilson(mean, trials)
    return mean, low, high


def student_quantile(freedom: int) -> float:
    """Return the 0.975 quantile of Student's t with ``freedom`` degrees of freedom.

    See Abramowitz and Stegun 1964, 26.7.5: right to 1 % from 3 degrees on, too small with fewer.
    """
    z = _QUANTILE
    return (
        z
        + (z**3 + z) / 4 / freedom
        + (5 * z**5 + 16 * z**3 + 3 * z) / 96 / freedom**2
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384 / freedom**3
    )


def wilson(share: float, trials: float) -> tuple[float, float]:
    """Return the bounds of Wilson's score interval for a share of ``trials``."""
    square = _QUANTILE**2 / trials
    centre = (share + square / 2) / (1 + square)
    reach = math.sqrt(share * (1 - share) * square + square**2 / 4) / (1 + square)
    return max(0.0, min(share, centre - reach)), min(1.0, max(share, centre + reach))


#: A problem's differences, one for each k; None where it has too few samples for that k.
Row = tuple[float | None, ...]


def bootstrap(rows: Mapping[Row, int], *, resamples: int = RESAMPLES) -> list[tuple[float, float] | None]:
    """Return for each place of the rows the percentile interval of its mean, problems drawn again.

    ``rows`` says how many problems have these numbers, each from -1 to 1. One resample is as many problems as
    there are, drawn with replacement; a place that no problem has a number for gets None.
    """
    width = len(next(iter(rows)))
    means: list[list[float]] = [[] for _ in range(width)]
    packed = {_pack(row): number for row, number in rows.items()}
    for total in _resampled(packed, resamples):
        for place, mean in enumerate(_unpacked(total, width)):
            if mean is not None:
                means[place].append(mean)
    return [_percentiles(each) if each else None for each in means]


# The sums of all places are one number: adding two of these costs hardly more than adding two floats. Of each
# place the lower bits sum the numbers, in units of a billionth and without their sign, the upper ones count.
_UNIT, _SUM_BITS, _PLACE_BITS = 1 << 30, 64, 96


def _pack(row: Row) -> int:
    total = 0
    for place, value in enumerate(row):
        if value is not None:
            total |= (1 << _SUM_BITS | round((value + 1) * _UNIT)) << place * _PLACE_BITS
    return total


def _unpacked(total: int, width: int) -> Iterator[float | None]:
    for _ in range(width):
        place = total & (1 << _PLACE_BITS) - 1
        total >>= _PLACE_BITS
        number = place >> _SUM_BITS
        yield (place & (1 << _SUM_BITS) - 1) / _UNIT / number - 1 if number else None


#: From this many equal problems on, the number of their draws is drawn instead of each draw.
_MANY = 40


def _resampled(values: Mapping[int, int], resamples: int) -> Iterator[int]:
    """Yield the sums of ``resamples`` resamples."""
    random = Random(SEED)  # noqa: S311 - nothing secret
    many = sorted(((n, value) for value, n in values.items() if n >= _MANY), reverse=True)
    few = sorted(value for value, n in values.items() if n < _MANY for _ in range(n))
    problems = sum(values.values())
    for _ in range(resamples):
        left, of, total = problems, problems, 0
        for number, value in many:
            drawn = binomial(random, left, number, of)
            total += value * drawn
            left -= drawn
            of -= number
        if left:
            total += sum(random.choices(few, k=left))
        yield total


def binomial(random: Random, trials: int, part: int, whole: int) -> int:
    """Return the number of successes in ``trials``, each with the exact probability part / whole.

    A trial succeeds when a random binary fraction is below that quotient. The digits of all undecided trials
    are drawn together, and those whose digit differs from the quotient's are decided.
    """
    if part == whole:
        return trials
    hits = 0
    while trials and part:
        part *= 2
        ones = random.getrandbits(trials).bit_count()
        if part >= whole:
            part -= whole
            hits += trials - ones
            trials = ones
        else:
            trials -= ones
    return hits


def _percentiles(means: Sequence[float]) -> tuple[float, float]:
    ordered = sorted(means)
    out = int((1 - CONFIDENCE) / 2 * len(ordered))
    return ordered[out], ordered[-1 - out]
