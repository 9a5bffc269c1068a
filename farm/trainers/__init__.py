"""Rewards for trainers: a thin adapter for each, over `farm.client`, that never turns a failure into 0.0.

| module | for | without a verdict of the farm |
|---|---|---|
| `farm.trainers.trl` | TRL | returns None; TRL leaves the sample out |
| `farm.trainers.verl` | verl | raises; verl leaves the prompt's group out, or stops |
| `farm.trainers.openrlhf` | OpenRLHF | raises; OpenRLHF logs it and stops at that batch |
| `farm.trainers.slime` | slime | returns None; the filter `keep_known` leaves the group out |
| `farm.trainers.verifiers` | verifiers, prime-rl | raises; the rollout has an error and no reward |
| `farm.trainers.nemo_gym` | NeMo-Gym | answers null, masked |

No module imports its trainer's library at its top, so each can be read and tested without it.
"""
