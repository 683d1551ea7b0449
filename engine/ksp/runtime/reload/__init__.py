"""A policy that changes while the scheduler runs.

    source ──texts──▶ child (`ksp vet`) ──ok──▶ assemble, in a thread ──▶ caches ──▶ prepare, in slices ──▶ adopt
      ▲                    │                        │                                                      │
    watcher                └──── the last good policy stays, and everybody is told ◀── the verdict of probation

`sources` and `config_map` read texts, `watching` notices that they have changed, `child` has them tried in a process of
their own, `reloader` takes them through all that, `telling` says what came of it, and `reloading` is the whole, for the
app.
"""
