from __future__ import annotations

from tests.unit.syntax.trees import mistakes

from ksp.source.text import Source
from ksp.syntax import tree
from ksp.syntax.parser import ParseResult, parse
from ksp.syntax.recovery import ANY


def read(text: str) -> ParseResult:
    return parse(Source("test", text))


def lines(text: str) -> list[int]:
    return [line for _code, line, _at in mistakes(text)]


def names(result: ParseResult) -> list[str]:
    return [each.name for each in result.file.declarations if not isinstance(each, tree.Import)]


def test_every_statement_of_a_rule_is_judged_for_itself() -> None:
    text = """predicate P {
  let x = a b
  deny "fine" when a
  deny "x" a
  for x in a {
    stop a
    let y = (1 + 2
    stop when a
  }
  stop when a and b
  collect { deny when a }
}
const fine = 1
"""
    assert lines(text) == [2, 4, 6, 7, 10, 11]
    assert names(read(text)) == ["fine"]


def test_every_declaration_is_judged_for_itself() -> None:
    text = """const a = )
const b = 1
fn f(x): int = 1
predicate P { stop a }
rule Q { let x = 1 }
provider R { predicates { P Q } }
profile x uses R { }
import x
test "t" { expect P on q }
const c = 1
"""
    result = read(text)
    assert lines(text) == [1, 3, 4, 5, 6, 7, 8, 9]
    assert names(result) == ["b", "c"]
    assert result.broken == {"a", "f", "P", "Q", "R", "t", ANY}


def test_a_block_with_an_unknown_start_does_not_end_the_rule() -> None:
    text = """predicate P {
  foreach x in y {
    deny "a" when x
  }
  else {
    stop a
  }
  stop b
}
predicate Q { stop when c }
"""
    assert lines(text) == [2, 5, 6, 8]
    assert names(read(text)) == ["Q"]


def test_a_function_without_its_brace_does_not_swallow_the_rule() -> None:
    text = """predicate P {
  fn f(a: int): int { return a
  deny "x" when a
  deny "y" a
}
const b = 1
"""
    assert lines(text) == [2, 4]
    assert names(read(text)) == ["b"]


def test_a_map_that_is_wrong_ends_at_its_brace() -> None:
    text = """predicate P {
  let x = f({a: 1 b: 2}) + {c}
  deny "x" when x
}
const b = 1
"""
    assert lines(text) == [2, 2]
    assert names(read(text)) == ["b"]


def test_several_declarations_without_their_brace() -> None:
    text = "".join(f"predicate P{i} {{\n  stop when a\n" for i in range(5))
    assert lines(text) == [2, 4, 6, 8, 10]


def test_a_wrong_character_is_reported_once() -> None:
    text = """predicate P {
  let x = a @ b ~ c
  deny 'x when a
  let y = 1.5Gib 3
  stop when a
}
"""
    assert mistakes(text) == [
        ("KSP0107", 2, "@"),
        ("KSP0107", 2, "~"),
        ("KSP0108", 3, "'x when a"),
        ("KSP0112", 4, "1.5Gib"),
    ]


def test_a_wrong_character_hides_nothing_but_its_own_statement() -> None:
    text = """const a = 1;
rule P { stop when a }
predicate Q {
  let x = 1 @
  room = 3
  collect {
    stop a
  }
}
"""
    assert lines(text) == [1, 2, 4, 5, 7]


def test_names_of_what_is_left_out_are_told() -> None:
    assert read("const a = 1 +\nconst b = 99999999999999999999\nconst c = 1").broken == {"a", "b"}
    assert read('import "a${b}"\nconst c = 1').broken == {ANY}
    assert read("const grün = 1").broken == {"grün"}
    assert read("what is this").broken == {ANY}


def test_a_mistake_leaves_its_neighbours_alone() -> None:
    text = "const a = 1\nfoo bar\nconst b = 2\n}\nconst c = 3\ndeny 'x' when a\nconst d = 4"
    assert names(read(text)) == ["a", "b", "c", "d"]
    assert lines(text) == [2, 4, 6]


def test_a_keyword_that_is_missing_its_rest_is_found_on_its_own_line() -> None:
    text = "predicate P {\n  let\n  deny 'x' when\n  view v = count p in q where\n  by x\n  stop when a\n}\n"
    assert lines(text) == [2, 3, 4]
