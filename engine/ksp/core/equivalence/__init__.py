"""Equivalence classes: what rules said of nodes is kept, and asked again only where something that they read changed.

    present     the cluster as it is now, and what of each node changed since when
    memo        one rule for one key: how what it says of every node is kept up to date
    predicates  the verdicts of a predicate; priorities, the scores of a priority
    paths       which fields of a pod rules read, to tell pods that are alike
    labels      which of a pod's labels rules look at
    recall      from a pod to the memos of its rules
    verdicts    of a class: which nodes can take its pods, or which rule refuses them
    totals      of a class: the weighted sums of the scores, kept up to date
    scores      the scores of some nodes, for one decision
    classes     the classes of a profile, of which the least recently used give way; counters, how often they were known

A pod's *class* is the tuple of its rules' memos; a memo is found by the rule and the values of all that the rule reads
of the pod. So pods that differ in what a rule does not read share its memo, and those that differ in nothing that
any rule reads share their class.

Nothing is stored that was found before a change: each memo bears the number of the last change that it has seen, is
brought up to date in the one place where it is read, and nothing changes in between, as the core is synchronous. What
holds only for one decision (nominated pods, a part of the nodes, the set of feasible nodes) is not kept in a memo.

Who holds a memo that gave way, and was made again for others, has as good a one: each follows the cluster by itself.
All classes and memos of a profile together take `classes.MOST_BYTES`, whoever holds them, and a few new classes more.
Not counted are the views that memos ask for: `Tables` bounds those that it can give to others, in rows.
"""
