"""What column functions can call, beside what scalar ones can."""

from __future__ import annotations

import numpy as np

from ksp.compile.columns import combinations, feasible, labels, numbers, spreading, verdicts


def quiet() -> np.errstate:
    """Arithmetic of which NumPy says nothing."""
    return np.errstate(all="ignore")


COLUMN_RUNTIME: dict[str, object] = {
    "_quiet": quiet,
    "_bool": bool,
    "_where": np.where,
    "_absolute": np.abs,
    "_filled": numbers.filled,
    "_divided": numbers.divided,
    "_remainders": numbers.remainders,
    "_ratio": numbers.ratio,
    "_to_ints": numbers.to_ints,
    "_to_doubles": numbers.to_doubles,
    "_rounded_all": numbers.rounded,
    "_logarithms": numbers.logarithms,
    "_roots": numbers.roots,
    "_smallest": numbers.smallest,
    "_largest_of": numbers.largest,
    "_chosen": numbers.chosen,
    "_among": numbers.among,
    "_as_array": numbers.as_array,
    "_least": numbers.least,
    "_most": numbers.most,
    "_by_parts": spreading.by_parts,
    "_by_name": spreading.by_name,
    "_verdicts_by_parts": spreading.verdicts_by_parts,
    "_scores_by_parts": spreading.scores_by_parts,
    "_has_part": labels.has_part,
    "_same_parts": labels.same_parts,
    "_part_in": labels.part_in,
    "_requirement_holds": labels.requirement_holds,
    "_term_holds_for_node": labels.term_holds_for_node,
    "_term_holds_for_labels": labels.term_holds_for_labels,
    "_selector_holds": labels.selector_holds,
    "_count_of": feasible.count_of,
    "_sum_of": feasible.sum_of,
    "_smallest_row": feasible.smallest_of,
    "_largest_row": feasible.largest_of,
    "_scaled": feasible.scaled,
    "_scaled_reversed": feasible.scaled_reversed,
    "_Tally": feasible.Tally,
    "_ByCombination": combinations.ByCombination,
    "_Ruling": verdicts.Ruling,
    "_scored": verdicts.scored,
    "_scored_unless": verdicts.scored_unless,
}
